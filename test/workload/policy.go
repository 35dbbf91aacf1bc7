package workload

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// policy is objects as JSON.
type policy struct{ items []string }

func (p *policy) add(format string, args ...any) {
	p.items = append(p.items, fmt.Sprintf(format, args...))
}

// Snapshot returns the cluster's policy: Kubernetes' own, as the bundled sample has it, and
// what lets the actors of a Generator with this Config do what they do. It does not change
// while events are made.
func Snapshot(cfg Config) (observe.Snapshot, error) {
	g := New(cfg)
	own, _, err := observe.ReadSnapshot(strings.NewReader(g.policy()))
	if err != nil {
		return own, fmt.Errorf("read the made policy: %w", err)
	}
	r, err := sample.OpenState()
	if err != nil {
		return own, fmt.Errorf("open the sample's policy: %w", err)
	}
	defer r.Close()
	snap, _, err := observe.ReadSnapshot(r)
	if err != nil {
		return own, fmt.Errorf("read the sample's policy: %w", err)
	}
	// Only these are listed completely: what depends on pods and secrets stays open.
	snap.Kinds = []string{kept.ClusterRoles, kept.ClusterRoleBindings, kept.Roles, kept.RoleBindings, kept.Namespaces, kept.ServiceAccounts}
	theirs := slices.DeleteFunc(snap.Objects, func(o observe.Observation) bool { return o.Resource == kept.ServiceAccounts })
	snap.Objects = append(theirs, own.Objects...)
	snap.Since = g.cfg.Start.Add(-time.Hour)
	snap.Began, snap.Ended = snap.Since, snap.Since
	return snap, nil
}

// policy returns the objects as a List.
func (g *Generator) policy() string {
	var p policy
	for _, n := range append([]string{"ci", "kube-node-lease"}, g.namespaces...) {
		p.add(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":%q,"uid":"ns-%s","resourceVersion":"10"}}`, n, n)
	}
	const rules = `{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":%q,"uid":"cr-%s",` +
		`"resourceVersion":"10"},"rules":[%s]}`
	const binding = `{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":%q,"uid":"crb-%s",` +
		`"resourceVersion":"10"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q},` +
		`"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":%q}]}`
	p.add(rules, "engineer", "engineer", `{"apiGroups":["","apps","batch"],"resources":["pods","pods/log","events","deployments","jobs",`+
		`"services","configmaps"],"verbs":["get","list","watch"]},{"apiGroups":[""],"resources":["pods/exec","pods/portforward"],`+
		`"verbs":["create","get"]},{"apiGroups":["apps"],"resources":["deployments"],"verbs":["patch"]},{"apiGroups":[""],`+
		`"resources":["pods"],"verbs":["delete"]}`)
	p.add(binding, "oidc:engineers:view", "engineers", "engineer", "oidc:engineers")
	p.add(rules, "ci:deployer", "deployer", `{"apiGroups":["","apps"],"resources":["secrets","configmaps","services","deployments"],`+
		`"verbs":["get","list","create","update","patch"]},{"apiGroups":["rbac.authorization.k8s.io"],"resources":["roles",`+
		`"rolebindings"],"verbs":["get","create","update","bind","escalate"]}`)
	p.add(binding, "ci:deployers", "deployers", "ci:deployer", "system:serviceaccounts:ci")
	for _, a := range append(slices.Clone(g.controllers), g.deployers...) {
		if a.user.UID != "" {
			p.add(`{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"10"}}`,
				a.name, a.namespace, a.user.UID)
		}
	}
	for _, w := range g.workloads {
		policyOf(&p, w)
	}
	var b bytes.Buffer
	b.WriteString(`{"apiVersion":"v1","kind":"List","metadata":{},"items":[` + strings.Join(p.items, ",") + `]}`)
	return b.String()
}

// policyOf adds the role and the binding of a workload: in its namespace, or everywhere for
// an operator.
func policyOf(p *policy, w *workload) {
	p.add(`{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":%q,"resourceVersion":"10"}}`, w.name,
		w.namespace, w.pods[0].user.UID)
	leases := `{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["get","update","create"]}`
	if w.kind == 3 {
		role := "operator:" + w.name
		p.add(`{"kind":"ClusterRole","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":%q,"uid":"cr-%s",`+
			`"resourceVersion":"10"},"rules":[`+leases+
			`,{"apiGroups":["ops.example.com"],"resources":["%ss","%ss/status"],"verbs":["get","list","watch","update","patch"]},`+
			`{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]},{"apiGroups":["apps"],"resources":["deployments"],"verbs":["get",`+
			`"list","watch","create","patch"]},{"apiGroups":[""],"resources":["persistentvolumeclaims"],"verbs":["create","delete"]}]}`,
			role, w.name, w.name, w.name)
		p.add(`{"kind":"ClusterRoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"%s:%s","uid":"crb-%s-%s",`+
			`"resourceVersion":"10"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q},`+
			`"subjects":[{"kind":"ServiceAccount","name":%q,"namespace":%q}]}`,
			w.namespace, w.name, w.namespace, w.name, role, w.name, w.namespace)
		return
	}
	p.add(`{"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":%q,"namespace":%q,"uid":"r-%s-%s",`+
		`"resourceVersion":"10"},"rules":[`+leases+
		`,{"apiGroups":[""],"resources":["configmaps","pods","services","endpoints","events"],"verbs":["get","list","watch","create",`+
		`"update","patch"]},{"apiGroups":[""],"resources":["secrets"],"verbs":["get"]},{"apiGroups":["batch"],"resources":["jobs"],`+
		`"verbs":["create"]},{"apiGroups":["autoscaling"],"resources":["horizontalpodautoscalers"],"verbs":["get"]}]}`, w.name, w.namespace,
		w.namespace, w.name)
	p.add(`{"kind":"RoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":%q,"namespace":%q,"uid":"rb-%s-%s",`+
		`"resourceVersion":"10"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":%q},`+
		`"subjects":[{"kind":"ServiceAccount","name":%q,"namespace":%q}]}`,
		w.name, w.namespace, w.namespace, w.name, w.name, w.name, w.namespace)
}
