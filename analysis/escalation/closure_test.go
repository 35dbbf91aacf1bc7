package escalation_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/analysis/escalation"
	"github.com/retrial-io/retrial/rbacindex"
)

// generated makes a small policy in which every right of every way occurs, few at a time.
func generated(rng *rand.Rand) []any {
	pick := func(from ...string) string { return from[rng.IntN(len(from))] }
	resources := []string{"pods", "pods/exec", "secrets", "serviceaccounts/token", "nodes/proxy", "users", "groups", "serviceaccounts",
		"clusterroles", "clusterroles", "roles", "roles",
		"clusterrolebindings", "clusterrolebindings", "rolebindings", "rolebindings", "deployments", "certificatesigningrequests",
		"certificatesigningrequests/approval", "signers",
		"mutatingwebhookconfigurations", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings", "*"}
	groups := map[string]string{"deployments": "apps", "certificatesigningrequests": groupCerts,
		"certificatesigningrequests/approval": groupCerts, "signers": groupCerts,
		"clusterroles": groupRBAC, "roles": groupRBAC, "clusterrolebindings": groupRBAC, "rolebindings": groupRBAC,
		"mutatingwebhookconfigurations": groupAdmission, "mutatingadmissionpolicies": groupAdmission,
		"mutatingadmissionpolicybindings": groupAdmission, "*": ""}
	verbs := []string{"create", "create", "update", "patch", "get", "deletecollection", "bind", "escalate", "impersonate", "approve"}
	rules := func() (out []rbacv1.PolicyRule) {
		for range 1 + rng.IntN(3) {
			r := rbacv1.PolicyRule{}
			for range 1 + rng.IntN(2) {
				res := resources[rng.IntN(len(resources))]
				r.Resources, r.APIGroups = append(r.Resources, res), append(r.APIGroups, groups[res])
			}
			for range 1 + rng.IntN(3) {
				r.Verbs = append(r.Verbs, pick(verbs...))
			}
			if rng.IntN(30) == 0 {
				r.Verbs = []string{"*"}
			}
			if rng.IntN(3) > 0 {
				r.ResourceNames = []string{pick("r1", "r2", "b1", "b2", "a", "b", "g", "x", "gone", "")}
				if rng.IntN(3) == 0 {
					r.ResourceNames = append(r.ResourceNames, pick("r3", "b3", "system:masters", "kubernetes.io/*", "x"))
				}
			}
			out = append(out, r)
		}
		return out
	}
	var out []any
	for _, name := range []string{"r1", "r2", "r3"} {
		out = append(out, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules()})
		for _, ns := range []string{"n", "m"} {
			if rng.IntN(2) == 0 {
				out = append(out, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}, Rules: rules()})
			}
		}
	}
	everything := []rbacv1.PolicyRule{{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"*"}}}
	switch rng.IntN(4) {
	case 0:
	case 1:
		out = append(out, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "r4"}, Rules: everything})
	default:
		out = append(out, clusterRole("r4", everything...))
	}
	subject := func() rbacv1.Subject {
		switch rng.IntN(6) {
		case 0, 1, 2:
			return rbacv1.Subject{Kind: "User", Name: pick("a", "b", "c")}
		case 3:
			return rbacv1.Subject{Kind: "Group", Name: pick("g", "g", "system:serviceaccounts:n", "system:serviceaccounts",
				"system:authenticated")}
		}
		return rbacv1.Subject{Kind: "ServiceAccount", Namespace: pick("n", "m"), Name: pick("x", "y")}
	}
	for i := range 3 + rng.IntN(5) {
		meta := metav1.ObjectMeta{Name: fmt.Sprint("b", i), Namespace: pick("", "", "n", "m")}
		subjects := []rbacv1.Subject{subject(), subject()}[:1+rng.IntN(2)]
		ref := rbacv1.RoleRef{Kind: "ClusterRole", Name: pick("r1", "r2", "r3", "gone")}
		if i == 0 && rng.IntN(4) > 0 {
			ref.Name = "r4"
		}
		if meta.Namespace == "" {
			out = append(out, &rbacv1.ClusterRoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref})
			continue
		}
		ref.Kind = pick("ClusterRole", "Role")
		out = append(out, &rbacv1.RoleBinding{ObjectMeta: meta, Subjects: subjects, RoleRef: ref})
	}
	return out
}

