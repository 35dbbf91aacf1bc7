package authz

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/verdict"
)

// TestHookMemory puts many requests to webhooks that remember and to the conditions
// themselves: the answers are the same, whatever was asked before.
func TestHookMemory(t *testing.T) {
	for _, conditions := range [][]string{
		{`request.user == "u1"`},
		{`"g1" in request.groups`, `has(request.resourceAttributes)`},
		{`request.groups.size() == 2 && request.groups[0] == "g1"`},
		{`request.resourceAttributes.namespace == "n1" && request.resourceAttributes.verb == "get"`},
		{`request.?resourceAttributes.name.orValue("") == "o1"`},
		{`request.nonResourceAttributes.path.startsWith("/p1")`},
		{`request.extra["k1"][0] == "v1"`},
		{`"v1" in request.extra["k1"]`},
		{`request.uid == "1"`, `request.resourceAttributes.resource == "pods" && request.resourceAttributes.subresource == ""`},
		{`request.resourceAttributes.group + "/" + request.resourceAttributes.version == "apps/v1"`},
		{`request.resourceAttributes.fieldSelector.requirements[0].key == "a"`},
		{`dyn(request)["user"] == "u1"`},
	} {
		t.Run(strings.Join(conditions, " and "), func(t *testing.T) {
			w, unknown := newWebhook(&config.WebhookOptions{MatchConditions: conditions}, &config.APIServer{})
			if unknown != "" {
				t.Fatal(unknown)
			}
			r := rand.New(rand.NewPCG(1, 1))
			text := func(prefix string) string { return prefix + fmt.Sprint(r.IntN(3)) }
			seen := map[hookState]int{}
			for range 3000 {
				u := event.User{Username: text("u"), UID: text("")}
				for range r.IntN(3) {
					u.Groups = append(u.Groups, text("g"))
				}
				for range r.IntN(2) {
					u.Extra = append(u.Extra, event.ExtraEntry{Key: text("k"), Values: []string{text("v"), text("v")}[:1+r.IntN(2)]})
				}
				a := verdict.Attributes{Verb: []string{"get", "list"}[r.IntN(2)], Path: text("/p")}
				if r.IntN(3) > 0 {
					a = verdict.Attributes{ResourceRequest: true, Verb: a.Verb, APIGroup: []string{"", "apps"}[r.IntN(2)],
						APIVersion: text("v"), Resource: []string{"pods", "nodes"}[r.IntN(2)],
						Subresource: []string{"", "log"}[r.IntN(2)], Namespace: text("n"), Name: text("o"),
						FieldSelector: []string{"", "a=b", "c=d"}[r.IntN(3)]}
				}
				got, want := w.asked(&u, &a), w.evaluate(&u, &a)
				if got != want {
					t.Fatalf("%+v %+v: %d, the conditions come to %d", u, a, got, want)
				}
				seen[got]++
			}
			if len(seen) < 2 {
				t.Errorf("every request is alike: %v", seen)
			}
		})
	}
}

// TestHookMemoryIsBounded: what is too long to be remembered is asked every time, and two
// requests that differ behind the limit are not taken for one another.
func TestHookMemoryIsBounded(t *testing.T) {
	w, _ := newWebhook(&config.WebhookOptions{MatchConditions: []string{`request.user.endsWith("x")`}}, &config.APIServer{})
	long := strings.Repeat("a", 2*longestKey)
	for _, tc := range []struct {
		user string
		want hookState
	}{{long + "x", hookAsked}, {long + "y", hookSkipped}, {long + "x", hookAsked}} {
		if got := w.asked(&event.User{Username: tc.user}, &healthz); got != tc.want {
			t.Errorf("…%s: %d", tc.user[len(tc.user)-1:], got)
		}
	}
}
