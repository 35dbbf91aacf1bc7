package escalation_test

import (
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/analysis/escalation"
)

const (
	groupRBAC      = "rbac.authorization.k8s.io"
	groupCerts     = "certificates.k8s.io"
	groupAdmission = "admissionregistration.k8s.io"
	groupAuthn     = "authentication.k8s.io"
)

// TestEdges: each way is open to a subject with all its rights, and closed if any one is missing.
func TestEdges(t *testing.T) {
	const robot = "ServiceAccount n/robot"
	admins := " (ClusterRoleBinding/admins)"
	for _, c := range []struct {
		name   string
		rights []right
		want   string // what follows "User eve —"
		more   []any
		rest   []string // what is left without each right; nothing unless said
	}{
		{name: "bind", rights: []right{{verb: "create", group: groupRBAC, resource: "clusterrolebindings"}, {verb: "bind", group: groupRBAC,
			resource: "clusterroles", name: "cluster-admin"}}, want: "bind→ cluster-admin"},
		{name: "bind by a patch of a binding", rights: []right{{verb: "patch", group: groupRBAC, resource: "clusterrolebindings",
			name: "admins"}, {verb: "bind", group: groupRBAC, resource: "clusterroles", name: "cluster-admin"}},
			want: "bind→ cluster-admin"},
		{name: "bind by an update of any binding", rights: []right{{verb: "update", group: groupRBAC, resource: "clusterrolebindings"},
			{verb: "bind", group: groupRBAC, resource: "clusterroles"}}, want: "bind→ cluster-admin"},
		{name: "bind by server-side apply", rights: []right{{verb: "patch", group: groupRBAC, resource: "clusterrolebindings",
			name: "mine"}, {verb: "create", group: groupRBAC, resource: "clusterrolebindings", name: "mine"},
			{verb: "bind", group: groupRBAC, resource: "clusterroles", name: "cluster-admin"}}, want: "bind→ cluster-admin"},
		{name: "bind in a namespace", rights: []right{{in: "n", verb: "create", group: groupRBAC, resource: "rolebindings"},
			{in: "n", verb: "bind", group: groupRBAC, resource: "clusterroles", name: "cluster-admin"}},
			want: "bind in n→ everything in namespace n —token-request in n→ " + robot + admins},
		{name: "bind a role that leads on", rights: []right{{verb: "create", group: groupRBAC, resource: "clusterrolebindings"},
			{verb: "bind", group: groupRBAC, resource: "clusterroles", name: "podder"}}, want: "bind→ Bound eve —pod-create→ " + robot +
			admins,
			more: []any{clusterRole("podder", rule("create", "", "pods"))}},
		{name: "bind two roles, one by the other", rights: []right{{verb: "create", group: groupRBAC, resource: "clusterrolebindings"},
			{verb: "bind", group: groupRBAC, resource: "clusterroles", name: "binder"}}, want: "bind→ Bound eve —bind→ cluster-admin",
			more: []any{clusterRole("binder", rule("bind", groupRBAC, "clusterroles"))}},
		{name: "escalate", rights: []right{{verb: "patch", group: groupRBAC, resource: "clusterroles", name: "eve-1"},
			{verb: "escalate", group: groupRBAC, resource: "clusterroles", name: "eve-1"}}, want: "escalate→ cluster-admin"},
		{name: "escalate in a namespace", rights: []right{{in: "n", verb: "update", group: groupRBAC, resource: "roles", name: "eve-2"},
			{in: "n", verb: "escalate", group: groupRBAC, resource: "roles", name: "eve-2"}},
			want: "escalate in n→ everything in namespace n —token-request in n→ " + robot + admins},
		{name: "escalate a role that is bound and missing", rights: []right{{verb: "create", group: groupRBAC, resource: "clusterroles"},
			{verb: "escalate", group: groupRBAC, resource: "clusterroles"}}, want: "escalate→ cluster-admin",
			more: []any{&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "dangling"},
				RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "gone"}, Subjects: []rbacv1.Subject{{Kind: "User", Name: "eve"}}}}},
		{name: "escalate by a new role", rights: []right{{in: "n", verb: "create", group: groupRBAC, resource: "roles"},
			{in: "n", verb: "escalate", group: groupRBAC, resource: "roles"}, {in: "n", verb: "create", group: groupRBAC,
				resource: "rolebindings"}, {in: "n", verb: "bind", group: groupRBAC, resource: "roles"}},
			want: "escalate in n→ everything in namespace n —token-request in n→ " + robot + admins},
		{name: "escalate a role bound first", rights: []right{{verb: "create", group: groupRBAC, resource: "clusterrolebindings"},
			{verb: "bind", group: groupRBAC, resource: "clusterroles", name: "dull"}, {verb: "update", group: groupRBAC,
				resource: "clusterroles", name: "dull"}, {verb: "escalate", group: groupRBAC, resource: "clusterroles", name: "dull"}},
			want: "bind→ Bound eve —escalate→ cluster-admin",
			more: []any{clusterRole("dull")}},
		{name: "impersonate a user", rights: []right{{verb: "impersonate", resource: "users", name: "boss"}},
			want: "impersonate→ User boss" + admins},
		{name: "impersonate a service account", rights: []right{{in: "n", verb: "impersonate", resource: "serviceaccounts", name: "robot"}},
			want: "impersonate in n→ " + robot + admins},
		{name: "impersonate a group", rights: []right{{verb: "impersonate", resource: "groups", name: "bosses"},
			{verb: "impersonate", resource: "users", name: "nobody"}}, want: "impersonate→ Group bosses" + admins},
		{name: "impersonate system:masters by a service account", rights: []right{{verb: "impersonate", resource: "groups",
			name: "system:masters"}, {in: "n", verb: "impersonate", resource: "serviceaccounts", name: "x"}},
			want: "impersonate→ system:masters"},
		{name: "token", rights: []right{{in: "n", verb: "create", resource: "serviceaccounts/token", name: "robot"}},
			want: "token-request in n→ " + robot + admins},
		{name: "tokens of one name everywhere", rights: []right{{verb: "create", resource: "serviceaccounts/token", name: "robot"}},
			want: "token-request→ " + robot + admins},
		{name: "a new token Secret", rights: []right{{in: "n", verb: "create", resource: "secrets"}, {in: "n", verb: "get",
			resource: "secrets", name: "x"}}, want: "secret-token in n→ " + robot + admins, rest: []string{"secret-token in n?→ " + robot +
			admins, ""}},
		{name: "a new token Secret, shown as it would be deleted", rights: []right{{in: "n", verb: "create", resource: "secrets"},
			{in: "n", verb: "deletecollection", resource: "secrets"}}, want: "secret-token in n→ " + robot + admins,
			rest: []string{"secret-token in n?→ " + robot + admins, ""}},
		{name: "Secrets that would be deleted", rights: []right{{in: "n", verb: "deletecollection", resource: "secrets"}},
			want: "secret-token in n?→ " + robot + admins},
		{name: "a Secret that is there", rights: []right{{in: "n", verb: "list", resource: "secrets"}}, want: "secret-token in n?→ " +
			robot + admins},
		{name: "pod", rights: []right{{in: "n", verb: "create", resource: "pods"}}, want: "pod-create in n→ " + robot + admins},
		{name: "pod by server-side apply", rights: []right{{in: "n", verb: "create", resource: "pods", name: "p"}, {in: "n", verb: "patch",
			resource: "pods", name: "p"}}, want: "pod-create in n→ " + robot + admins, rest: []string{"workload-write in n?→ " + robot +
			admins, ""}},
		{name: "another image for a pod", rights: []right{{in: "n", verb: "patch", resource: "pods"}}, want: "workload-write in n?→ " +
			robot + admins},
		{name: "deployment", rights: []right{{in: "n", verb: "create", group: "apps", resource: "deployments"}},
			want: "workload-write in n→ " + robot + admins},
		{name: "daemon set everywhere", rights: []right{{verb: "create", group: "apps", resource: "daemonsets"}}, want: "workload-write→ " +
			robot + admins},
		{name: "stateful set", rights: []right{{in: "n", verb: "update", group: "apps", resource: "statefulsets", name: "db"}},
			want: "workload-write in n?→ " + robot + admins},
		{name: "replica set", rights: []right{{in: "n", verb: "create", group: "apps", resource: "replicasets"}},
			want: "workload-write in n→ " + robot + admins},
		{name: "replication controller", rights: []right{{in: "n", verb: "create", resource: "replicationcontrollers"}},
			want: "workload-write in n→ " + robot + admins},
		{name: "job", rights: []right{{in: "n", verb: "create", group: "batch", resource: "jobs"}}, want: "workload-write in n→ " + robot +
			admins},
		{name: "cron job", rights: []right{{in: "n", verb: "patch", group: "batch", resource: "cronjobs"}}, want: "workload-write in n?→ " +
			robot + admins},
		{name: "exec", rights: []right{{in: "n", verb: "create", resource: "pods/exec"}}, want: "pod-exec in n?→ " + robot + admins},
		{name: "ephemeral container", rights: []right{{in: "n", verb: "update", resource: "pods/ephemeralcontainers"}},
			want: "pod-exec in n?→ " + robot + admins},
		{name: "kubelet", rights: []right{{verb: "get", resource: "nodes/proxy", name: "node-1"}}, want: "node-proxy?→ " + robot + admins},
		{name: "certificate", rights: []right{{verb: "create", group: groupCerts, resource: "certificatesigningrequests"},
			{verb: "update", group: groupCerts, resource: "certificatesigningrequests/approval"}, {verb: "approve", group: groupCerts,
				resource: "signers", name: "kubernetes.io/kube-apiserver-client"}}, want: "csr-sign?→ ServiceAccount n/robot" + admins},
		{name: "webhook", rights: []right{{verb: "create", group: groupAdmission, resource: "mutatingwebhookconfigurations"}},
			want: "webhook-write?→ " + robot + admins},
		{name: "webhook that watches", rights: []right{{verb: "patch", group: groupAdmission, resource: "validatingwebhookconfigurations",
			name: "w"}}, want: "webhook-write?→ " + robot + admins},
		{name: "policy", rights: []right{{verb: "create", group: groupAdmission, resource: "mutatingadmissionpolicies"},
			{verb: "create", group: groupAdmission, resource: "mutatingadmissionpolicybindings"}}, want: "policy-write?→ " + robot +
			admins},
	} {
		t.Run(c.name, func(t *testing.T) {
			closure := func(rights []right) *escalation.Closure {
				return escalation.New(snapshot(t, slices.Concat(ground(), give("eve", rights...), c.more)...), escalation.Accounts{})
			}
			if got, want := shortest(t, closure(c.rights), "eve"), "User eve —"+c.want; got != want {
				t.Errorf("got  %s\nwant %s", got, want)
			}
			for i := range c.rights {
				less := slices.Clone(c.rights)
				less[i] = right{verb: "nothing", resource: "nowhere"} // the roles keep their names
				want := ""
				if i < len(c.rest) && c.rest[i] != "" {
					want = "User eve —" + c.rest[i]
				}
				if got := shortest(t, closure(less), "eve"); got != want {
					t.Errorf("without %s: got %q, want %q", c.rights[i], got, want)
				}
			}
		})
	}
}