// TestClosureIsTheFixPoint: on generated policies the cost of every shortest path equals the cost
// found by asking for every request in every state, and every path is valid.
func TestClosureIsTheFixPoint(t *testing.T) {
	n := 200
	if s := os.Getenv("ESCALATION_POLICIES"); s != "" {
		var err error
		if n, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	reached, seen := 0, map[escalation.Edge]int{}
	for seed := range n {
		policy := snapshot(t, generated(rand.New(rand.NewPCG(uint64(seed), 5)))...)
		accounts := escalation.Accounts{There: []escalation.Account{{Namespace: "n", Name: "x"}, {Namespace: "m", Name: "x"}},
			Complete: seed%2 == 0}
		c := escalation.New(policy, accounts)
		tw := newTwin(policy, accounts)
		for _, user := range append(slices.Clone(tw.users), "g") {
			from, name, groups := userBeing(user, true), user, []string(nil)
			if user == "g" {
				from, name, groups = groupBeing("g", true), "", []string{"g"}
			}
			want := tw.far(from)
			delete(want, from.user)
			got := map[string]int{}
			r := c.Reach(name, groups, 0)
			for i := range r.Goals {
				if p := &r.Goals[i]; i == 0 {
					got["goal"] = cost(p)
					reached++
				}
				valid(t, &r.Goals[i])
			}
			for i := range r.Others {
				p := &r.Others[i]
				valid(t, p)
				for _, s := range p.Steps {
					seen[s.Edge]++
				}
				switch p.To.Kind {
				case escalation.User, escalation.ServiceAccount:
					got[p.To.UserName()] = cost(p)
				case escalation.Namespace:
					got[p.To.String()] = cost(p)
				}
			}
			if !maps.Equal(got, want) {
				t.Fatalf("seed %d: %s: reaches %v, want %v", seed, user, got, want)
			}
			paths, _ := c.Reaching(func(n escalation.Node) bool { return name != "" && n.UserName() == name }, 0)
			for i := range paths {
				valid(t, &paths[i])
				if cost(&paths[i]) != want["goal"] {
					t.Fatalf("seed %d: %s: with all others %s, want %d", seed, user, line(&paths[i]), want["goal"])
				}
			}
		}
	}
	t.Logf("%d of the subjects reach a goal; others are reached by %v", reached, seen)
	if len(seen) < 9 {
		t.Errorf("the policies do not bring all ways about: %v", seen)
	}
}

// cost returns what the twin counts of a path.
func cost(p *escalation.Path) int { return len(p.Steps)*twinStep + p.Presumptions() }

func newTwin(policy *rbacindex.Snapshot, accounts escalation.Accounts) *twin {
	t := &twin{policy: policy, namespaces: []string{"n", "m"}, allowed: map[asked]bool{}, absent: map[string]bool{},
		names: []string{"r1", "r2", "r3", "r4", "gone", "a", "b", "c", "g", "x", "y", "system:masters", "kubernetes.io/*", unheard},
		groups: []string{"system:authenticated", "system:unauthenticated", "system:serviceaccounts", "system:serviceaccounts:n",
			"system:serviceaccounts:m"}}
	for i := range 9 {
		t.names = append(t.names, fmt.Sprint("b", i))
	}
	for _, u := range []string{"a", "b", "c", "system:anonymous"} {
		if u == "system:anonymous" || policy.Names(u, false) {
			t.users = append(t.users, u)
		}
	}
	if policy.Names("g", true) {
		t.groups = append(t.groups, "g")
	}
	for _, a := range []escalation.Account{{Namespace: "n", Name: "x"}, {Namespace: "m", Name: "x"}, {Namespace: "n", Name: "y"},
		{Namespace: "m", Name: "y"}} {
		user := "system:serviceaccount:" + a.Namespace + ":" + a.Name
		there := slices.Contains(accounts.There, a)
		if !there && !policy.Names(user, false) {
			continue
		}
		t.users = append(t.users, user)
		t.absent[user] = accounts.Complete && !there
	}
	return t
}
