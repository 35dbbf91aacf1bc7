package escalation

import (
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// Danger is a right that leads to more rights, or shows what should stay secret: who holds it should be known by name.
type Danger struct {
	ID   string // part of the interface
	Text string
	// Edges are the ways that take it.
	Edges []Edge
	any   []risky // requests: any one of them
}

// risky is a request that is part of a danger.
type risky struct {
	pattern
	wide bool // made in no namespace: a RoleBinding does not give it
}

// Dangers returns the dangers, the worst first.
func Dangers() []Danger {
	each := func(wide bool, group string, resources []string, verbs ...string) (out []risky) {
		for _, r := range resources {
			name, sub := cutSubresource(r)
			for _, v := range verbs {
				out = append(out, risky{pattern{v, group, name, sub}, wide})
			}
		}
		return out
	}
	rbac := rbacv1.GroupName
	return []Danger{
		{"cluster-admin", "every verb on every resource", Edges(), each(false, "*", []string{"*"}, "*")},
		{"escalate", "rewrite roles beyond what it holds", []Edge{Escalate},
			slices.Concat(each(true, rbac, []string{"clusterroles"}, "escalate"), each(false, rbac, []string{"roles"}, "escalate"))},
		{"bind", "bind roles that it does not hold", []Edge{Bind}, each(false, rbac, []string{"clusterroles", "roles"}, "bind")},
		{"impersonate", "make requests as others", []Edge{Impersonate}, slices.Concat(
			each(true, "", []string{"users", "groups"}, "impersonate"), each(false, "", []string{"serviceaccounts"}, "impersonate"))},
		{"rbac-write", "write roles and bindings, within what it holds", []Edge{Bind, Escalate}, slices.Concat(
			each(true, rbac, []string{"clusterrolebindings", "clusterroles"}, "create", "update", "patch"),
			each(false, rbac, []string{"rolebindings", "roles"}, "create", "update", "patch"))},
		{"node-proxy", "run commands in any pod of a node, by its kubelet", []Edge{NodeProxy},
			each(true, "", []string{"nodes/proxy"}, "create", "get")},
		{"token-request", "ask for service accounts' tokens", []Edge{TokenRequest},
			each(false, "", []string{"serviceaccounts/token"}, "create")},
		{"secrets-read", "read Secrets", []Edge{SecretToken}, each(false, "", []string{"secrets"}, "get", "list", "watch")},
		{"secrets-write", "write Secrets: one is filled with a service account's token", []Edge{SecretToken},
			each(false, "", []string{"secrets"}, "create", "patch", "deletecollection")},
		{"csr-approve", "approve certificates", []Edge{CSRSign}, slices.Concat(
			each(true, groupCerts, []string{"certificatesigningrequests/approval"}, "update", "patch"),
			each(true, groupCerts, []string{"signers"}, "approve", "sign"))},
		{"webhook-write", "change or read what others write, by webhooks of admission", []Edge{WebhookWrite},
			each(true, groupAdmission, []string{"mutatingwebhookconfigurations", "validatingwebhookconfigurations"}, "create", "update",
				"patch")},
		{"policy-write", "change what others write, by policies of admission", []Edge{PolicyWrite},
			each(true, groupAdmission, []string{"mutatingadmissionpolicies", "mutatingadmissionpolicybindings"}, "create", "update",
				"patch")},
		{"pod-exec", "run commands in others' pods", []Edge{PodExec}, slices.Concat(
			each(false, "", []string{"pods/exec", "pods/attach"}, "create", "get"),
			each(false, "", []string{"pods/ephemeralcontainers"}, "update", "patch"))},
		{"pod-create", "run pods as any service account of the namespace", []Edge{PodCreate}, each(false, "", []string{"pods"}, "create")},
		{"workload-write", "have controllers run such pods", []Edge{WorkloadWrite}, slices.Concat(
			each(false, groupApps, []string{"deployments", "daemonsets", "statefulsets", "replicasets"}, "create", "update", "patch"),
			each(false, groupBatch, []string{"jobs", "cronjobs"}, "create", "update", "patch"),
			each(false, "", []string{"replicationcontrollers"}, "create", "update", "patch"))},
	}
}

// cutSubresource takes a resource as rules name it apart.
func cutSubresource(resource string) (name, sub string) {
	for i := range len(resource) {
		if resource[i] == '/' {
			return resource[:i], resource[i+1:]
		}
	}
	return resource, ""
}

// Held reports whether a rule gives the danger, everywhere or in a namespace, if only for objects of some names: names has these, nil for
// all.
func (d *Danger) Held(rule *rbacv1.PolicyRule, namespaced bool) (names []string, held bool) {
	unnamed := *rule
	unnamed.ResourceNames = nil
	for i := range d.any {
		r := &d.any[i]
		// A request to create carries no name, and neither does one for a collection.
		nameless := r.verb == "create" && r.sub == "" || r.verb == "deletecollection"
		if namespaced && r.wide || nameless && len(rule.ResourceNames) > 0 {
			continue
		}
		if a := r.attributes("", ""); rbacindex.RuleAllows(&a, &unnamed) {
			return rule.ResourceNames, true
		}
	}
	return nil, false
}

// Asked reports whether a request is one of those that the danger is about.
func (d *Danger) Asked(verb, group, resource, sub string) bool {
	return slices.ContainsFunc(d.any, func(r risky) bool {
		return r.pattern == pattern{verb, group, resource, sub} || r.verb == "*"
	})
}