// TestNoEdges: what looks like a way and is not.
func TestNoEdges(t *testing.T) {
	for _, c := range []struct {
		name   string
		rights []right
		more   []any
	}{
		{name: "a role within what is held", rights: []right{{verb: "*", group: groupRBAC, resource: "clusterroles", name: "x"},
			{verb: "create", group: groupRBAC, resource: "roles"}}},
		{name: "bindings within what is held", rights: []right{{verb: "create", group: groupRBAC, resource: "clusterrolebindings"},
			{verb: "bind", group: groupRBAC, resource: "clusterroles", name: "dull"}}, more: []any{clusterRole("dull")}},
		{name: "bind in the wrong scope", rights: []right{{in: "n", verb: "create", group: groupRBAC, resource: "rolebindings"},
			{in: "m", verb: "bind", group: groupRBAC, resource: "clusterroles"}}},
		{name: "bind, and a binding to another role", rights: []right{{verb: "patch", group: groupRBAC, resource: "clusterrolebindings",
			name: "eve-1"}, {verb: "bind", group: groupRBAC, resource: "clusterroles", name: "cluster-admin"}}},
		{name: "create by a name alone", rights: []right{{verb: "create", group: groupRBAC, resource: "clusterrolebindings", name: "x"},
			{verb: "bind", group: groupRBAC, resource: "clusterroles"}}},
		{name: "escalate of a role nobody gave", rights: []right{{verb: "patch", group: groupRBAC, resource: "clusterroles", name: "dull"},
			{verb: "escalate", group: groupRBAC, resource: "clusterroles", name: "dull"}}, more: []any{clusterRole("dull")}},
		{name: "a group without a user", rights: []right{{verb: "impersonate", resource: "groups"}}},
		{name: "service accounts are not users to impersonate", rights: []right{{verb: "impersonate", resource: "users",
			name: "system:serviceaccount:n:robot"}}},
		{name: "pods of another namespace", rights: []right{{in: "m", verb: "create", resource: "pods"}}},
		{name: "exec by get alone", rights: []right{{in: "n", verb: "get", resource: "pods/exec"}}},
		{name: "nodes/proxy in a namespace", rights: []right{{in: "n", verb: "get", resource: "nodes/proxy"}}},
		{name: "approval of another signer", rights: []right{{verb: "create", group: groupCerts, resource: "certificatesigningrequests"},
			{verb: "update", group: groupCerts, resource: "certificatesigningrequests/approval"}, {verb: "approve", group: groupCerts,
				resource: "signers", name: "kubernetes.io/kubelet-serving"}}},
		{name: "a policy that only validates", rights: []right{{verb: "*", group: groupAdmission, resource: "validatingadmissionpolicies"},
			{verb: "*", group: groupAdmission, resource: "validatingadmissionpolicybindings"}}},
		{name: "a service account created", rights: []right{{in: "n", verb: "create", resource: "serviceaccounts"}}},
		{name: "impersonation by an impersonated user", rights: []right{{verb: "impersonate", resource: "users", name: "ann"}},
			more: give("ann", right{verb: "impersonate", resource: "users", name: "boss"})},
	} {
		t.Run(c.name, func(t *testing.T) {
			closure := escalation.New(snapshot(t, slices.Concat(ground(), give("eve", c.rights...), c.more)...), escalation.Accounts{})
			if got := shortest(t, closure, "eve"); got != "" {
				t.Error(got)
			}
		})
	}
}

// TestCertificateNames: a certificate is for anybody, but not for system:masters.
func TestCertificateNames(t *testing.T) {
	objects := slices.Concat(give("eve", right{verb: "*", group: groupCerts, resource: "*"}), []any{
		clusterRole("any", rule("get", "", "pods")),
		&rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "any"}, RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "any"},
			Subjects: []rbacv1.Subject{{Kind: "Group", Name: "system:masters"}, {Kind: "User", Name: "ann"}}},
	})
	c := escalation.New(snapshot(t, objects...), escalation.Accounts{})
	if got := shortest(t, c, "eve"); got != "" {
		t.Errorf("reaches a goal: %s", got)
	}
	var got []string
	for _, p := range c.Reach("eve", nil, 0).Others {
		got = append(got, p.To.String())
	}
	if want := "Group system:unauthenticated, User ann, User system:anonymous"; strings.Join(got, ", ") != want {
		t.Errorf("reaches %s, want %s", got, want)
	}
}

func rule(verb, group, resource string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{Verbs: []string{verb}, APIGroups: []string{group}, Resources: []string{resource}}
}
