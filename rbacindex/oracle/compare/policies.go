package compare

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/kubernetes/plugin/pkg/auth/authorizer/rbac"

	"github.com/retrial-io/retrial/rbacindex"
)

// Figures count what CheckPolicies went through.
type Figures struct {
	Policies uint64
	WhoCan   uint64 // questions
	Rows     uint64 // of their answers
	Asked    uint64 // subjects put to the real authorizer, in a scope each
	Removals uint64 // flaws removed, all of a policy together and each by itself
	Decided  uint64 // decisions compared before and after
	Denials  uint64
	Offers   uint64 // least rules, roles and bindings supplied to denials, and rules mended
}

func (f *Figures) add(o *Figures) {
	f.Policies += o.Policies
	f.WhoCan += o.WhoCan
	f.Rows += o.Rows
	f.Asked += o.Asked
	f.Removals += o.Removals
	f.Decided += o.Decided
	f.Denials += o.Denials
	f.Offers += o.Offers
}

// CheckPolicies makes n policies and holds what the index derives from each against the real
// authorizer: who can make a request equals asking everybody, removing what is idle changes
// no decision, and all that is said to turn a denial into an allow does.
func CheckPolicies(n, seed uint64) (Figures, error) {
	var (
		next  atomic.Uint64
		mu    sync.Mutex
		wg    sync.WaitGroup
		total Figures
		first error
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var f Figures
			var failed error
			for i := next.Add(1) - 1; i < n && failed == nil; i = next.Add(1) - 1 {
				failed = checkPolicy(newGenerator(seed, 1<<40+i), &f)
			}
			mu.Lock()
			defer mu.Unlock()
			total.add(&f)
			if failed != nil && first == nil {
				first = failed
				next.Store(n)
			}
		})
	}
	wg.Wait()
	return total, first
}

func checkPolicy(g generator, f *Figures) error {
	writes := g.policy()
	p := NewPolicy(writes...)
	s, err := rbacindex.New(p.Objects()...)
	if err != nil {
		return err
	}
	f.Policies++
	r := NewReal(p)
	for _, check := range []func(generator, *Policy, *rbacindex.Snapshot, *Real, *Figures) error{whoCan, hygiene, nearestMiss} {
		if err := check(g, p, s, r, f); err != nil {
			c := Case{Writes: writes}
			raw, printed := c.MarshalJSON()
			return fmt.Errorf("%w\n%s%v", err, raw, printed)
		}
	}
	return nil
}

// possible makes a request that a URL can make: no slash in a resource, no namespace with a
// path.
func (g generator) possible(p *Policy) rbacindex.Attributes {
	for {
		a := g.request(p)
		if !a.ResourceRequest {
			a.Namespace = ""
		}
		if !strings.Contains(a.Resource, "/") {
			return a
		}
	}
}

// whoCan compares WhoCan with asking everybody the policy names, by themselves, with every
// reason there is, and with the real subject locator.
func whoCan(g generator, p *Policy, s *rbacindex.Snapshot, r *Real, f *Figures) error {
	names, groupNames := everybody(p)
	for i := range 2 {
		a := g.possible(p)
		everywhere := i == 1 && a.ResourceRequest
		a.User, a.Groups = "", nil
		scopes := []string{a.Namespace}
		if everywhere {
			scopes = append([]string{""}, spaces(p)...)
		}
		f.WhoCan++
		var want []string
		ask := func(who user.DefaultInfo, name string, group bool) {
			for _, ns := range scopes {
				b := a
				b.Namespace = ns
				attrs := attributes(&b)
				f.Asked++
				real, _ := r.visit(&who, ns, nil, func(rule *rbacv1.PolicyRule) bool { return rbac.RuleAllows(attrs, rule) })
				b.User, b.Groups = who.Name, who.Groups
				if r.Allows(&b) != (len(real) > 0) {
					want = append(want, "the authorizer and its rules disagree")
				}
				for _, src := range real {
					want = append(want, fmt.Sprintf("%q group=%t: %s", name, group, src.from))
				}
			}
		}
		for _, name := range names {
			ask(user.DefaultInfo{Name: name}, name, false)
		}
		for _, name := range groupNames {
			ask(user.DefaultInfo{Name: "\x00nobody", Groups: []string{name}}, name, true)
		}
		slices.Sort(want)
		want = slices.Compact(want)
		var got []string
		b := a
		b.Namespace = scopes[0]
		for _, row := range s.WhoCan(&b, everywhere) {
			if f.Rows++; row.Superuser != (row.Group && row.Name == masters && row.Namespace == "") {
				return fmt.Errorf("who can %+v: row %+v", a, row)
			}
			for _, grant := range row.Grants {
				got = append(got, fmt.Sprintf("%q group=%t: %s", row.Name, row.Group, strings.TrimPrefix(grant.Reason(), allowedBy)))
			}
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("who can %+v everywhere=%t:\n%s\neverybody asked:\n%s", a, everywhere, strings.Join(got, "\n"),
				strings.Join(want, "\n"))
		}
		if !everywhere {
			if err := located(s, r, &a); err != nil {
				return err
			}
		}
	}
	return nil
}

