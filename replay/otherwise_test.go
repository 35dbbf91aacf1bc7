package replay

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

var noon = time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)

// askedAtNoon returns a request at noon with what was recorded of its decision.
func askedAtNoon(user string, groups []string, verb, uri, decision, reason string) *event.Event {
	return &event.Event{AuditID: "1", Stage: event.StageResponseComplete, Verb: verb, RequestURI: uri, RequestReceivedTimestamp: noon,
		StageTimestamp: noon.Add(time.Millisecond),
		User:           event.User{Username: user, Groups: groups},
		ResponseStatus: &event.Status{Code: map[string]int32{"allow": 200, "forbid": 403}[decision]},
		Annotations:    event.Pairs{{Key: event.AnnotationDecision, Value: decision}, {Key: event.AnnotationReason, Value: reason}}}
}

// sightedAt returns a request of an apiserver itself.
func sightedAt(at time.Time, server string, minor int) *event.Event {
	return &event.Event{Stage: event.StageResponseComplete, Verb: "get", RequestURI: "/healthz", RequestReceivedTimestamp: at,
		StageTimestamp: at, Server: server,
		User:      event.User{Username: "system:apiserver", Groups: []string{"system:authenticated", "system:masters"}},
		SourceIPs: []string{"::1"},
		UserAgent: fmt.Sprintf("kube-apiserver/v1.%d.1 (linux/amd64) kubernetes/abc", minor), ResponseStatus: &event.Status{Code: 200},
		Annotations: event.Pairs{{Key: event.AnnotationDecision, Value: "allow"}, {Key: event.AnnotationReason, Value: ""}}}
}

// emptyCluster returns a cluster without roles or pods whose apiservers were seen.
func emptyCluster(t *testing.T, sightings ...*event.Event) *state.State {
	t.Helper()
	s := state.New("c")
	if _, err := s.LoadSnapshot(observe.Snapshot{Began: noon.Add(-time.Hour), Ended: noon.Add(-time.Hour), Kinds: kept.Resources()}); err !=
		nil {
		t.Fatal(err)
	}
	for _, e := range sightings {
		obs, err := observe.FromEvent(e)
		if err != nil || len(obs) != 1 {
			t.Fatal(obs, err)
		}
		s.Apply(obs...)
	}
	return s
}

func nodeAndRBAC(digest string, minor int) *config.APIServer {
	cfg := chainConfig(digest, config.Node, config.RBAC)
	cfg.Minor = minor
	return cfg
}

// TestVersions: a node lists all pods, which releases up to 1.31 allow. The version that decides
// is the one given, or else the one the log shows; one that only would explain the record is
// never a reason to call it drift without saying so.
func TestVersions(t *testing.T) {
	before := func(server string, minor int) *event.Event {
		return sightedAt(noon.Add(-10*time.Minute), server, minor)
	}
	guessed, emulating := nodeAndRBAC("g", 36), nodeAndRBAC("e", 36)
	guessed.Guessed, emulating.Emulates = true, true
	for _, tc := range []struct {
		name    string
		cfg     *config.APIServer
		servers map[string]*config.APIServer
		seen    []*event.Event
		outcome verdict.Outcome
		class   string
		text    string // within what the verdict says, or its configuration
	}{
		{"the log shows 1.31", nil, nil, []*event.Event{before("", 31)}, verdict.OutcomeMatch, "", ";release=1.31"},
		{"the log shows 1.31, without a version given", nodeAndRBAC("d", 0), nil, []*event.Event{before("", 31)}, verdict.OutcomeMatch, "",
			";apiserver=d;release=1.31"},
		{"the log shows 1.31, and flags were guessed by", guessed, nil, []*event.Event{before("", 31)}, verdict.OutcomeMatch, "",
			";release=1.31"},
		{"the log shows 1.36", nil, nil, []*event.Event{before("", 36)}, verdict.OutcomeDrift, verdict.ClassAllowForbid,
			"no reason is recorded"},
		{"the version is given", nodeAndRBAC("d", 31), nil, nil, verdict.OutcomeMatch, "", ";apiserver=d"},
		{"nobody says the version", nil, nil, nil, verdict.OutcomeIndeterminate, verdict.ClassConfig, verdict.DoubtVersion +
			"Kubernetes 1.31 gives this answer"},
		{"another version is given, and the log is silent", nodeAndRBAC("d", 36), nil, nil, verdict.OutcomeDrift, verdict.ClassAllowForbid,
			verdict.DoubtVersion + "Kubernetes 1.31"},
		{"another version is given than the log shows", nodeAndRBAC("d", 36), nil, []*event.Event{before("", 31)}, verdict.OutcomeAmbiguous,
			verdict.ClassVersion, "rules of Kubernetes 1.31"},
		{"another version is emulated", emulating, nil, []*event.Event{before("", 37)}, verdict.OutcomeDrift, verdict.ClassAllowForbid, ""},
		{"logs of two versions were merged", nil, nil, []*event.Event{before("a", 36), before("b", 31)}, verdict.OutcomeAmbiguous,
			verdict.ClassSeveral, "rules of Kubernetes 1.31"},
		{"logs of two apiservers were merged", nil, map[string]*config.APIServer{"a": nodeAndRBAC("a", 36), "b": nodeAndRBAC("b", 31)}, nil,
			verdict.OutcomeAmbiguous, verdict.ClassSeveral, "configuration of the apiserver b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := emptyCluster(t, tc.seen...)
			h := &config.History{}
			if tc.cfg != nil {
				h.Add(time.Time{}, tc.cfg)
			}
			for name, cfg := range tc.servers {
				own := &config.History{}
				own.Add(time.Time{}, cfg)
				h.AddServer(name, own)
				h.Add(time.Time{}, tc.servers["a"])
			}
			v := New(Config{Apiserver: func(_, server string) *config.History { return h.Of(server) }}).Replay(
				askedAtNoon("system:node:n", []string{"system:nodes", "system:authenticated"}, "list", "/api/v1/pods", "allow", ""), s)
			if v.Outcome != tc.outcome || v.Class != tc.class || !strings.Contains(v.Cause+"\n"+v.Config+"\n"+strings.Join(v.Missing, "\n"),
				tc.text) {
				t.Errorf("%s %s: %s; missing %q, configuration %s; want %s %s with %q", v.Outcome, v.Class, v.Cause, v.Missing, v.Config,
					tc.outcome, tc.class, tc.text)
			}
		})
	}
}

