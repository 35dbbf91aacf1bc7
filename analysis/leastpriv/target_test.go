package leastpriv

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/rbacindex"
)

// team is a policy in which a group, a member of it and somebody else hold the same role.
func team(t *testing.T) *cluster {
	c := newCluster(t, clusterRole("wide", rule("*", "", "pods configmaps secrets")), clusterRole("spare", rule("get", "", "nodes")),
		everywhere("team", "wide", group("devs")), everywhere("solo", "wide", user("ann")),
		in("b", "mixed", "wide", group("devs"), user("cat")),
		everywhere("spare", "spare", group("devs")))
	devs := []string{"devs", "system:authenticated"}
	c.ask("ann", devs, "list", "/api/v1/namespaces/a/pods")
	c.ask("ann", devs, "list", "/api/v1/namespaces/a/pods")
	c.ask("ben", devs, "delete", "/api/v1/namespaces/b/configmaps/x")
	c.ask("cat", []string{"system:authenticated"}, "get", "/api/v1/namespaces/b/secrets/x")
	return c
}

func (c *cluster) suggestFor(target Target, o Options) (*Suggestion, *Plan) {
	c.t.Helper()
	s, p, err := c.advise(o).SuggestFor(target)
	if err != nil {
		c.t.Fatal(err)
	}
	if !s.Proof.Holds || !p.Holds {
		c.t.Errorf("the proof does not hold: %+v", s.Proof)
	}
	return s, p
}

// TestSuggestFor: a group, a role and a binding are narrowed to what anybody used of them, whatever else gives it, and others keep theirs.
func TestSuggestFor(t *testing.T) {
	removed := func(s *Suggestion) (out []string) {
		for i := range s.Remove {
			out = append(out, s.Remove[i].Action+" "+s.Remove[i].key.String())
		}
		return out
	}
	bare := Options{NoAddedVerbs: true}
	s, p := team(t).suggestFor(Target{Group: "devs"}, bare)
	if got := ruleTexts(s); !slices.Equal(got, []string{"| delete | configmaps", "| list | pods"}) {
		t.Errorf("the group keeps %q", got)
	}
	if got := removed(s); !slices.Equal(got, []string{"replace RoleBinding/b/mixed", "delete ClusterRoleBinding/spare",
		"delete ClusterRoleBinding/team", "delete ClusterRole/spare"}) {
		t.Errorf("the group leaves %q", got)
	}
	if s.What != WhatGroup || s.Subject != "devs" || !s.Seen || s.Proof.Requests != 3 ||
		s.Excess.After >= s.Excess.Before || len(p.Final) == 0 {
		t.Errorf("got %+v", s)
	}
	if w := s.Why; len(w) != 2 || !slices.Equal(w[0].Subjects, []string{"ben"}) || w[1].Requests != 2 || w[1].Days != 1 ||
		!strings.HasPrefix(w[1].Texts[0], "needed by 2 requests of ann, the last at ") {
		t.Errorf("reasons %+v", w)
	}

	role := rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "wide"}
	s, _ = team(t).suggestFor(Target{Object: role}, bare)
	if got := ruleTexts(s); !slices.Equal(got, []string{"| delete | configmaps", "| get | secrets", "| list | pods"}) {
		t.Errorf("the role keeps %q", got)
	}
	if len(s.Apply) != 1 || change(s.Apply[0]).Key != role || len(s.Remove) != 0 || s.What != WhatRole || s.Subject != "ClusterRole/wide" {
		t.Errorf("a role is edited in place: %+v", s)
	}

	s, _ = team(t).suggestFor(Target{Object: rbacindex.Key{Kind: rbacindex.KindRoleBinding, Namespace: "b", Name: "mixed"}}, bare)
	if got := ruleTexts(s); !slices.Equal(got, []string{"b| delete | configmaps", "b| get | secrets"}) {
		t.Errorf("the binding keeps %q", got)
	}
	if got := removed(s); !slices.Equal(got, []string{"delete RoleBinding/b/mixed"}) || s.What != WhatBinding {
		t.Errorf("the binding: %q", got)
	}

	s, _ = team(t).suggestFor(Target{Object: rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "spare"}}, bare)
	if got := removed(s); len(s.Apply) != 0 || s.Seen ||
		!slices.Equal(got, []string{"delete ClusterRoleBinding/spare", "delete ClusterRole/spare"}) {
		t.Errorf("of a role that nobody used stays %q, goes %q", keysOf(s.Apply), got)
	}
	c := team(t)
	c.load()
	c.collector.subjects["ben"].folded = 3
	if s, _ := c.suggestFor(Target{Group: "devs"}, bare); s.Changes() || s.Maturity.Learned ||
		!strings.Contains(s.Gaps[0], "counted together") {
		t.Errorf("requests of a member are not told, and the change is %q; gaps %q", keysOf(s.Apply), s.Gaps)
	}
	for _, nobody := range []Target{{Group: "dves"}, {Object: rbacindex.Key{Kind: rbacindex.KindRole, Namespace: "b", Name: "none"}}} {
		if _, _, err := team(t).advise(bare).SuggestFor(nobody); !errors.Is(err, ErrUnbound) {
			t.Errorf("%+v: %v", nobody, err)
		}
	}
}