// located compares WhoCan with the real subject locator, which names subjects as bindings
// have them.
func located(s *rbacindex.Snapshot, r *Real, a *rbacindex.Attributes) error {
	subjects, _ := r.subjects.AllowedSubjects(context.Background(), attributes(a))
	var want, got []string
	for _, x := range subjects {
		switch x.Kind {
		case rbacv1.UserKind:
			want = append(want, "user "+x.Name)
		case rbacv1.GroupKind:
			want = append(want, "group "+x.Name)
		case rbacv1.ServiceAccountKind:
			if x.Namespace != "" {
				want = append(want, "user system:serviceaccount:"+x.Namespace+":"+x.Name)
			} else if a.Namespace != "" {
				// Of a binding of that namespace, or of one of none, where it is nobody.
				want = append(want, "user system:serviceaccount:"+a.Namespace+":"+x.Name)
			}
		}
	}
	for _, row := range s.WhoCan(a, false) {
		kind := "user "
		if row.Group {
			kind = "group "
		}
		got = append(got, kind+row.Name)
	}
	for _, x := range got {
		if !slices.Contains(want, x) {
			return fmt.Errorf("who can %+v: the locator does not know %q: %q", a, x, want)
		}
	}
	for _, x := range want {
		if !slices.Contains(got, x) && !strings.HasPrefix(x, "user system:serviceaccount:"+a.Namespace+":") {
			return fmt.Errorf("who can %+v: the locator has %q beside %q", a, x, got)
		}
	}
	return nil
}

// everybody returns all users and groups a policy names in any spelling, and some it may not.
func everybody(p *Policy) (names, groupNames []string) {
	names, groupNames = []string{"\x00nobody", "alice"}, []string{"\x00nobody", masters}
	for _, k := range p.keys {
		_, ns, subjects, _ := bindingOf(p.objects[k])
		for _, s := range subjects {
			names, groupNames = append(names, s.Name), append(groupNames, s.Name)
			if s.Kind == rbacv1.ServiceAccountKind {
				names = append(names, "system:serviceaccount:"+s.Namespace+":"+s.Name, "system:serviceaccount:"+ns+":"+s.Name)
			}
		}
	}
	slices.Sort(names)
	slices.Sort(groupNames)
	return slices.Compact(names), slices.Compact(groupNames)
}