// TestReasonOfAnotherVersion: where versions decide alike and only one gives the recorded reason,
// the verdict is a match and names it.
func TestReasonOfAnotherVersion(t *testing.T) {
	s := emptyCluster(t, sightedAt(noon.Add(-time.Minute), "a", 36), sightedAt(noon.Add(-time.Minute), "b", 31))
	h := func(string, string) *config.History { return nil }
	const text = "no relationship found between node 'n' and this object" // of 1.36: 1.31 lets no node read it
	e := askedAtNoon("system:node:n", []string{"system:nodes", "system:authenticated"}, "get", "/api/v1/namespaces/x/serviceaccounts/y",
		"forbid", text)
	v := New(Config{Apiserver: h}).Replay(e, s)
	if v.Outcome != verdict.OutcomeMatch || !strings.HasSuffix(v.Config, ";release=1.36") {
		t.Errorf("%s %s: %s, by %s", v.Outcome, v.Class, v.Cause, v.Config)
	}
	e.Annotations = e.Annotations.Set(event.AnnotationReason, "can only create tokens for individual service accounts")
	if v = New(Config{Apiserver: h}).Replay(e, s); v.Outcome != verdict.OutcomeMatch || !strings.HasSuffix(v.Config, ";release=1.31") {
		t.Errorf("%s %s: %s, by %s", v.Outcome, v.Class, v.Cause, v.Config)
	}
}

// TestVersionDiffers: the apiserver's own requests contradict a version that was given.
func TestVersionDiffers(t *testing.T) {
	emulating := nodeAndRBAC("e", 35)
	emulating.Emulates = true
	for _, tc := range []struct {
		name string
		cfg  *config.APIServer
		want string
	}{
		{"another", nodeAndRBAC("d", 33), `the apiserver says it is "1.36.1"; given is 1.33`},
		{"the same", nodeAndRBAC("d", 36), ""},
		{"none", nodeAndRBAC("d", 0), ""},
		{"nothing given", nil, ""},
		{"emulated", emulating, ""},
	} {
		h := &config.History{}
		if tc.cfg != nil {
			h.Add(time.Time{}, tc.cfg)
		}
		e := sightedAt(noon, "", 36)
		v := New(Config{Apiserver: func(string, string) *config.History { return h }}).Replay(e, emptyCluster(t, e))
		got := ""
		for i, name := range v.Identity {
			if name == "version-differs" {
				got = v.Evidence[i]
			}
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", tc.name, got, tc.want)
		}
	}
}

