package leastpriv

import (
	"context"
	"slices"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// newest is later than anything recorded.
var newest = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// recorded takes in the bundled recording.
func recorded(t testing.TB, o Options) *Advisor {
	t.Helper()
	c, st := NewCollector(), state.New("sample")
	_, err := evaluate.Run(context.Background(), evaluate.Options{
		Engine: replay.New(replay.Config{}),
		States: []evaluate.Input{{Name: sample.StateName, Open: sample.OpenState}},
		Events: []evaluate.Input{{Name: sample.AuditLogName, Open: sample.OpenAuditLog}},
		Sink: func(e *event.Event, v *verdict.Verdict) error {
			c.Observe(e, v)
			if event.KeepsPolicy(e) {
				obs, err := observe.FromEvent(e)
				if err != nil {
					return err
				}
				st.Apply(obs...)
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	r, err := sample.OpenState()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	snap, _, err := observe.ReadSnapshot(r)
	if err != nil {
		t.Fatal(err)
	}
	snap.Since = c.Recording().From
	if _, err := st.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	return c.Advise(st, newest, o)
}

// everybody makes a suggestion for every subject, including those of Kubernetes itself.
func everybody(t testing.TB, a *Advisor) []*Suggestion {
	t.Helper()
	var out []*Suggestion
	for _, name := range a.collector.Subjects() {
		s, err := a.Suggest(name)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, s)
	}
	return out
}

func TestRecording(t *testing.T) {
	a := recorded(t, Options{Strict: true})
	all := everybody(t, a)
	t.Run("every proof holds", func(t *testing.T) { proofsHold(t, a, all) })
	t.Run("every rule is necessary", func(t *testing.T) {
		if rules := rulesAreNecessary(t, a, all); rules < 100 {
			t.Errorf("%d rules, want the recording's", rules)
		}
	})
	t.Run("objects are strict and without wildcards", func(t *testing.T) { objectsAreStrict(t, all) })
	t.Run("the rollback undoes everything", func(t *testing.T) { rollbackUndoes(t, a, all) })
}

// TestNarrowed: roles are narrowed to what is needed of them, and nothing that was used and is held is refused.
func TestNarrowed(t *testing.T) {
	a := recorded(t, Options{})
	all := everybody(t, a)
	t.Run("every proof holds", func(t *testing.T) { proofsHold(t, a, all) })
	t.Run("every pair is necessary, or has a reason", func(t *testing.T) {
		if pairs := pairsAreNecessary(t, a, all); pairs < 300 {
			t.Errorf("%d pairs, want the recording's", pairs)
		}
	})
	t.Run("the rollback undoes everything", func(t *testing.T) { rollbackUndoes(t, a, all) })
}

// pairsAreNecessary takes each verb on each resource or path out of the roles of a suggestion: something recorded must then be refused,
// unless the suggestion says why it is there.
func pairsAreNecessary(t *testing.T, a *Advisor, all []*Suggestion) (pairs int) {
	t.Helper()
	for _, s := range all {
		if len(s.Apply) == 0 {
			continue
		}
		added := map[string]bool{}
		for _, x := range s.Added {
			added[x.Verb+" "+x.Resource] = true
		}
		final := finalOf(t, a, s)
		h := a.historyOf(s.Subject)
		for _, o := range s.Apply {
			rules := roleRules(o)
			for i := range rules {
				for _, x := range atomsOf(&rules[i]) {
					pairs++
					p := x.pair()
					policy, err := final.Apply(change(withRules(o, withoutPair(rules, i, p))))
					if err != nil {
						t.Fatal(err)
					}
					on := &ground{base: policy, forced: policy, handed: policy, today: a.view.RBAC}
					if proof := h.prove(policy, on); proof.Refused == 0 && !added[x.verb+" "+resourceText(x.group, x.resource)] {
						t.Errorf("%s: %s of rule %d of %s is not necessary: %+v", s.Subject, grantText(&x), i, change(o).Key, rules[i])
					}
				}
			}
		}
	}
	return pairs
}

// withoutPair returns rules without one verb on one resource or path of rule i.
func withoutPair(rules []rbacv1.PolicyRule, i int, p pair) []rbacv1.PolicyRule {
	var set ruleSet
	left := set.of(rules[i].ResourceNames)
	for _, x := range atomsOf(&rules[i]) {
		if q := x.pair(); q != p {
			left[q] = true
		}
	}
	return append(slices.Delete(slices.Clone(rules), i, i+1), set.rules()...)
}

func proofsHold(t *testing.T, a *Advisor, all []*Suggestion) {
	if len(all) < 40 {
		t.Fatalf("%d subjects, want the recording's", len(all))
	}
	changed := 0
	for _, s := range all {
		if !s.Proof.Holds || s.Proof.Refused != 0 || s.Proof.NewlyAllowed != 0 {
			t.Errorf("%s: the proof does not hold: %+v", s.Subject, s.Proof)
		}
		if s.Excess.After > s.Excess.Before {
			t.Errorf("%s: excess grows from %d to %d", s.Subject, s.Excess.Before, s.Excess.After)
		}
		if s.Changes() {
			changed++
		}
		t.Logf("%-55s excess %5d -> %4d, kept %5d, %2d to apply, %2d to remove, %+v", s.Subject, s.Excess.Before, s.Excess.After,
			s.Excess.Kept, len(s.Apply), len(s.Remove), s.Proof)
	}
	if changed < 20 {
		t.Errorf("%d suggestions change anything, want most", changed)
	}
	together, err := a.Together(all)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range together.Proofs {
		if !p.Holds || p.Requests != all[i].Proof.Requests {
			t.Errorf("%s: with all suggestions in force the proof does not hold: %+v", all[i].Subject, p)
		}
	}
	if !together.Holds {
		t.Error("all suggestions together do not hold")
	}

	// What --final prints is a complete policy: a subject needs nothing outside of it.
	objects := make([]any, 0, len(together.Final))
	for _, o := range together.Final {
		objects = append(objects, o)
	}
	final, err := rbacindex.New(objects...)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range all {
		on, err := a.ground(s.Subject, a.historyOf(s.Subject))
		if err != nil {
			t.Fatal(err)
		}
		if p := a.historyOf(s.Subject).prove(final, on); !p.Holds {
			t.Errorf("%s: the final objects alone do not hold: %+v", s.Subject, p)
		}
	}
}

// rulesAreNecessary removes each rule of a suggestion, and each verb, resource and name of it:
// something recorded must then be refused. It returns the number of rules.
func rulesAreNecessary(t *testing.T, a *Advisor, all []*Suggestion) (rules int) {
	t.Helper()
	for _, s := range all {
		if len(s.Apply) == 0 {
			continue
		}
		final := finalOf(t, a, s)
		h := a.historyOf(s.Subject)
		for _, o := range s.Apply {
			for i := range roleRules(o) {
				rules++
				for what, weaker := range weakened(roleRules(o), i) {
					policy, err := final.Apply(change(withRules(o, weaker)))
					if err != nil {
						t.Fatal(err)
					}
					if p := h.prove(policy, &ground{base: policy, forced: policy, handed: policy}); p.Refused == 0 {
						t.Errorf("%s: %s of rule %d of %s is not necessary: %+v", s.Subject, what, i, change(o).Key, roleRules(o)[i])
					}
				}
			}
		}
	}
	return rules
}

// weakened returns the rules without rule i, and without each part of it.
func weakened(rules []rbacv1.PolicyRule, i int) map[string][]rbacv1.PolicyRule {
	out := map[string][]rbacv1.PolicyRule{"all": slices.Delete(slices.Clone(rules), i, i+1)}
	part := func(name string, of func(*rbacv1.PolicyRule) *[]string) {
		values := *of(&rules[i])
		if len(values) < 2 {
			return
		}
		for j, v := range values {
			c := slices.Clone(rules)
			*of(&c[i]) = slices.Delete(slices.Clone(values), j, j+1)
			out[name+" "+v] = c
		}
	}
	part("verb", func(r *rbacv1.PolicyRule) *[]string { return &r.Verbs })
	part("resource", func(r *rbacv1.PolicyRule) *[]string { return &r.Resources })
	part("name", func(r *rbacv1.PolicyRule) *[]string { return &r.ResourceNames })
	part("url", func(r *rbacv1.PolicyRule) *[]string { return &r.NonResourceURLs })
	return out
}

func withRules(o Object, rules []rbacv1.PolicyRule) Object {
	switch r := o.(type) {
	case *rbacv1.Role:
		c := r.DeepCopy()
		c.Rules = rules
		return c
	case *rbacv1.ClusterRole:
		c := r.DeepCopy()
		c.Rules = rules
		return c
	}
	return o
}

// finalOf returns the policy with one suggestion in force.
func finalOf(t testing.TB, a *Advisor, s *Suggestion) *rbacindex.Snapshot {
	t.Helper()
	policy := a.view.RBAC
	var changes []rbacindex.Change
	for _, r := range s.Remove {
		c := rbacindex.Change{Key: r.key}
		if r.Action == ActionReplace {
			c.Object = r.Object
		}
		changes = append(changes, c)
	}
	for _, o := range s.Apply {
		changes = append(changes, change(o))
	}
	policy, err := policy.Apply(changes...)
	if err != nil {
		t.Fatal(err)
	}
	return policy
}

// objectsAreStrict reads every rule, and passes every object through the strict
// decoder clients use.
func objectsAreStrict(t *testing.T, all []*Suggestion) {
	for _, s := range all {
		for _, o := range slices.Concat(s.Apply, s.Rollback) {
			strict(t, o)
		}
		for _, o := range s.Apply {
			for _, r := range roleRules(o) {
				for _, at := range atomsOf(&r) {
					if at.wild() {
						t.Errorf("%s: %s holds the wildcard %s", s.Subject, change(o).Key, grantText(&at))
					}
				}
			}
		}
	}
}

func strict(t *testing.T, o Object) {
	t.Helper()
	text, err := yaml.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	var into any
	switch o.(type) {
	case *rbacv1.Role:
		into = &rbacv1.Role{}
	case *rbacv1.ClusterRole:
		into = &rbacv1.ClusterRole{}
	case *rbacv1.RoleBinding:
		into = &rbacv1.RoleBinding{}
	case *rbacv1.ClusterRoleBinding:
		into = &rbacv1.ClusterRoleBinding{}
	default:
		t.Fatalf("%T is not an RBAC object", o)
	}
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	if !sameObject(o, into) || change(o).Key != change(into).Key {
		t.Errorf("%s\nreads back as %+v", text, into)
	}
}

// rollbackUndoes checks that the rollback objects, and deleting what else was applied, restore the
// policy.
func rollbackUndoes(t *testing.T, a *Advisor, all []*Suggestion) {
	for _, s := range all {
		var changes []rbacindex.Change
		for _, o := range s.Apply {
			changes = append(changes, rbacindex.Change{Key: change(o).Key})
		}
		for _, o := range s.Rollback {
			changes = append(changes, change(o))
		}
		policy, err := finalOf(t, a, s).Apply(changes...)
		if err != nil {
			t.Fatal(err)
		}
		if !samePolicy(policy, a.view.RBAC) || !samePolicy(a.view.RBAC, policy) {
			t.Errorf("%s: after the rollback the policy is another one", s.Subject)
		}
	}
}

func samePolicy(a, b *rbacindex.Snapshot) bool {
	same := true
	a.All(func(k rbacindex.Key, o any) bool {
		other, ok := b.Get(k)
		same = ok && sameObject(o, other)
		return same
	})
	return same
}