// spaces returns the namespaces that have bindings.
func spaces(p *Policy) []string {
	var out []string
	for _, k := range p.keys {
		if k.Kind == rbacindex.KindRoleBinding {
			out = append(out, k.Namespace)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// hygiene removes what is idle, all of it and each by itself, and compares decisions.
func hygiene(g generator, p *Policy, s *rbacindex.Snapshot, r *Real, f *Figures) error {
	flaws := slices.DeleteFunc(s.Hygiene(), func(x rbacindex.Flaw) bool { return !x.Kind.Idle() })
	compare := func(gone []rbacindex.Flaw, requests int) error {
		f.Removals += uint64(len(gone))
		after := p.Clone()
		after.Apply(removals(p, gone)...)
		now := NewReal(after)
		for range requests {
			a := g.possible(p)
			f.Decided++
			if before := r.Allows(&a); before != now.Allows(&a) {
				return fmt.Errorf("removing %+v changes %+v from allowed=%t", gone, a, before)
			}
		}
		return nil
	}
	if err := compare(flaws, 30); err != nil {
		return err
	}
	for i := range flaws {
		if i == 40 {
			break
		}
		if err := compare(flaws[i:i+1], 3); err != nil {
			return err
		}
	}
	return nil
}

// removals returns the writes that remove flaws.
func removals(p *Policy, flaws []rbacindex.Flaw) []rbacindex.Change {
	var out []rbacindex.Change
	gone := map[rbacindex.Key][]int{}
	var order []rbacindex.Key
	whole := map[rbacindex.Key]bool{}
	for _, x := range flaws {
		if x.Kind != rbacindex.FlawShadowedRule {
			whole[x.Key] = true
			out = append(out, rbacindex.Change{Key: x.Key})
			continue
		}
		if gone[x.Key] == nil {
			order = append(order, x.Key)
		}
		gone[x.Key] = append(gone[x.Key], x.Rule)
	}
	for _, k := range order {
		if whole[k] {
			continue
		}
		var rules []rbacv1.PolicyRule
		for i, rule := range rulesIn(p.objects[k]) {
			if !slices.Contains(gone[k], i) {
				rules = append(rules, rule)
			}
		}
		meta := metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name}
		if k.Kind == rbacindex.KindRole {
			out = append(out, rbacindex.Change{Key: k, Object: &rbacv1.Role{ObjectMeta: meta, Rules: rules}})
		} else {
			out = append(out, rbacindex.Change{Key: k, Object: &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}})
		}
	}
	return out
}

// nearestMiss supplies what is said to be missing.
func nearestMiss(g generator, p *Policy, s *rbacindex.Snapshot, r *Real, f *Figures) error {
	for range 6 {
		a := g.possible(p)
		if g.one(2) {
			a.User = g.pick(users)
		}
		if r.Allows(&a) {
			continue
		}
		f.Denials++
		if err := supply(p, s, &a, f); err != nil {
			return err
		}
	}
	return nil
}

func supply(p *Policy, s *rbacindex.Snapshot, a *rbacindex.Attributes, f *Figures) error {
	m := s.NearestMiss(a, 20)
	helps := func(what any, writes ...rbacindex.Change) error {
		f.Offers++
		after := p.Clone()
		after.Apply(writes...)
		if !NewReal(after).Allows(a) {
			return fmt.Errorf("%+v is still refused with %+v", *a, what)
		}
		return nil
	}
	who := rbacv1.Subject{Kind: rbacv1.UserKind, Name: a.User}
	bind := func(role rbacindex.Key) rbacindex.Change {
		ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: role.Kind.String(), Name: role.Name}
		if a.Namespace == "" {
			k := rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: "\x00new"}
			return rbacindex.Change{Key: k, Object: &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: k.Name}, RoleRef: ref,
				Subjects: []rbacv1.Subject{who}}}
		}
		k := rbacindex.Key{Kind: rbacindex.KindRoleBinding, Namespace: a.Namespace, Name: "\x00new"}
		return rbacindex.Change{Key: k, Object: &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: k.Namespace, Name: k.Name},
			RoleRef: ref, Subjects: []rbacv1.Subject{who}}}
	}
	least := rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "\x00least"}
	if err := helps(m.Rule, rbacindex.Change{Key: least, Object: &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: least.Name},
		Rules: []rbacv1.PolicyRule{m.Rule}}}, bind(least)); err != nil {
		return err
	}
	for _, o := range m.Roles {
		if err := helps(o, bind(o.Role)); err != nil {
			return err
		}
	}
	for _, o := range m.Bindings {
		var with any
		switch b := p.objects[o.Key].(type) {
		case *rbacv1.RoleBinding:
			c := *b
			c.Subjects = append([]rbacv1.Subject{who}, b.Subjects...)
			with = &c
		case *rbacv1.ClusterRoleBinding:
			c := *b
			c.Subjects = append([]rbacv1.Subject{who}, b.Subjects...)
			with = &c
		}
		if err := helps(o, rbacindex.Change{Key: o.Key, Object: with}); err != nil {
			return err
		}
	}
	for _, x := range m.Almost {
		if err := mend(p, a, x, f); err != nil {
			return err
		}
	}
	return nil
}

// mend gives a rule the one thing it is said to lack, or asks where it holds.
func mend(p *Policy, a *rbacindex.Attributes, x rbacindex.Almost, f *Figures) error {
	f.Offers++
	role := x.RoleKey()
	rules := copied(rulesIn(p.objects[role]))
	rule, asked := &rules[x.Rule()], *a
	switch x.Lack {
	case rbacindex.LackVerb:
		rule.Verbs = append(rule.Verbs, a.Verb)
	case rbacindex.LackName:
		rule.ResourceNames = append(rule.ResourceNames, a.Name)
	case rbacindex.LackSubresource:
		want := a.Resource
		if a.Subresource != "" {
			want += "/" + a.Subresource
		}
		rule.Resources = append(rule.Resources, want)
	case rbacindex.LackGroup:
		rule.APIGroups = append(rule.APIGroups, a.APIGroup)
	case rbacindex.LackNamespace:
		asked.Namespace = x.BindingNamespace()
	}
	after := p.Clone()
	meta := metav1.ObjectMeta{Namespace: role.Namespace, Name: role.Name}
	if role.Kind == rbacindex.KindRole {
		after.Apply(rbacindex.Change{Key: role, Object: &rbacv1.Role{ObjectMeta: meta, Rules: rules}})
	} else {
		after.Apply(rbacindex.Change{Key: role, Object: &rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules}})
	}
	if !NewReal(after).Allows(&asked) {
		return fmt.Errorf("%+v is still refused with rule %d of %s that lacked its %s", asked, x.Rule(), role, x.Lack)
	}
	return nil
}
