package replay

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/implied"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// impliedPolicy is what the cases about impersonation and implied checks are judged by.
const impliedPolicy = `
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: list-pods}
rules: [{verbs: [list, get], apiGroups: [""], resources: [pods]}]
---
kind: ClusterRoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: alice-lists}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: list-pods}
subjects: [{kind: User, name: alice}, {kind: User, name: carol}, {kind: ServiceAccount, name: app, namespace: default}]
---
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: impersonator}
rules:
- {verbs: [impersonate], apiGroups: [""], resources: [users, serviceaccounts]}
- {verbs: [impersonate], apiGroups: [""], resources: [groups], resourceNames: [devs, "system:masters"]}
---
kind: ClusterRoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: sue-impersonates}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: impersonator}
subjects: [{kind: User, name: sue}]
---
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: as-carol}
rules:
- {verbs: ["impersonate:user-info"], apiGroups: [authentication.k8s.io], resources: [users], resourceNames: [carol]}
- {verbs: ["impersonate:user-info"], apiGroups: [authentication.k8s.io], resources: [groups], resourceNames: ["system:masters"]}
- {verbs: ["impersonate-on:user-info:list"], apiGroups: [""], resources: [pods]}
---
kind: ClusterRoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: support}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: as-carol}
subjects: [{kind: User, name: sam}]
---
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: developer}
rules:
- {verbs: [get], apiGroups: [""], resources: [pods/exec, pods/attach, pods/portforward]}
- {verbs: [get, list, watch, create, update, patch, delete, deletecollection], apiGroups: [""], resources: [pods]}
- {verbs: [patch], apiGroups: [""], resources: [configmaps]}
- {verbs: [create, update, patch], apiGroups: [rbac.authorization.k8s.io], resources: [roles, rolebindings, clusterroles, clusterrolebindings]}
---
kind: ClusterRoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: dev}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: developer}
subjects: [{kind: Group, name: devs}]
---
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: escalator}
rules:
- {verbs: [escalate], apiGroups: [rbac.authorization.k8s.io], resources: [roles], resourceNames: [mine]}
- {verbs: [bind], apiGroups: [rbac.authorization.k8s.io], resources: [clusterroles], resourceNames: [cluster-admin]}
---
kind: ClusterRoleBinding
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: eve-escalates}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: escalator}
subjects: [{kind: User, name: eve}]
---
kind: ClusterRole
apiVersion: rbac.authorization.k8s.io/v1
metadata: {name: cluster-admin}
rules:
- {verbs: ["*"], apiGroups: ["*"], resources: ["*"]}
- {verbs: ["*"], nonResourceURLs: ["*"]}
---
kind: ServiceAccount
apiVersion: v1
metadata: {name: app, namespace: default, uid: sa-uid}
`

func impliedState(t *testing.T) *state.State {
	t.Helper()
	snap, _, err := observe.ReadSnapshot(strings.NewReader(jsonList(t, []byte(impliedPolicy))))
	if err != nil {
		t.Fatal(err)
	}
	snap.Kinds = kept.Resources()
	snap.Began, snap.Ended = clock(t, "10:00:00"), clock(t, "10:00:00")
	s := state.New("c")
	if _, err := s.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	return s
}

// conform is one request of a case with what is recorded of it.
type conform struct {
	verb, uri  string
	user       string
	groups     []string // beside system:authenticated
	extra      event.Extra
	as         string // impersonated user
	asGroups   []string
	constraint string
	body       string
	decision   string
	reason     string
	code       int32
	message    string
	minor      int // of the apiserver; 0 = 36
}

func (c *conform) event(t *testing.T) *event.Event {
	e := &event.Event{
		Level: event.LevelRequestResponse, AuditID: "id", Stage: event.StageResponseComplete, Verb: c.verb, RequestURI: c.uri,
		User: event.User{Username: c.user, Groups: append(slices.Clone(c.groups), authn.GroupAuthenticated),
			Extra: c.extra},
		RequestReceivedTimestamp: clock(t, "11:00:00"), StageTimestamp: clock(t, "11:00:00").Add(5 * time.Millisecond),
		ResponseStatus: &event.Status{Code: c.code, Message: c.message},
	}
	if c.as != "" {
		e.ImpersonatedUser = &event.User{Username: c.as, Groups: c.asGroups}
	}
	if c.constraint != "" {
		e.AuthenticationMetadata = &event.AuthenticationMetadata{ImpersonationConstraint: c.constraint}
	}
	if c.body != "" {
		e.RequestObject = []byte(c.body)
	}
	if c.decision != "" {
		e.Annotations = event.Pairs{{Key: event.AnnotationDecision, Value: c.decision}, {Key: event.AnnotationReason, Value: c.reason}}
	}
	return e
}

