package rbacindex

import rbacv1 "k8s.io/api/rbac/v1"

// Authorize decides a request as the Kubernetes RBAC authorizer does and returns every grant, not
// only the first: all ClusterRoleBindings count, and the RoleBindings of a.Namespace when that is
// set. Nothing else is consulted: system:masters is left to another authorizer.
//
// The grants are appended to buf[:0]; with room in buf nothing is allocated once the subject
// (user and groups, and for RoleBindings the namespace) has been seen. a is not retained.
func (s *Snapshot) Authorize(a *Attributes, buf []Grant) Result {
	return s.authorize(s.subjectWithin(a.Steps, a.User, a.Groups), a, buf)
}

func (s *Snapshot) authorize(sub *entry, a *Attributes, buf []Grant) Result {
	if sub == nil {
		return Result{TooCostly: true}
	}
	var q query
	q.init(s.family.hasher, a)
	sc := &sub.own
	grants := sc.grants(&q, buf[:0])
	if a.Namespace != "" {
		if in := s.namespaced(a.Steps, sub, a.Namespace); in != nil {
			sc = in
			grants = sc.grants(&q, grants)
		}
	}
	if q.costly || a.Steps != nil && a.Steps.left < 0 {
		return Result{TooCostly: true}
	}
	return sc.result(grants)
}

// Subject is a user with its groups as one Snapshot knows it. It saves callers with many requests
// of one subject from comparing its group names every time, which for a user in hundreds of groups
// is most of a decision. It is a value, safe for concurrent use, valid as long as its Snapshot,
// which it keeps alive.
type Subject struct {
	s *Snapshot
	e *entry
}

// Subject returns the Subject of a user name and group names. The strings are copied.
func (s *Snapshot) Subject(user string, groups []string) Subject {
	return Subject{s: s, e: s.subject(user, groups)}
}

// Authorize is Snapshot.Authorize for this subject; a.User and a.Groups are ignored.
func (u Subject) Authorize(a *Attributes, buf []Grant) Result { return u.s.authorize(u.e, a, buf) }

// RulesFor visits every rule that applies to the subject, with the grant (binding, role,
// subject, rule index) it comes from: those of ClusterRoleBindings and, when namespace is
// set, those of its RoleBindings, until fn returns false. The rule must not be modified. The
// Result has no grants; it carries the evaluation errors.
func (s *Snapshot) RulesFor(user string, groups []string, namespace string, fn func(g Grant, rule *rbacv1.PolicyRule) bool) Result {
	scopes := s.scopes(user, groups, namespace)
	res := scopes[len(scopes)-1].result(nil)
	for _, sc := range scopes {
		for _, u := range sc.units {
			rules := u.role().rules()
			for _, r := range sc.refs[u.from:u.to] {
				for i := range rules {
					if !fn(Grant{ref: r, rule: int32(i)}, &rules[i]) {
						return res
					}
				}
			}
		}
	}
	return res
}

// scopes returns those of a subject: that of the cluster and, when namespace is set and a binding
// there names the subject, that of the namespace.
func (s *Snapshot) scopes(user string, groups []string, namespace string) []*scope {
	sub := s.subject(user, groups)
	if namespace != "" {
		if in := s.namespaced(nil, sub, namespace); in != nil {
			return []*scope{&sub.own, in}
		}
	}
	return []*scope{&sub.own}
}

// BindingsOf visits every binding that concerns the subject, whether its role exists or not:
// ClusterRoleBindings and, when namespace is set, the RoleBindings there, until fn returns
// false. subject is the first of the binding's subjects that matches. role.Kind is 0 if the
// roleRef names an unsupported kind.
func (s *Snapshot) BindingsOf(user string, groups []string, namespace string, fn func(binding, role Key, subject rbacv1.Subject) bool) {
	for _, sc := range s.scopes(user, groups, namespace) {
		for _, r := range sc.refs {
			if !fn(r.b.key(), r.b.roleKey(), *r.of()) {
				return
			}
		}
	}
}
