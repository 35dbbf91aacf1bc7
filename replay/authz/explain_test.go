package authz

import (
	"strings"
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/verdict"
)

func TestExplain(t *testing.T) {
	abac := server(config.ABAC)
	abac.Authorization.Authorizers[0].Policy = &config.Policy{Lines: []config.PolicyLine{
		{Line: 3, User: "alice", Readonly: true, Resource: "*", Namespace: "*", APIGroup: "*"},
		{Line: 4, User: "alice", Resource: "secrets", Namespace: "b", APIGroup: "*"},
		{Line: 5, User: "bob", Resource: "*", Namespace: "*", APIGroup: "*"},
		{Line: 6, User: "alice", Resource: "pods", Namespace: "a", APIGroup: "*"},
		{Line: 7, User: "alice", NonResourcePath: "/readyz"},
	}}
	remove := verdict.Attributes{ResourceRequest: true, Verb: "delete", APIVersion: "v1", Resource: "secrets", Namespace: "a", Name: "s"}
	for name, tc := range map[string]struct {
		cfg  *config.APIServer
		user *event.User
		a    *verdict.Attributes
		m    Moment
		want []string // of each authorizer
	}{
		"RBAC": {nil, &alice, &getOne, Moment{View: policy(t)}, []string{
			"masters: the user is not in the group system:masters", "node: the user is not a node (system:node:… in the " +
				"group system:nodes)",
			"rbac: no binding grants it"}},
		"a role that is not there": {server(config.RBAC), &bob, &listPods, Moment{View: policy(t)}, []string{
			"masters: the user is not in the group system:masters",
			`rbac: no binding grants it (RBAC: clusterrole.rbac.authorization.k8s.io "gone" not found)`}},
		"a node": {server(config.Node), &kubelet, &getOne, Moment{Graph: pods(graph.Absent)}, []string{
			"masters: the user is not in the group system:masters", "node: no relationship found between node 'n' and this object"}},
		"a node without pods": {server(config.Node, config.AlwaysDeny), &kubelet, &getOne, Moment{}, []string{
			"masters: the user is not in the group system:masters", "node: not known: pods bound to node n (path to secrets/a/s)",
			"alwaysdeny: allows nothing; those behind it may"}},
		"ABAC": {abac, &alice, &remove, Moment{}, []string{
			"masters: the user is not in the group system:masters",
			`abac: no line of the policy file allows it; line 3: it is for reading; line 4: it is for the namespace "b"; line 6: it is ` +
				`for the resource "pods"`}},
		"a path of ABAC": {abac, &alice, &healthz, Moment{}, []string{
			"masters: the user is not in the group system:masters", "abac: no line of the policy file allows it; line 7: it is for " +
				"the path /readyz"}},
		"allowed by ABAC": {abac, &bob, &remove, Moment{}, []string{
			"masters: the user is not in the group system:masters", "abac: allows it by line 5 of its policy file"}},
		"a webhook left out": {webhooked([]string{"true", `request.user == "zoe"`}, "Deny"), &alice, &getOne, Moment{}, []string{
			"masters: the user is not in the group system:masters", `hook: is not asked: the match condition request.user ` +
				`== "zoe" is false`}},
		"a webhook that refuses": {webhooked([]string{"true", `request.uid.size() / 0 > 1`}, "Deny"), &alice, &getOne, Moment{}, []string{
			"masters: the user is not in the group system:masters", "hook: refuses it, because the match condition " +
				"request.uid.size() / 0 > 1 failed"}},
		"a webhook that is asked": {webhooked(nil, "Deny", config.AlwaysDeny), &alice, &getOne, Moment{}, []string{
			"masters: the user is not in the group system:masters", "hook: is asked; its answer is in no log (not-evaluable:webhook hook)",
			"alwaysdeny: allows nothing; those behind it may"}},
		"no state": {server(config.RBAC), &alice, &getOne, Moment{}, []string{
			"masters: the user is not in the group system:masters", "rbac: not known: the cluster's roles and bindings"}},
		"nothing known": {config.Unknown("no flags"), &alice, &getOne, Moment{}, []string{
			"masters: the user is not in the group system:masters", "unknown: not known: no flags"}},
		"masters": {nil, &root, &getOne, Moment{}, []string{"masters: allows it", "node: is not asked: masters decides",
			"rbac: is not asked: masters decides"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := New(tc.cfg).Explain(tc.user, tc.a, &tc.m, 3)
			if len(got) != len(tc.want) {
				t.Fatalf("got %+v", got)
			}
			for i, s := range got {
				text := strings.Join(append([]string{s.Authorizer + ": " + s.Text}, s.Almost...), "; ")
				if text != tc.want[i] {
					t.Errorf("got  %s\nwant %s", text, tc.want[i])
				}
				if (s.RBAC != nil) != (s.Authorizer == verdict.AuthorizerRBAC && tc.m.View != nil) {
					t.Errorf("%s: RBAC's misses %v", s.Authorizer, s.RBAC)
				}
			}
		})
	}
}