func (c *conform) replay(t *testing.T) *verdict.Verdict {
	t.Helper()
	minor := c.minor
	if minor == 0 {
		minor = 36
	}
	h := &config.History{}
	h.Add(time.Time{}, &config.APIServer{Digest: fmt.Sprint("minor ", minor), Minor: minor,
		Authorization: config.Authorization{Authorizers: []config.Authorizer{
			{Type: config.Node, Name: "node"}, {Type: config.RBAC, Name: "rbac"}}}})
	eng := New(Config{Apiserver: func(string, string) *config.History { return h }})
	return eng.Replay(c.event(t), impliedState(t))
}

// impliedText writes implied checks in short: name, question, recorded and replayed answer.
func impliedText(v *verdict.Verdict) string {
	var lines []string
	for i := range v.Implied {
		c := &v.Implied[i]
		line := c.Check + ": " + c.Attributes.Question() + ": recorded " + c.Recorded.String() + ", replayed " + c.Replayed.String()
		if c.Covered {
			line += ", covered"
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// relevant returns the contradictions of a verdict, those about how anybody authenticated left out.
func relevant(v *verdict.Verdict) (out []string) {
	for _, f := range v.Identity {
		if strings.HasPrefix(f, "imperson") || f == implied.ContradictionMismatch {
			out = append(out, f)
		}
	}
	return out
}

// TestConformanceImpersonation holds cases 46 to 52 of impersonation, each through the
// engine's door.
func TestConformanceImpersonation(t *testing.T) {
	const pods = "/api/v1/namespaces/d/pods"
	const allowed = `RBAC: allowed by ClusterRoleBinding "alice-lists" of ClusterRole "list-pods" to User "alice"`
	const allowedCarol = `RBAC: allowed by ClusterRoleBinding "alice-lists" of ClusterRole "list-pods" to User "carol"`
	for _, tc := range []struct {
		name           string
		ask            conform
		outcome        verdict.Outcome
		class          string
		replayed       verdict.Decision // of the impersonation
		mode           string
		implied        string
		contradictions []string
	}{
		{"46 legacy impersonation of a user with a group",
			conform{verb: "list", uri: pods, user: "sue", as: "alice", asGroups: []string{"devs", "system:authenticated"},
				decision: "allow", reason: allowed, code: 200},
			verdict.OutcomeMatch, "", verdict.DecisionAllow, "legacy",
			"impersonation: impersonate users alice: recorded allow, replayed allow\n" +
				"impersonation: impersonate groups devs: recorded allow, replayed allow", nil},
		{"46 a group that is not granted",
			conform{verb: "list", uri: pods, user: "sue", as: "alice", asGroups: []string{"ops", "system:authenticated"}, decision: "allow",
				reason: allowed, code: 200},
			verdict.OutcomeDrift, verdict.ClassImpersonation, verdict.DecisionForbid, "legacy",
			"impersonation: impersonate users alice: recorded allow, replayed allow\n" +
				"impersonation: impersonate groups ops: recorded allow, replayed forbid", []string{implied.ContradictionUnauthorized}},
		{"46 the group the apiserver adds was asked for when it is not the last",
			conform{verb: "list", uri: pods, user: "sue", as: "alice", asGroups: []string{"system:authenticated", "devs"},
				decision: "allow", reason: allowed, code: 200},
			verdict.OutcomeDrift, verdict.ClassImpersonation, verdict.DecisionForbid, "legacy",
			"impersonation: impersonate users alice: recorded allow, replayed allow\n" +
				"impersonation: impersonate groups system:authenticated: recorded allow, replayed forbid\n" +
				"impersonation: impersonate groups devs: recorded allow, replayed allow", []string{implied.ContradictionUnauthorized}},
		{"47 service account, its three groups are the apiserver's",
			conform{verb: "list", uri: pods, user: "sue", as: "system:serviceaccount:default:app",
				asGroups: []string{"system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"}, decision: "allow",
				reason: `RBAC: allowed by ClusterRoleBinding "alice-lists" of ClusterRole "list-pods" to ServiceAccount "app/default"`,
				code:   200},
			verdict.OutcomeMatch, "", verdict.DecisionAllow, "legacy",
			"impersonation: impersonate serviceaccounts app in default: recorded allow, replayed allow", nil},
		{"47 service account that does not exist",
			conform{verb: "list", uri: pods, user: "sue", as: "system:serviceaccount:default:gone",
				asGroups: []string{"system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"},
				decision: "forbid", code: 403},
			verdict.OutcomeMatch, "", verdict.DecisionAllow, "legacy",
			"impersonation: impersonate serviceaccounts gone in default: recorded allow, replayed allow",
			[]string{implied.ContradictionAccountUnknown}},
		{"48 group without a user",
			conform{verb: "list", uri: pods, user: "sue", code: 400,
				message: `requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"devs"}, Extra:map[string][]string(nil)} without ` +
					`impersonating a user name`},
			verdict.OutcomeNotJudged, verdict.ClassImpersonationBad, verdict.DecisionForbid, "", "", nil},
		{"48 group without a user, the feature off",
			conform{verb: "list", uri: pods, user: "sue", code: 400, minor: 35, message: `requested [{Group  devs    }] without ` +
				`impersonating a user`},
			verdict.OutcomeNotJudged, verdict.ClassImpersonationBad, verdict.DecisionForbid, "", "", nil},
		{"48 group without a user, worded by a feature that is off",
			conform{verb: "list", uri: pods, user: "sue", code: 400, minor: 35,
				message: `requested &user.DefaultInfo{Name:"", UID:"", Groups:[]string{"devs"}, Extra:map[string][]string(nil)} without ` +
					`impersonating a user name`},
			verdict.OutcomeNotJudged, verdict.ClassImpersonationBad, verdict.DecisionForbid, "", "",
			[]string{authn.ContradictionImpersonatedMode}},
		{"49 refused: the mode that fails first",
			conform{verb: "list", uri: pods, user: "bob", code: 403,
				message: `pods is forbidden: User "bob" cannot impersonate-on:user-info:list resource "pods" in API group "" in ` +
					`the namespace "d"`},
			verdict.OutcomeNotJudged, verdict.ClassImpersonationDenied, verdict.DecisionForbid, "impersonate:user-info",
			"impersonation: impersonate-on:user-info:list pods in d: recorded forbid, replayed forbid", nil},
		{"49 refused, legacy",
			conform{verb: "list", uri: pods, user: "bob", code: 403, minor: 35,
				message: `users "alice" is forbidden: User "bob" cannot impersonate resource "users" in API group "" at the cluster scope`},
			verdict.OutcomeNotJudged, verdict.ClassImpersonationDenied, verdict.DecisionForbid, "legacy",
			"impersonation: impersonate users alice: recorded forbid, replayed forbid", nil},
		{"49 refused, which the policy allows",
			conform{verb: "list", uri: pods, user: "sue", code: 403, minor: 35,
				message: `users "alice" is forbidden: User "sue" cannot impersonate resource "users" in API group "" at the cluster scope`},
			verdict.OutcomeNotJudged, verdict.ClassImpersonationDenied, verdict.DecisionAllow, "legacy",
			"impersonation: impersonate users alice: recorded forbid, replayed allow", []string{implied.ContradictionMismatch}},
		{"49 refused at a piece: the request itself was granted",
			conform{verb: "list", uri: pods, user: "sam", code: 403,
				message: `users.authentication.k8s.io "dave" is forbidden: User "sam" cannot impersonate:user-info resource "users" in ` +
					`API group "authentication.k8s.io" at the cluster scope`},
			verdict.OutcomeNotJudged, verdict.ClassImpersonationDenied, verdict.DecisionForbid, "impersonate:user-info",
			"impersonation: impersonate-on:user-info:list pods in d: recorded allow, replayed allow\n" +
				"impersonation: impersonate:user-info users.authentication.k8s.io dave: recorded forbid, replayed forbid", nil},
		{"49 refused at a piece, which the mode cannot come to",
			conform{verb: "list", uri: "/api/v1/namespaces/d/secrets", user: "sam", code: 403,
				message: `users.authentication.k8s.io "dave" is forbidden: User "sam" cannot impersonate:user-info resource "users" in ` +
					`API group "authentication.k8s.io" at the cluster scope`},
			verdict.OutcomeNotJudged, verdict.ClassImpersonationDenied, verdict.DecisionForbid, "impersonate:user-info",
			"impersonation: impersonate-on:user-info:list secrets in d: recorded allow, replayed forbid\n" +
				"impersonation: impersonate:user-info users.authentication.k8s.io dave: recorded forbid, replayed forbid",
			[]string{implied.ContradictionMismatch}},
		{"49 refusal of another request",
			conform{verb: "list", uri: pods, user: "bob", code: 403,
				message: `secrets is forbidden: User "bob" cannot impersonate-on:user-info:list resource "secrets" in API group "" in ` +
					`the namespace "d"`},
			verdict.OutcomeNotJudged, verdict.ClassImpersonationDenied, verdict.DecisionForbid, "impersonate:user-info",
			"impersonation: impersonate-on:user-info:list pods in d: recorded forbid, replayed forbid",
			[]string{implied.ContradictionMismatch}},
		{"49 refused with a reason RBAC does not give",
			conform{verb: "list", uri: pods, user: "bob", code: 403,
				message: `pods is forbidden: User "bob" cannot impersonate-on:user-info:list resource "pods" in API group "" in the ` +
					`namespace "d": because`},
			verdict.OutcomeNotJudged, verdict.ClassImpersonationDenied, verdict.DecisionForbid, "impersonate:user-info",
			"impersonation: impersonate-on:user-info:list pods in d: recorded forbid, replayed forbid",
			[]string{implied.ContradictionMismatch}},
		{"49 refused by a mode the version does not have",
			conform{verb: "list", uri: pods, user: "bob", code: 403, minor: 34,
				message: `pods is forbidden: User "bob" cannot impersonate-on:user-info:list resource "pods" in API group "" in ` +
					`the namespace "d"`},
			verdict.OutcomeNotJudged, verdict.ClassImpersonationDenied, verdict.DecisionForbid, "impersonate:user-info",
			"impersonation: impersonate-on:user-info:list pods in d: recorded forbid, replayed forbid",
			[]string{authn.ContradictionImpersonatedMode}},
		{"50 constrained",
			conform{verb: "list", uri: pods, user: "sam", as: "carol", asGroups: []string{"system:authenticated"},
				constraint: "impersonate:user-info", decision: "allow", reason: allowedCarol, code: 200},
			verdict.OutcomeMatch, "", verdict.DecisionAllow, "impersonate:user-info",
			"impersonation: impersonate-on:user-info:list pods in d: recorded allow, replayed allow\n" +
				"impersonation: impersonate:user-info users.authentication.k8s.io carol: recorded allow, replayed allow", nil},
		{"50 constrained, on what it may not",
			conform{verb: "list", uri: "/api/v1/namespaces/d/secrets", user: "sam", code: 403,
				message: `secrets is forbidden: User "sam" cannot impersonate-on:user-info:list resource "secrets" in API group "" in ` +
					`the namespace "d"`},
			verdict.OutcomeNotJudged, verdict.ClassImpersonationDenied, verdict.DecisionForbid, "impersonate:user-info",
			"impersonation: impersonate-on:user-info:list secrets in d: recorded forbid, replayed forbid", nil},
		{"50 constrained, while the version does not have it",
			conform{verb: "list", uri: pods, user: "sam", as: "carol", asGroups: []string{"system:authenticated"},
				constraint: "impersonate:user-info", decision: "allow", reason: allowedCarol, code: 200, minor: 35},
			verdict.OutcomeMatch, "", verdict.DecisionAllow, "impersonate:user-info",
			"impersonation: impersonate-on:user-info:list pods in d: recorded allow, replayed allow\n" +
				"impersonation: impersonate:user-info users.authentication.k8s.io carol: recorded allow, replayed allow",
			[]string{authn.ContradictionImpersonatedMode}},
		{"51 system:masters by legacy",
			conform{verb: "list", uri: "/api/v1/secrets", user: "sue", as: "alice", asGroups: []string{"system:masters",
				"system:authenticated"}, decision: "allow", code: 200},
			verdict.OutcomeMatch, "", verdict.DecisionAllow, "legacy",
			"impersonation: impersonate users alice: recorded allow, replayed allow\n" +
				"impersonation: impersonate groups system:masters: recorded allow, replayed allow",
			[]string{authn.ContradictionImpersonatedRoot}},
		{"51 system:masters by constrained",
			conform{verb: "list", uri: pods, user: "sam", as: "carol", asGroups: []string{"system:masters", "system:authenticated"},
				constraint: "impersonate:user-info", decision: "allow", code: 200},
			verdict.OutcomeDrift, verdict.ClassImpersonatedRoot, verdict.DecisionForbid, "impersonate:user-info", "",
			[]string{authn.ContradictionImpersonatedRoot}},
		{"51 system:masters refused by constrained",
			conform{verb: "list", uri: pods, user: "sam", code: 403,
				message: `groups.authentication.k8s.io "system:masters" is forbidden: User "sam" cannot impersonate:user-info resource ` +
					`"groups" in API group "authentication.k8s.io" at the cluster scope: impersonating the system:masters ` +
					`group is not allowed`},
			verdict.OutcomeNotJudged, verdict.ClassImpersonationDenied, verdict.DecisionForbid, "impersonate:user-info",
			"impersonation: impersonate-on:user-info:list pods in d: recorded allow, replayed allow", nil},
		{"52 node by legacy: no groups of nodes, and the node authorizer is silent",
			conform{verb: "get", uri: "/api/v1/nodes/n1", user: "sue", as: "system:node:n1", asGroups: []string{"system:authenticated"},
				decision: "forbid", code: 403},
			verdict.OutcomeMatch, "", verdict.DecisionAllow, "legacy",
			"impersonation: impersonate users system:node:n1: recorded allow, replayed allow", nil},
		{"52 node by arbitrary-node without the groups",
			conform{verb: "get", uri: "/api/v1/nodes/n1", user: "sue", as: "system:node:n1", asGroups: []string{"system:authenticated"},
				constraint: "impersonate:arbitrary-node", decision: "forbid", code: 403},
			verdict.OutcomeDrift, verdict.ClassImpersonation, verdict.DecisionForbid, "impersonate:arbitrary-node", "",
			[]string{authn.ContradictionImpersonatedMode}},
		{"nobody impersonates",
			conform{verb: "list", uri: pods, user: authn.UserAnonymous, as: "alice", asGroups: []string{"system:authenticated"},
				decision: "allow", reason: allowed, code: 200},
			verdict.OutcomeDrift, verdict.ClassImpersonation, verdict.DecisionForbid, "legacy",
			"impersonation: impersonate users alice: recorded allow, replayed forbid", []string{authn.ContradictionAnonymousImposter,
				implied.ContradictionUnauthorized}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			v := tc.ask.replay(t)
			if v.Outcome != tc.outcome || v.Class != tc.class {
				t.Errorf("%s %q (%s), want %s %q", v.Outcome, v.Class, v.Cause, tc.outcome, tc.class)
			}
			if c := v.Impersonation; c == nil || c.Replayed != tc.replayed || c.Mode != tc.mode {
				t.Fatalf("impersonation %+v, want %s by %s", c, tc.replayed, tc.mode)
			} else if tc.ask.as == "" && (c.Recorded != verdict.DecisionForbid || c.Cause == "") ||
				tc.ask.as != "" && c.Recorded != verdict.DecisionAllow {
				t.Errorf("recorded %s, cause %q", c.Recorded, c.Cause)
			}
			if got := impliedText(v); got != tc.implied {
				t.Errorf("got\n%s\nwant\n%s", got, tc.implied)
			}
			got := relevant(v)
			slices.Sort(got)
			if want := slices.Sorted(slices.Values(tc.contradictions)); !slices.Equal(got, want) {
				t.Errorf("contradictions %v (%q), want %v", got, v.Evidence, want)
			}
		})
	}
}

// TestConformanceImplied holds cases 53 to 58 of checks behind the filter, each through the
// engine's door. The requests themselves are all allowed.
func TestConformanceImplied(t *testing.T) {
	const rbac = "/apis/rbac.authorization.k8s.io/v1"
	devs := []string{"devs"}
	reason := `RBAC: allowed by ClusterRoleBinding "dev" of ClusterRole "developer" to Group "devs"`
	role := func(rules string) string { return `{"metadata":{"name":"mine"},"rules":[` + rules + `]}` }
	binding := func(kind, name string) string {
		return `{"metadata":{"name":"b"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"` + kind + `","name":"` + name + `"}}`
	}
	const secrets = `{"verbs":["get"],"apiGroups":[""],"resources":["secrets"]}`
	const pods = `{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}`
	const everyVerb = `{"verbs":["*"],"apiGroups":[""],"resources":["pods"]}`
	grant := func(resource, lines string) string {
		return resource + `.rbac.authorization.k8s.io "x" is forbidden: user "bob" (groups=["devs" "system:authenticated"]) is ` +
			`attempting to grant RBAC permissions not currently held:` + "\n" + lines
	}
	for _, tc := range []struct {
		name           string
		ask            conform
		implied        string
		contradictions []string
	}{
		{"53 websocket without create",
			conform{verb: "get", uri: "/api/v1/namespaces/d/pods/x/exec", user: "bob", groups: devs, code: 403,
				message: `pods "x" is forbidden: `},
			"websocket-create: create pods/exec x in d: recorded forbid, replayed forbid", nil},
		{"53 websocket before 1.35",
			conform{verb: "get", uri: "/api/v1/namespaces/d/pods/x/exec", user: "bob", groups: devs, code: 101, minor: 34}, "", nil},
		{"53 websocket that should have been refused",
			conform{verb: "get", uri: "/api/v1/namespaces/d/pods/x/exec", user: "bob", groups: devs, code: 101},
			"websocket-create: create pods/exec x in d: recorded allow, replayed forbid", []string{implied.ContradictionMismatch}},
		{"54 role beyond the writer's rights",
			conform{verb: "create", uri: rbac + "/namespaces/d/roles", user: "bob", groups: devs, body: role(secrets), code: 403,
				message: grant("roles", `{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`)},
			"role-escalate: escalate roles.rbac.authorization.k8s.io in d: recorded forbid, replayed forbid", nil},
		{"54 role within them",
			conform{verb: "create", uri: rbac + "/namespaces/d/roles", user: "bob", groups: devs, body: role(pods), code: 201},
			"role-escalate: escalate roles.rbac.authorization.k8s.io in d: recorded allow, replayed allow, covered", nil},
		{"54 escalate by name does not help a create",
			conform{verb: "create", uri: rbac + "/namespaces/d/roles", user: "eve", groups: devs, body: role(secrets), code: 403,
				message: grant("roles", `{APIGroups:[""], Resources:["secrets"], Verbs:["get"]}`)},
			"role-escalate: escalate roles.rbac.authorization.k8s.io in d: recorded forbid, replayed forbid", nil},
		{"54 escalate by name helps an update that creates",
			conform{verb: "update", uri: rbac + "/namespaces/d/roles/mine", user: "eve", groups: devs, body: role(secrets), code: 201},
			"role-escalate: escalate roles.rbac.authorization.k8s.io mine in d: recorded allow, replayed allow\n" +
				"create-on-update: create roles.rbac.authorization.k8s.io mine in d: recorded allow, replayed allow", nil},
		{"54 a role that should have been refused",
			conform{verb: "create", uri: rbac + "/namespaces/d/roles", user: "bob", groups: devs, body: role(secrets), code: 201},
			"role-escalate: escalate roles.rbac.authorization.k8s.io in d: recorded allow, replayed forbid",
			[]string{implied.ContradictionMismatch}},
		{"54 a role that aggregates",
			conform{verb: "create", uri: rbac + "/clusterroles", user: "bob", groups: devs,
				body: `{"aggregationRule":{"clusterRoleSelectors":[{}]}}`, code: 403,
				message: `clusterroles.rbac.authorization.k8s.io "x" is forbidden: must have cluster-admin privileges to use ` +
					`the aggregationRule`},
			"role-escalate: escalate clusterroles.rbac.authorization.k8s.io: recorded forbid, replayed forbid", nil},
		{"55 binding to cluster-admin",
			conform{verb: "create", uri: rbac + "/namespaces/d/rolebindings", user: "bob", groups: devs, body: binding("ClusterRole",
				"cluster-admin"), code: 403,
				message: grant("rolebindings",
					"{APIGroups:[\"*\"], Resources:[\"*\"], Verbs:[\"*\"]}\n{NonResourceURLs:[\"*\"], Verbs:[\"*\"]}")},
			"role-bind: bind clusterroles.rbac.authorization.k8s.io cluster-admin in d: recorded forbid, replayed forbid", nil},
		{"55 binding to cluster-admin with bind",
			conform{verb: "create", uri: rbac + "/namespaces/d/rolebindings", user: "eve", groups: devs, body: binding("ClusterRole",
				"cluster-admin"), code: 201},
			"role-bind: bind clusterroles.rbac.authorization.k8s.io cluster-admin in d: recorded allow, replayed allow", nil},
		{"55 bind is not escalate",
			conform{verb: "create", uri: rbac + "/clusterrolebindings", user: "eve", groups: devs, body: binding("ClusterRole",
				"developer"), code: 201},
			"role-bind: bind clusterroles.rbac.authorization.k8s.io developer: recorded allow, replayed allow, covered", nil},
		{"56 binding to a missing role",
			conform{verb: "create", uri: rbac + "/namespaces/d/rolebindings", user: "bob", groups: devs,
				body: binding("Role", "absent"), code: 404,
				message: `rolebindings.rbac.authorization.k8s.io "absent" not found`},
			"role-bind: bind roles.rbac.authorization.k8s.io absent in d: recorded forbid, replayed forbid", nil},
		{"57 apply of an absent object with patch alone",
			conform{verb: "patch", uri: "/api/v1/namespaces/d/configmaps/c?fieldManager=m", user: "bob", groups: devs,
				body: `{}`, code: 403,
				message: `configmaps "c" is forbidden: User "bob" cannot create resource "configmaps" in API group "" in ` +
					`the namespace "d"`},
			"create-on-update: create configmaps c in d: recorded forbid, replayed forbid", nil},
		{"57 apply that created without the right to",
			conform{verb: "patch", uri: "/api/v1/namespaces/d/configmaps/c?fieldManager=m", user: "bob", groups: devs,
				body: `{}`, code: 201},
			"create-on-update: create configmaps c in d: recorded allow, replayed forbid", []string{implied.ContradictionMismatch}},
		{"58 all verbs do not cover every verb",
			conform{verb: "create", uri: rbac + "/namespaces/d/roles", user: "bob", groups: devs, body: role(everyVerb), code: 403,
				message: grant("roles", `{APIGroups:[""], Resources:["pods"], Verbs:["*"]}`)},
			"role-escalate: escalate roles.rbac.authorization.k8s.io in d: recorded forbid, replayed forbid", nil},
		{"a body the log does not hold",
			conform{verb: "create", uri: rbac + "/namespaces/d/roles", user: "bob", groups: devs, code: 201},
			"role-escalate: escalate roles.rbac.authorization.k8s.io in d: recorded allow, replayed none", nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			tc.ask.decision, tc.ask.reason = "allow", reason
			v := tc.ask.replay(t)
			if v.Outcome != verdict.OutcomeMatch {
				t.Errorf("%s %s %s", v.Outcome, v.Class, v.Cause)
			}
			if got := impliedText(v); got != tc.implied {
				t.Errorf("got\n%s\nwant\n%s", got, tc.implied)
			}
			if got := relevant(v); !slices.Equal(got, tc.contradictions) {
				t.Errorf("contradictions %v (%q), want %v", got, v.Evidence, tc.contradictions)
			}
			for i := range v.Implied {
				c := &v.Implied[i]
				if c.Replayed == verdict.DecisionAllow && !c.Covered && len(c.Grants) == 0 {
					t.Errorf("%s is allowed by nothing", c.Check)
				}
				if c.Replayed == verdict.DecisionNone && len(c.Missing) == 0 {
					t.Errorf("%s is open and lacks nothing", c.Check)
				}
			}
		})
	}
}