// TestUnmodelledAuthorizer: words no built-in authorizer uses are another one's, whatever the
// configuration says.
func TestUnmodelledAuthorizer(t *testing.T) {
	for _, tc := range []struct {
		decision, reason string
		plain            string // class, nothing configured
	}{
		{"allow", "EKS Access Policy: allowed by ClusterRoleBinding AmazonEKSClusterAdminPolicy", verdict.ClassAuthorizer},
		{"allow", "access granted by IAM permissions.", verdict.ClassAuthorizer},
		{"forbid", "scopes [user:info] prevent this action", verdict.ClassAuthorizer},
		{"forbid", "node: no relationship found between node 'n' and this object\nscopes", verdict.ClassAuthorizer},
		{"allow", `RBAC: allowed by ClusterRoleBinding "x" of ClusterRole "y" to User "ann"`, verdict.ClassAllowForbid},
		{"allow", "", verdict.ClassAllowForbid},
		{"allow", "RBAC: allowed, trust me", verdict.ClassAllowForbid},
		{"forbid", "webhook: node: no relationship found between node 'n' and this object", verdict.ClassReason},
		{"forbid", "can only read resources of this type", verdict.ClassReason},
		{"forbid", `RBAC: clusterrole.rbac.authorization.k8s.io "x" not found`, verdict.ClassReason},
	} {
		e := askedAtNoon("ann", []string{"system:authenticated"}, "get", "/api/v1/pods", tc.decision, tc.reason)
		s := emptyCluster(t, sightedAt(noon.Add(-time.Minute), "", 36))
		v := New(Config{}).Replay(e, s)
		if v.Class != tc.plain || (v.Outcome == verdict.OutcomeIndeterminate) != (tc.plain == verdict.ClassAuthorizer) {
			t.Errorf("%s %q: %s %s: %s; want %s", tc.decision, tc.reason, v.Outcome, v.Class, v.Cause, tc.plain)
		}
		h := &config.History{}
		h.Add(time.Time{}, nodeAndRBAC("d", 36))
		if v = New(Config{Apiserver: func(string, string) *config.History { return h }}).Replay(e, s); v.Class != tc.plain {
			t.Errorf("%s %q, configured: %s %s: %s", tc.decision, tc.reason, v.Outcome, v.Class, v.Cause)
		}
	}
}

// TestDoubts: a drift names the objects on its way that were being deleted, and none that rest.
func TestDoubts(t *testing.T) {
	object := func(resource, kind, name, meta, body string) observe.Observation {
		return observe.Observation{Source: observe.SourceSnapshot, Resource: resource, Name: name, UID: name, ResourceVersion: "10",
			Object: []byte(`{"kind":"` + kind + `","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"` + name + `"` + meta +
				`},` + body + `}`)}
	}
	for meta, want := range map[string]string{
		"": "",
		`,"deletionTimestamp":"2026-01-02T10:59:00Z","finalizers":["foregroundDeletion"]`: verdict.DoubtObject +
			"ClusterRoleBinding b: it was being deleted by 2026-01-02T11:00:00Z",
	} {
		s := state.New("c")
		if _, err := s.LoadSnapshot(observe.Snapshot{Began: noon.Add(-time.Hour), Ended: noon.Add(-time.Hour), Kinds: kept.Resources(),
			Objects: []observe.Observation{
				object(kept.ClusterRoles, "ClusterRole", "r", "", `"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]`),
				object(kept.ClusterRoleBindings, "ClusterRoleBinding", "b", meta,
					`"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"ann"}],`+
						`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"}`),
			}}); err != nil {
			t.Fatal(err)
		}
		v := New(Config{}).Replay(askedAtNoon("ann", nil, "get", "/api/v1/namespaces/n/pods/p", "forbid", ""), s)
		if got := strings.Join(v.Missing, "\n"); v.Outcome != verdict.OutcomeDrift || got != want {
			t.Errorf("%s %s: %q, want %q", v.Outcome, v.Cause, got, want)
		}
	}
}

