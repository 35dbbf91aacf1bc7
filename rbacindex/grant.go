package rbacindex

import (
	"slices"
	"strconv"

	rbacv1 "k8s.io/api/rbac/v1"
)

// Grant is one granting path of a request: a binding that names the subject, and the rule of
// its role that allows the request. It is two words wide and refers to the objects of the
// Snapshot it came from, which it keeps alive. Only Grants from a Result or RulesFor are
// valid; the zero Grant is not.
type Grant struct {
	ref  *ref
	rule int32
}

// BindingKind returns KindRoleBinding or KindClusterRoleBinding.
func (g Grant) BindingKind() Kind { return g.ref.b.key().Kind }

// BindingNamespace returns the RoleBinding's namespace, "" for a ClusterRoleBinding.
func (g Grant) BindingNamespace() string { return g.ref.b.key().Namespace }

// Binding returns the binding's name.
func (g Grant) Binding() string { return g.ref.b.key().Name }

// BindingKey returns the binding's Key.
func (g Grant) BindingKey() Key { return g.ref.b.key() }

// RoleKind returns KindRole or KindClusterRole.
func (g Grant) RoleKind() Kind { return g.ref.b.roleKey().Kind }

// Role returns the role's name.
func (g Grant) Role() string { return g.ref.b.roleRef().Name }

// RoleKey returns the role's Key.
func (g Grant) RoleKey() Key { return g.ref.b.roleKey() }

// SubjectKind returns "User", "Group" or "ServiceAccount".
func (g Grant) SubjectKind() string { return g.ref.of().Kind }

// SubjectNamespace returns the namespace of a ServiceAccount subject, the binding's when the
// subject has none of its own; "" for the other kinds.
func (g Grant) SubjectNamespace() string {
	s := g.ref.of()
	switch {
	case s.Kind != rbacv1.ServiceAccountKind:
		return ""
	case s.Namespace != "":
		return s.Namespace
	}
	return g.BindingNamespace()
}

// Subject returns the subject's name as the binding has it.
func (g Grant) Subject() string { return g.ref.of().Name }

// SubjectIndex returns the subject's place in the binding's subjects.
func (g Grant) SubjectIndex() int { return int(g.ref.subject) }

// Rule returns the index, in the role's rules, of the first rule that allows the request.
func (g Grant) Rule() int { return int(g.rule) }

// Reason returns what the apiserver prints when this grant is the one it names, for example
//
//	RBAC: allowed by RoleBinding "edit/default" of ClusterRole "edit" to User "alice"
func (g Grant) Reason() string { return string(g.AppendReason(nil)) }

// AppendReason appends Reason to dst.
func (g Grant) AppendReason(dst []byte) []byte {
	s, rr := g.ref.of(), g.ref.b.roleRef()
	if crb := g.ref.b.crb; crb != nil {
		dst = append(dst, "RBAC: allowed by ClusterRoleBinding "...)
		dst = strconv.AppendQuote(dst, crb.Name)
	} else {
		rb := g.ref.b.rb
		dst = append(dst, "RBAC: allowed by RoleBinding "...)
		dst = appendQuotedPair(dst, rb.Name, rb.Namespace)
	}
	dst = append(append(append(dst, " of "...), rr.Kind...), ' ')
	dst = strconv.AppendQuote(dst, rr.Name)
	dst = append(append(append(dst, " to "...), s.Kind...), ' ')
	if s.Kind == rbacv1.ServiceAccountKind {
		return appendQuotedPair(dst, s.Name, g.SubjectNamespace())
	}
	return strconv.AppendQuote(dst, s.Name)
}

// appendQuotedPair appends a/b quoted as one string. Quoting the halves apart gives the same
// bytes as quoting the whole, since a UTF-8 sequence cannot span the slash.
func appendQuotedPair(dst []byte, a, b string) []byte {
	dst = strconv.AppendQuote(dst, a)
	dst[len(dst)-1] = '/'
	n := len(dst)
	dst = strconv.AppendQuote(dst, b)
	return slices.Delete(dst, n, n+1)
}

// Result is the answer of Authorize.
type Result struct {
	// Allowed is the decision: true if there is at least one grant.
	Allowed bool
	// Grants are all granting paths, one per binding, those of ClusterRoleBindings first; in
	// each scope ordered by role and binding name. They use the buffer given to Authorize.
	Grants []Grant
	// Missing are the roles named by the subject's bindings that do not exist, each once.
	// Shared with the Snapshot: not to be modified.
	Missing []Key

	// TooCostly means that the steps did not suffice. Then nothing is known: Allowed is false and
	// there are no grants.
	TooCostly bool

	unsupported []string // kinds named by roleRefs that RBAC does not know, each once
}

// Errors returns the evaluation errors in the authorizer's words, each once: roles not found
// and unsupported roleRef kinds. The authorizer prints them only when nothing allows.
func (r Result) Errors() []string {
	if len(r.Missing) == 0 && len(r.unsupported) == 0 {
		return nil
	}
	out := make([]string, 0, len(r.Missing)+len(r.unsupported))
	seen := make(map[string]struct{}, cap(out))
	add := func(text string) { // Roles of one name missing in two namespaces read the same
		if _, twice := seen[text]; !twice {
			seen[text] = struct{}{}
			out = append(out, text)
		}
	}
	for _, k := range r.Missing {
		kind := "role"
		if k.Kind == KindClusterRole {
			kind = "clusterrole"
		}
		add(kind + ".rbac.authorization.k8s.io " + strconv.Quote(k.Name) + " not found")
	}
	for _, kind := range r.unsupported {
		add("unsupported role reference kind: " + strconv.Quote(kind))
	}
	return out
}

// Reason returns the reason the apiserver would record: that of the first grant when the
// request is allowed (the apiserver may name any grant of the same binding kind), else "" or
// "RBAC: " and the errors, in brackets when there are several.
func (r Result) Reason() string {
	if r.Allowed {
		return r.Grants[0].Reason()
	}
	errs := r.Errors()
	switch len(errs) {
	case 0:
		return ""
	case 1:
		return "RBAC: " + errs[0]
	}
	out := []byte("RBAC: [")
	for i, e := range errs {
		if i > 0 {
			out = append(out, ", "...)
		}
		out = append(out, e...)
	}
	return string(append(out, ']'))
}
