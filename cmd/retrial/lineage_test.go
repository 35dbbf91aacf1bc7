package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage/queries"
)

func TestLineageRoute(t *testing.T) {
	at := time.Date(2026, 11, 20, 11, 36, 0, 0, time.UTC)
	use := queries.CredentialUse{User: "system:serviceaccount:ns:sa", UserAgent: "curl", Source: "192.0.2.1", Pod: "p", Requests: 3,
		Forbidden: 1, First: at.Add(time.Minute), Last: at.Add(time.Hour)}
	st := state.New("c")
	st.Apply(issued(t, at, "JTI=1"), issued(t, at.Add(time.Second), "JTI=never-used"))
	f := &fakeStore{
		known: st, uses: []queries.CredentialUse{use},
		credentials: []queries.SubjectCredential{{Credential: "JTI=1", Explained: []string{"serviceaccount"}, Requests: 3, First: use.First,
			Last: use.Last}},
	}
	for _, tc := range []struct {
		name, query string
		want        []string // credential, issued by, requests
	}{
		{"a credential", "credential=JTI%3D1", []string{"JTI=1 admin 3"}},
		{"a service account, with what it never used", "subject=system:serviceaccount:ns:sa",
			[]string{"JTI=1 admin 3", "JTI=never-used admin 0"}},
		{"somebody else", "subject=bob", []string{"JTI=1 admin 3"}},
		{"in brief", "subject=bob&brief=true", []string{"JTI=1 admin 3"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			answer := decodeAnswer[query.LineageAnswer](t, askFake(t, f, http.MethodGet, "lineage?cluster=c&"+tc.query))
			var got []string
			for _, c := range answer.Credentials {
				if brief := strings.Contains(tc.query, "brief"); c.Requests > 0 && brief != (len(c.Uses) == 0) {
					t.Errorf("%d places of use", len(c.Uses))
				}
				by := "nobody"
				if c.Issue != nil {
					by = c.Issue.By
					if c.Issue.ServiceAccount != "ns/sa" {
						t.Errorf("issued for %q", c.Issue.ServiceAccount)
					}
				}
				got = append(got, c.Credential+" "+by+" "+string(rune('0'+c.Requests)))
			}
			if strings.Join(got, "\n") != strings.Join(tc.want, "\n") {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
	for query, says := range map[string]string{
		"cluster=c":                        "one of credential and subject",
		"cluster=c&subject=a&credential=b": "one of credential and subject",
		"subject=a":                        "cluster is missing",
		"cluster=c&subject=a&limit=0":      "limit",
	} {
		if w := askFake(t, f, http.MethodGet, "lineage?"+query); w.Code != http.StatusBadRequest ||
			!strings.Contains(w.Body.String(), says) {
			t.Errorf("%s: %d %s", query, w.Code, w.Body)
		}
	}
	if w := askFake(t, &fakeStore{}, http.MethodGet, "lineage?cluster=c&credential=JTI%3D9"); w.Code != http.StatusNotFound {
		t.Errorf("a credential nobody knows: %d %s", w.Code, w.Body)
	}
}

// issued is what the log says of a token of ns/sa.
func issued(t *testing.T, at time.Time, id string) observe.Observation {
	t.Helper()
	obs, err := observe.FromEvent(&event.Event{
		Level: event.LevelMetadata, AuditID: "a", Stage: event.StageResponseComplete, Verb: "create",
		RequestURI: "/api/v1/namespaces/ns/serviceaccounts/sa/token", User: event.User{Username: "admin"}, SourceIPs: []string{"192.0.2.9"},
		ResponseStatus: &event.Status{Code: 201}, RequestReceivedTimestamp: at, StageTimestamp: at.Add(time.Millisecond),
		Annotations: event.Pairs{{Key: "authentication.kubernetes.io/issued-credential-id", Value: id}},
	})
	if err != nil || len(obs) != 1 {
		t.Fatalf("%d observations, %v", len(obs), err)
	}
	return obs[0]
}

// TestPrintLineageIsSafe: what clients chose does not reach a terminal as it is.
func TestPrintLineageIsSafe(t *testing.T) {
	hostile := "x\x1b[2J\nJTI=forged"
	now := time.Unix(0, 0)
	out, _ := printed(printLineage, &query.LineageAnswer{Truncated: true, Credentials: []query.Credential{{
		Credential: hostile, Users: []string{hostile}, Explained: []string{hostile}, Requests: 1, First: &now, Last: &now, More: -1,
		Issue: &query.Issue{By: hostile, From: hostile, AuditID: hostile, Expires: &now, ServiceAccount: hostile, Pod: hostile,
			Organizations: []string{hostile}},
		Uses:           []query.CredentialUse{{User: hostile, UserAgent: hostile, From: hostile, Pod: hostile, Node: hostile}},
		Contradictions: []query.CredentialContradiction{{Name: hostile, Evidence: hostile}},
	}}})
	if strings.ContainsAny(out, "\x1b\a") || strings.Contains(out, "\nJTI=forged") {
		t.Errorf("a control byte, or a forged line, came through:\n%q", out)
	}
}
