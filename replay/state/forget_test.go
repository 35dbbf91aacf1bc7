package state_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/content"
	"github.com/retrial-io/retrial/replay/state/forget"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// TestForgottenLostAnswers: of a write whose answer was lost, and of a patch, it stays after its content
// is forgotten which role a binding gives; it concerns who that role could allow something, and no others.
func TestForgottenLostAnswers(t *testing.T) {
	const (
		uri  = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
		head = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBinding","metadata":{"name":"p"},`
		ref  = `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"%s"},`
		who  = `"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"ann"}]}`
		role = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"%s"},"rules":[{"verbs":["get"],` +
			`"apiGroups":[""],"resources":["%s"]}]}`
	)
	toReader := head + fmt.Sprintf(ref, "reader") + who
	for name, c := range map[string]struct {
		verb, body, was   string
		secrets, nodes    bool // somebody may get them, perhaps
		unknown           bool
		forgottenIsAPatch bool
	}{
		"creation":                 {verb: "create", body: toReader, secrets: true},
		"update":                   {verb: "update", body: toReader, was: "reader", secrets: true},
		"applied":                  {verb: "patch", body: toReader, secrets: true, forgottenIsAPatch: true},
		"merge patch of a binding": {verb: "patch", body: `{` + who, was: "viewer", nodes: true, forgottenIsAPatch: true},
		"merge patch of nothing":   {verb: "patch", body: `{` + who, forgottenIsAPatch: true},
		"JSON patch of a binding": {verb: "patch", body: `[{"op":"add","path":"/subjects","value":[]}]`, was: "viewer",
			nodes: true, forgottenIsAPatch: true},
		"JSON patch of nothing": {verb: "patch", body: `[{"op":"add","path":"/subjects","value":[]}]`,
			forgottenIsAPatch: true},
		"creation of a role of a large name": {verb: "create", body: head + fmt.Sprintf(ref, strings.Repeat("x", 4000)) + who,
			unknown: true, secrets: true, nodes: true},
	} {
		t.Run(name, func(t *testing.T) {
			s := tell(t, true)
			s.during("12:00:01", "12:00:02", "create", "/apis/rbac.authorization.k8s.io/v1/clusterroles", 201, fmt.Sprintf(role, "reader",
				"secrets"), "")
			s.during("12:00:03", "12:00:04", "create", "/apis/rbac.authorization.k8s.io/v1/clusterroles", 201, fmt.Sprintf(role, "viewer",
				"nodes"), "")
			if c.was != "" {
				s.during("12:00:05", "12:00:06", "create", uri, 201, head+fmt.Sprintf(ref, c.was)+`"subjects":[]}`, "")
			}
			at := uri
			if c.verb != "create" {
				at += "/p"
			}
			e := &event.Event{Level: event.LevelRequest, Stage: event.StageResponseComplete, AuditID: "w", Verb: c.verb, RequestURI: at,
				RequestObject: []byte(c.body),
				ObjectRef:     &event.ObjectRef{Name: "p"}, ResponseStatus: &event.Status{Code: 504}, RequestReceivedTimestamp: clock(t,
					"12:00:10"), StageTimestamp: clock(t, "12:00:11")}
			obs, err := observe.FromEvent(e)
			if err != nil || len(obs) != 1 {
				t.Fatal(obs, err)
			}
			raw, err := forget.Content(obs[0].Append(nil))
			if err != nil {
				t.Fatal(err)
			}
			o, err := observe.Decode(raw)
			if err != nil || strings.Contains(string(raw), "ann") || o.Patch != (c.forgottenIsAPatch || c.unknown) {
				t.Fatalf("%s: %v", raw, err)
			}
			s.Apply(o)
			v := s.RBAC(clock(t, "12:01:00"))
			if c.unknown != (len(v.Unknown) > 0) {
				t.Errorf("without bounds: %v", v.Unknown)
			}
			for resource, want := range map[string]bool{"secrets": c.secrets, "nodes": c.nodes} {
				a := rbacindex.Attributes{User: "whoever", Groups: []string{content.GroupAnybody}, ResourceRequest: true, Verb: "get",
					Resource: resource}
				got := len(v.Unknown) > 0 || v.Most != nil && v.Most.Authorize(&a, nil).Allowed
				if a.Groups = nil; v.RBAC.Authorize(&a, nil).Allowed {
					t.Errorf("whoever may get %s for certain", resource)
				}
				if got != want {
					t.Errorf("somebody may get %s, perhaps: %v, want %v", resource, got, want)
				}
			}
			s.during("12:02:00", "12:02:01", "delete", uri+"/p", 200, "{}", wentAway)
			if v := s.RBAC(clock(t, "12:03:00")); !v.Certain() {
				t.Errorf("deleted, and in doubt: %v, %v", v.Unknown, v.Doubted)
			}
		})
	}
}

// TestLostAnswersHaveABudget: contents of writes without a version, be it because their answers are lost, take
// no more memory than others; the last that is certain stays.
func TestLostAnswersHaveABudget(t *testing.T) {
	const uri = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	s := state.New("c")
	at := clock(t, "12:00:00")
	if _, err := s.LoadSnapshot(observe.Snapshot{Began: at, Ended: at, Since: at, Kinds: kept.Resources()}); err != nil {
		t.Fatal(err)
	}
	body := func(n int) []byte {
		return fmt.Appendf(nil, `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"r"},"rules":[{`+
			`"verbs":["get"],"apiGroups":[""],"resources":["pods"],"resourceNames":["%d%s"]}]}`,
			n, strings.Repeat("x", 1<<19))
	}
	write := func(verb string, code int32, object []byte) {
		at = at.Add(time.Second)
		e := &event.Event{Level: event.LevelRequest, Stage: event.StageResponseComplete, AuditID: fmt.Sprint(at), Verb: verb,
			RequestURI: uri + "/r", RequestObject: object,
			ObjectRef: &event.ObjectRef{Name: "r"}, ResponseStatus: &event.Status{Code: code}, RequestReceivedTimestamp: at,
			StageTimestamp: at.Add(time.Millisecond)}
		if verb == "create" {
			e.RequestURI = uri
		}
		apply(t, s, e)
	}
	write("create", 201, body(0))
	for n := range 300 {
		write([]string{"update", "patch"}[n%2], 504, body(n+1))
	}
	if st := s.Stats(); st.HistoryBytes > 90<<20 || st.Forgotten < 100 {
		t.Errorf("%d MiB of history, %d contents forgotten", st.HistoryBytes>>20, st.Forgotten)
	}
	v := s.RBAC(at.Add(time.Minute))
	key := rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "r"}
	if len(v.Unknown) > 0 || !v.IsDoubted(key) {
		t.Errorf("unknown %v, doubted %v", v.Unknown, v.Doubted)
	}
	if v := s.RBAC(clock(t, "12:00:01.5")); !v.Certain() {
		t.Errorf("as it was made: unknown %v, doubted %v", v.Unknown, v.Doubted)
	}
	write("update", 200, body(1000))
	if v := s.RBAC(at.Add(time.Minute)); !v.Certain() {
		t.Errorf("written again: unknown %v, doubted %v", v.Unknown, v.Doubted)
	}
}

// A version whose content is not known came after the end of an object that is known by that alone, when it
// was there later: no two have a name at once.
func TestVersionAfterAnEnd(t *testing.T) {
	const uri = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	role := func(meta, verb string) string {
		return `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"p"` + meta +
			`},"rules":[{"verbs":["` + verb + `"],"apiGroups":[""],"resources":["pods"]}]}`
	}
	s := tell(t, true)
	s.during("12:00:02", "12:00:03", "create", uri, 504, role("", "get"), "")
	s.during("12:00:04", "12:00:05", "delete", uri+"/p", 200, "{}", wentAway)
	s.during("12:00:08", "12:00:09", "patch", uri+"/p", 201, role("", "get"), "")
	s.Apply(observe.Observation{Source: observe.SourceAudit, Resource: kept.ClusterRoles, Name: "p", UID: "u2", ResourceVersion: "110",
		Unknown:   true,
		NotBefore: clock(t, "12:00:10"), NotAfter: clock(t, "12:00:11")})
	key := rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "p"}
	if v := s.RBAC(clock(t, "12:00:09.5")); v.IsUnknown(key) || v.IsDoubted(key) {
		t.Errorf("as it was applied: unknown %v, doubted %v", v.Unknown, v.Doubted)
	}
	if v := s.RBAC(clock(t, "12:00:20")); !v.IsUnknown(key) {
		t.Error("it is said to be as it was applied, after a write nobody knows the content of")
	}
}