// TestSuggestForBinders: who bound a role because it held the rules of it goes on holding them.
func TestSuggestForBinders(t *testing.T) {
	c := newCluster(t, clusterRole("lead", rule("*", "", "pods secrets"), rule("create", groupRBAC, "rolebindings")),
		clusterRole("reader", rule("get list", "", "pods")), everywhere("leads", "lead", group("leads")))
	c.ask("ann", []string{"leads"}, "create", "/apis/rbac.authorization.k8s.io/v1/namespaces/b/rolebindings", code(201),
		body(`{"metadata":{"name":"x"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"reader"}}`))
	s, _ := c.suggestFor(Target{Group: "leads"}, Options{NoAddedVerbs: true})
	if got := ruleTexts(s); !slices.Equal(got, []string{"| create | rolebindings.rbac.authorization.k8s.io", "| get,list | pods"}) {
		t.Errorf("the group keeps %q", got)
	}
}

// TestSuggestForRecorded: on the bundled recording every group, role and binding is proved, and a group's change takes nothing from what
// its members need that their own change leaves to the group.
func TestSuggestForRecorded(t *testing.T) {
	a := recorded(t, Options{})
	all := everybody(t, a)
	var targets []Target
	for name := range a.group {
		targets = append(targets, Target{Group: name})
	}
	a.view.RBAC.All(func(k rbacindex.Key, _ any) bool {
		targets = append(targets, Target{Object: k})
		return true
	})
	before, after, narrowed, together := 0, 0, 0, 0
	for _, target := range targets {
		s, p, err := a.SuggestFor(target)
		if errors.Is(err, ErrUnbound) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if !s.Proof.Holds || s.Proof.Refused > 0 || s.Proof.NewlyAllowed > 0 || s.Excess.After > s.Excess.Before {
			t.Errorf("%s: %+v, %+v", s.Subject, s.Proof, s.Excess)
		}
		if s.Changes() {
			narrowed++
		}
		if target.Group == "" {
			continue
		}
		before, after = before+s.Excess.Before, after+s.Excess.After
		mine := changesOf(p.Apply, p.Remove)
		for _, one := range all {
			theirs := changesOf(one.Apply, one.Remove)
			if len(mine) == 0 || len(theirs) == 0 || slices.ContainsFunc(mine, func(c rbacindex.Change) bool {
				return slices.ContainsFunc(theirs, func(d rbacindex.Change) bool { return c.Key == d.Key })
			}) {
				continue
			}
			final, err := a.view.RBAC.Apply(slices.Concat(mine, theirs)...)
			if err != nil {
				t.Fatal(err)
			}
			together++
			h := a.historyOf(one.Subject)
			on, err := a.ground(one.Subject, h)
			if err != nil {
				t.Fatal(err)
			}
			if proof := h.prove(final, on); proof.Refused > 0 {
				t.Errorf("%s, and group %s: %+v", one.Subject, target.Group, proof)
			}
		}
	}
	t.Logf("%d of %d targets are narrowed; of groups excess %d, then %d; %d pairs of a group and a subject hold", narrowed, len(targets),
		before, after, together)
	if narrowed < 50 || after*3 > before || together < 100 {
		t.Errorf("%d narrowed, excess %d and %d, %d pairs", narrowed, before, after, together)
	}
}

// TestSuggestForCounted: what rollups tell gives groups, roles and bindings what events give.
func TestSuggestForCounted(t *testing.T) {
	p := bundled(t)
	events, counted, _ := p.counted(t, p.state.RBAC(newest).RBAC)
	a, b := events.Advise(p.state, newest, Options{}), counted.Advise(p.state, newest, Options{})
	for _, target := range []Target{{Group: "team:catalog"}, {Group: "team:orders"}, {Group: "system:authenticated"},
		{Object: rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "admin"}},
		{Object: rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: "edit"}}} {
		want, _, err := a.SuggestFor(target)
		if err != nil {
			t.Fatal(err)
		}
		got, _, err := b.SuggestFor(target)
		if err != nil {
			t.Fatal(err)
		}
		if len(want.Apply) == 0 || !reflect.DeepEqual(got.Apply, want.Apply) || !reflect.DeepEqual(got.Remove, want.Remove) ||
			!reflect.DeepEqual(got.Why, want.Why) || !got.Proof.Holds {
			t.Errorf("%s: %q, want %q; proof %+v", want.Subject, keysOf(got.Apply), keysOf(want.Apply), got.Proof)
		}
	}
}

// TestPeriods: what came twice, so far apart that a third time would not be in the recording, is said.
func TestPeriods(t *testing.T) {
	const day = 24 * time.Hour
	used := func(verb string, on ...int32) need {
		return need{attrs: rbacindex.Attributes{ResourceRequest: true, Verb: verb, Resource: "pods"}, days: on}
	}
	weekly, daily, once := used("delete", 100, 107), used("list", 100, 101, 102, 103, 104, 105, 106, 107, 108), used("get", 103)
	for _, c := range []struct {
		needs  []need
		covers time.Duration
		want   string
	}{
		{[]need{weekly, daily, once}, 9 * day, "delete pods was seen on two days, 7 days apart, and the recording covers 9, less than " +
			"twice that: what comes as rarely may be missing (verbs on resources of which this is so: 1)"},
		{[]need{weekly, daily, once}, 14 * day, ""},
		{[]need{used("delete", 100), used("delete", 107)}, 9 * day, "delete pods was seen on two days"},
		{[]need{daily, once, used("get", 104)}, 9 * day, ""},
	} {
		if got := periodText(c.needs, c.covers); !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%q, want %q", got, c.want)
		}
	}
}

func changesOf(write Objects, remove []Remove) (out []rbacindex.Change) {
	for i := range remove {
		out = append(out, rbacindex.Change{Key: remove[i].key, Object: remove[i].Object})
	}
	for _, o := range write {
		out = append(out, change(o))
	}
	return out
}
