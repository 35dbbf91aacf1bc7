// Package rbacindex answers Kubernetes RBAC questions from an immutable, indexed Snapshot
// of Roles, ClusterRoles, RoleBindings and ClusterRoleBindings: the decision the
// Kubernetes RBAC authorizer would take (plugin/pkg/auth/authorizer/rbac), and every grant
// that makes it possible, without scanning bindings.
//
// # How a question is answered
//
//	user, groups ──hash──▶ entry (cache.go, profile.go)   what the subject holds cluster-wide
//	      │  first time:  users, groups tries (subjects.go) ─▶ bindings ─▶ roles, sorted (scope.go)
//	namespace ───hash───▶ entry                           the same for one namespace; of those who
//	      │                                               have only one it is in the subject's entry
//	verb, group, resource, name | path
//	      └──hash once──▶ rule tables (table.go) ─▶ hits (query.go) ─▶ Grants (grant.go)
//
// The other way round, who can make a request (whocan.go), goes from what it asks for to the
// roles that allow it (grantors.go), and from those to their bindings; what a subject can do
// (can.go) is its roles' rules, merged (merge.go).
//
// Two versions are compared by what a subject may do in each (compare.go, difference.go).
//
// The tries (trie.go, few.go) are persistent: Apply copies the path to what changed and shares
// the rest. What is remembered of a subject stays good for later versions until a change
// concerns it (stamps.go). Bindings name their role by key and not by pointer, so that a change to a role
// costs the same whether one binding names it or fifty thousand. A role's rules are compiled
// on first use into a table from what rules name (group and resource, path, path prefix)
// to the rules, so that a request asks for the handful of keys that could match it. A
// subject of more than four roles gets a merged table. Rules whose lists stand for more keys
// than there are strings are entered by resource alone, and what exceeds the room for tables
// stays as it is written and is gone through; how much of that a question takes can be bounded
// (Steps).
//
// # Guarantees
//
// Readers take no lock and never wait. Memory beyond the objects given is the index, under
// 200 bytes a binding, the tables and the cache, each bounded per family of snapshots (those that
// descend from one New or Empty by Apply), and once somebody asked who can, the tables of all
// roles of one of them. Which answers are remembered never changes an
// answer.
//
// # What it does not do
//
// system:masters, the Node authorizer and webhooks are other authorizers; WhoCan alone names
// system:masters. Aggregated ClusterRoles count as stored. Objects are not validated: odd ones
// mean what they mean to the authorizer.
//
// The package is pure and imports no other room of Retrial.
package rbacindex

// Attributes is what RBAC decides about: k8s.io/apiserver authorizer.Attributes reduced to
// the fields the RBAC authorizer reads. Name is empty on create and on collections.
type Attributes struct {
	User            string
	Groups          []string
	Verb            string
	Namespace       string
	APIGroup        string
	Resource        string
	Subresource     string
	Name            string
	ResourceRequest bool
	Path            string // non-resource requests: decoded URL path without query
	// Steps, when set, bounds the work of the answer; see Result.TooCostly.
	Steps *Steps
}

// Kind names one of the four RBAC kinds.
type Kind uint8

// The RBAC kinds.
const (
	KindRole Kind = iota + 1
	KindClusterRole
	KindRoleBinding
	KindClusterRoleBinding
)

var kinds = [...]string{"Unknown", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"} //nolint:gochecknoglobals // constant table

// String returns the Kubernetes kind, for example "ClusterRoleBinding".
func (k Kind) String() string { return kinds[k] }

// Key names one RBAC object. Namespace is empty for the cluster-scoped kinds.
type Key struct {
	Kind      Kind
	Namespace string
	Name      string
}