// TestLostAnswerIsNamed: what rests on a write nobody was told of says so: a refusal that its object
// could have lifted, and a record that not even both contents explain.
func TestLostAnswerIsNamed(t *testing.T) {
	s := state.New("c")
	object := func(resource, kind, name, body string) observe.Observation {
		return observe.Observation{Source: observe.SourceSnapshot, Resource: resource, Name: name, UID: name, ResourceVersion: "10",
			Object: []byte(`{"kind":"` + kind + `","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"` + name +
				`"},` + body + `}`)}
	}
	if _, err := s.LoadSnapshot(observe.Snapshot{Began: noon.Add(-time.Hour), Ended: noon.Add(-time.Hour), Kinds: kept.Resources(),
		Objects: []observe.Observation{
			object(kept.ClusterRoles, "ClusterRole", "r", `"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]`),
		}}); err != nil {
		t.Fatal(err)
	}
	obs, err := observe.FromEvent(&event.Event{Stage: event.StageResponseComplete, Level: event.LevelRequestResponse, Verb: "create",
		RequestURI: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
		ObjectRef:  &event.ObjectRef{Name: "b"}, RequestReceivedTimestamp: noon.Add(-time.Minute), StageTimestamp: noon.Add(-time.Minute),
		ResponseStatus: &event.Status{Code: 504},
		RequestObject: []byte(`{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"b"},` +
			`"subjects":[{"kind":"User","name":"ann"}],"roleRef":{"kind":"ClusterRole","name":"r"}}`)})
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(obs...)
	const lost = "ClusterRoleBinding b (" + state.LostAnswer + ")"
	const named = `RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User "ann"`
	for _, c := range []struct {
		user, decision, reason string
		outcome                verdict.Outcome
		missing                string
	}{
		{"ann", "forbid", "", verdict.OutcomeIndeterminate, lost},
		{"ann", "allow", named, verdict.OutcomeIndeterminate, lost},
		{"bob", "forbid", "", verdict.OutcomeMatch, ""},
		{"bob", "allow", named, verdict.OutcomeDrift, verdict.DoubtObject + "ClusterRoleBinding b: " + state.LostAnswer +
			" by 2026-01-02T11:59:00Z: it may have been done"},
	} {
		v := New(Config{}).Replay(askedAtNoon(c.user, nil, "get", "/api/v1/namespaces/n/pods/p", c.decision, c.reason), s)
		if got := strings.Join(v.Missing, "\n"); v.Outcome != c.outcome || got != c.missing {
			t.Errorf("%s %s: %s %s: %q, want %s %q", c.user, c.decision, v.Outcome, v.Cause, got, c.outcome, c.missing)
		}
	}
}

// TestCutBindingIsNamed: a binding of which a part was recorded leaves in doubt what its role gives, to
// whoever is not among its subjects, and nothing else; what it says of itself is why.
func TestCutBindingIsNamed(t *testing.T) {
	s := state.New("c")
	if _, err := s.LoadSnapshot(observe.Snapshot{Began: noon.Add(-time.Hour), Ended: noon.Add(-time.Hour), Kinds: kept.Resources(),
		Objects: []observe.Observation{
			{Source: observe.SourceSnapshot, Resource: kept.ClusterRoles, Name: "r", UID: "r", ResourceVersion: "10",
				Object: []byte(`{"kind":"ClusterRole","metadata":{"name":"r"},"rules":[{"verbs":["get"],"apiGroups":[""],` +
					`"resources":["pods"]}]}`)},
		}}); err != nil {
		t.Fatal(err)
	}
	body := []byte(`{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"b","uid":"u",` +
		`"resourceVersion":"12"},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"` +
		strings.Repeat("x", 9000) + `"},{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"ann"}],` +
		`"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"}}`)
	e := &event.Event{Stage: event.StageResponseComplete, Level: event.LevelRequestResponse, Verb: "create",
		RequestURI: "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
		ObjectRef:  &event.ObjectRef{Name: "b"}, RequestReceivedTimestamp: noon.Add(-time.Minute), StageTimestamp: noon.Add(-time.Minute),
		ResponseStatus: &event.Status{Code: 201}}
	event.StripBodies(e, 2*len(body), "digest")
	event.KeepBodies(e, body, body, 8000)
	obs, err := observe.FromEvent(e)
	if err != nil {
		t.Fatal(err)
	}
	s.Apply(obs...)
	const part = "ClusterRoleBinding b (" + state.PartRecorded + ")"
	const named = `RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "r" to User `
	for _, c := range []struct {
		user, verb, decision, reason string
		outcome                      verdict.Outcome
		missing                      string
	}{
		{"ann", "get", "allow", named + `"ann"`, verdict.OutcomeMatch, ""},
		{"bob", "get", "allow", named + `"bob"`, verdict.OutcomeIndeterminate, part},
		{"bob", "get", "forbid", "", verdict.OutcomeIndeterminate, part},
		{"bob", "delete", "forbid", "", verdict.OutcomeMatch, ""},
		{"ann", "delete", "allow", named + `"ann"`, verdict.OutcomeDrift,
			verdict.DoubtObject + "ClusterRoleBinding b: its event of 2026-01-02T11:59:00Z was too large to be kept whole: it holds " +
				"more than is known"},
	} {
		v := New(Config{}).Replay(askedAtNoon(c.user, nil, c.verb, "/api/v1/namespaces/n/pods/p", c.decision, c.reason), s)
		if got := strings.Join(v.Missing, "\n"); v.Outcome != c.outcome || got != c.missing {
			t.Errorf("%s %s %s: %s %s: %q, want %s %q", c.user, c.verb, c.decision, v.Outcome, v.Cause, got, c.outcome, c.missing)
		}
	}
}
