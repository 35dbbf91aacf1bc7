package storage_test

import (
	"cmp"
	"context"
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// isRefused reports whether a request was refused, in plain Go.
func isRefused(r *verdict.Row) bool {
	v, code := r.Verdict, r.Event.Code()
	return v != nil && (v.Recorded == verdict.DecisionForbid || code == 401 || code == 403 ||
		v.Admission.Recorded == verdict.AdmissionRejected)
}

// TestRefusals compares refused requests with the rows themselves, after corrections.
func TestRefusals(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := rows(t, "c", 0)
	insert(t, s, "a", in)
	insert(t, s, "other", rows(t, "another", 1)[:50])
	insert(t, s, "fix", revised(in, 5))
	type key struct{ subject, verb, resource, namespace, outcome string }
	type sum struct {
		requests    int64
		first, last time.Time
		id          string
	}
	middle := in[len(in)/2].Event.RequestReceivedTimestamp
	groups := in[len(in)/3].Event.EffectiveUser().Groups
	for name, f := range map[string]queries.RefusalFilter{
		"all": {Own: true}, "not Kubernetes' own": {}, "from": {From: middle, Own: true}, "to": {To: middle, Own: true},
		"of some": {Own: true, Subjects: []string{"nobody"}, Groups: groups[:1]},
	} {
		f.Cluster, f.Limit = "c", 10_000
		got, total, err := s.Refusals(ctx, f)
		if err != nil {
			t.Fatal(name, err)
		}
		want, requests, own := map[key]sum{}, int64(0), int64(0)
		for i := range in {
			r := &in[i]
			at, who := r.Event.RequestReceivedTimestamp, r.Event.EffectiveUser()
			if !isRefused(r) || !f.From.IsZero() && at.Before(f.From) || !f.To.IsZero() && !at.Before(f.To) ||
				len(f.Groups) > 0 && !slices.Contains(who.Groups, f.Groups[0]) {
				continue
			}
			if !f.Own && kubenames.Own(who.Username) && who.Username != kubenames.Anonymous {
				own++
				continue
			}
			a := r.Verdict.Attributes
			k := key{who.Username, a.Verb, a.Resource, a.Namespace, r.Verdict.Outcome.String()}
			x := want[k]
			if requests++; x.requests == 0 || at.Before(x.first) {
				x.first, x.id = at, r.Event.AuditID
			}
			if at.After(x.last) {
				x.last = at
			}
			x.requests++
			want[k] = x
		}
		if requests == 0 && name != "of some" {
			t.Errorf("%s: nothing is refused", name)
		}
		have := map[key]sum{}
		for i := range got {
			g := &got[i]
			k := key{g.Subject, g.Attributes.Verb, g.Attributes.Resource, g.Attributes.Namespace, g.Outcome}
			x := have[k]
			if x.requests == 0 || g.First.Before(x.first) {
				x.first, x.id = g.First, g.AuditID
			}
			if g.Last.After(x.last) {
				x.last = g.Last
			}
			x.requests += g.Requests
			have[k] = x
		}
		if total.Requests != requests || total.Own != own || total.Groups != uint64(len(got)) || len(have) != len(want) {
			t.Errorf("%s: %+v and %d kinds, want %d and %d of Kubernetes' own, %d kinds", name, total, len(have), requests, own, len(want))
		}
		for k, x := range want {
			if have[k] != x {
				t.Errorf("%s: %+v: %+v, want %+v", name, k, have[k], x)
			}
		}
		f.Limit = 1
		if few, sum, err := s.Refusals(ctx, f); err != nil || len(few) != min(1, len(got)) || len(few) > 0 && sum != total {
			t.Errorf("%s: %d, %+v, %v", name, len(few), sum, err)
		}
	}
}

// TestPolicyWrites compares the writes of roles and bindings with the rows themselves.
func TestPolicyWrites(t *testing.T) {
	s := storagetest.Open(t)
	in := rows(t, "c", 0)
	insert(t, s, "a", in)
	var want []string
	for i := range in {
		e := in[i].Event
		if o := e.ObjectRef; o != nil && o.APIGroup == "rbac.authorization.k8s.io" && queries.IsWrite(e.Verb) &&
			e.Stage == "ResponseComplete" && (e.Code() < 300 || e.Code() >= 500) {
			want = append(want, e.AuditID)
		}
	}
	got, err := s.PolicyWrites(context.Background(), "c", time.Time{}, time.Time{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var ids []string
	for i := range got {
		ids = append(ids, got[i].Event.AuditID)
		if i > 0 && got[i].Event.RequestReceivedTimestamp.After(got[i-1].Event.RequestReceivedTimestamp) {
			t.Error("not newest first")
		}
	}
	slices.Sort(want)
	slices.Sort(ids)
	if !slices.Equal(ids, want) || len(want) == 0 {
		t.Errorf("%d writes, want %d", len(ids), len(want))
	}
}

// TestFirstUses compares what was done for the first time with the rows themselves, after corrections.
func TestFirstUses(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := rows(t, "c", 0)
	insert(t, s, "a", in)
	insert(t, s, "other", rows(t, "another", 1)[:50])
	insert(t, s, "fix", revised(in, 7))
	type access struct{ subject, verb, group, resource, subresource, namespace string }
	type grant struct{ kind, namespace, name, subject string }
	firsts, granted := map[access]time.Time{}, map[grant]time.Time{}
	earlier := func(was time.Time, at time.Time) time.Time {
		if was.IsZero() || at.Before(was) {
			return at
		}
		return was
	}
	var times []time.Time
	for i := range in {
		r := &in[i]
		if r.Verdict == nil {
			continue
		}
		at, a := r.Event.RequestReceivedTimestamp, r.Verdict.Attributes
		times = append(times, at)
		k := access{r.Event.EffectiveUser().Username, a.Verb, a.APIGroup, a.Resource, a.Subresource, a.Namespace}
		firsts[k] = earlier(firsts[k], at)
		uses := slices.Clone(r.Verdict.Grants)
		if r.Verdict.Recorded != verdict.DecisionForbid {
			for _, c := range r.Verdict.Implied {
				uses = append(uses, c.Grants...)
			}
		}
		for _, g := range uses {
			k := grant{g.BindingKind, g.BindingNamespace, g.Binding, g.SubjectKind + "/" + g.SubjectNamespace + "/" + g.Subject}
			granted[k] = earlier(granted[k], at)
		}
	}
	slices.SortFunc(times, time.Time.Compare)
	from, to := times[len(times)/3], times[len(times)*4/5]
	within := func(at time.Time) bool { return !at.Before(from) && at.Before(to) }
	f := queries.FirstFilter{Cluster: "c", From: from, To: to, Own: true, Limit: 10_000}
	uses, err := s.FirstUses(ctx, f)
	if err != nil {
		t.Fatal(err)
	}
	got := map[access]time.Time{}
	for _, u := range uses {
		if !within(u.First) || u.Requests < 1 || u.Allowed+u.Forbidden > u.Requests {
			t.Errorf("%+v", u)
		}
		k := access{u.Subject, u.Verb, u.Group, u.Resource, u.Subresource, u.Namespace}
		got[k] = earlier(got[k], u.First)
	}
	found := 0
	for k, at := range firsts {
		if within(at) {
			if found++; !got[k].Equal(at) {
				t.Errorf("%+v was done first at %v, not %v", k, at, got[k])
			}
		}
	}
	if found == 0 {
		t.Error("nothing is done for the first time")
	}
	bindings, err := s.FirstGrants(ctx, f)
	if err != nil {
		t.Fatal(err)
	}
	found = 0
	for k, at := range granted {
		i := slices.IndexFunc(bindings, func(b queries.FirstGrant) bool {
			g := &b.Grant
			return k == grant{g.BindingKind, g.BindingNamespace, g.Binding, g.SubjectKind + "/" + g.SubjectNamespace + "/" + g.Subject}
		})
		if (i >= 0) != within(at) || i >= 0 && !bindings[i].First.Equal(at) {
			t.Errorf("%+v was used first at %v; %d", k, at, i)
		}
		if i >= 0 {
			found++
		}
	}
	if found != len(bindings) {
		t.Errorf("%d bindings, want %d", len(bindings), found)
	}
	one := uses[len(uses)/2].Subject
	f.Subjects = []string{one}
	few, err := s.FirstUses(ctx, f)
	if err != nil || len(few) != len(slices.DeleteFunc(slices.Clone(uses), func(u queries.FirstUse) bool { return u.Subject != one })) {
		t.Errorf("%d of %s, %v", len(few), one, err)
	}
}

// TestGrantedUses compares what bindings were used for with the rows themselves.
func TestGrantedUses(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := rows(t, "c", 0)
	insert(t, s, "a", in)
	insert(t, s, "fix", revised(in, 7))
	type use struct{ binding, subject, verb, resource string }
	want, last := map[use]int64{}, map[use]time.Time{}
	byName := map[string]verdict.Grant{}
	for i := range in {
		r := &in[i]
		if r.Verdict == nil {
			continue
		}
		add := func(a *verdict.Attributes, grants []verdict.Grant) {
			for _, g := range grants {
				name := g.BindingKind + "/" + g.BindingNamespace + "/" + g.Binding
				byName[name] = g
				k := use{name, g.Subject, a.Verb, a.Resource}
				want[k]++
				if at := r.Event.RequestReceivedTimestamp; at.After(last[k]) {
					last[k] = at
				}
			}
		}
		add(&r.Verdict.Attributes, r.Verdict.Grants)
		if r.Verdict.Recorded != verdict.DecisionForbid {
			for j := range r.Verdict.Implied {
				add(&r.Verdict.Implied[j].Attributes, r.Verdict.Implied[j].Grants)
			}
		}
	}
	var asked []verdict.Grant
	left := ""
	for name, g := range byName {
		if left == "" {
			left = name
			continue
		}
		asked = append(asked, g)
	}
	slices.SortFunc(asked, func(a, b verdict.Grant) int { return cmp.Compare(a.Binding, b.Binding) })
	day := in[0].Event.RequestReceivedTimestamp
	for _, within := range []bool{true, false} {
		from := day.Add(-time.Hour)
		if !within {
			from = day.AddDate(0, 0, 2)
		}
		list, err := s.GrantedUses(ctx, "c", asked, from, from.AddDate(0, 0, 2))
		if err != nil {
			t.Fatal(err)
		}
		got, ever, until := map[use]int64{}, map[use]int64{}, map[use]time.Time{}
		for i := range list {
			u := &list[i]
			g := &u.Grant
			k := use{g.BindingKind + "/" + g.BindingNamespace + "/" + g.Binding, g.Subject, u.Verb, u.Resource}
			got[k], ever[k] = got[k]+u.Requests, ever[k]+u.Ever
			if u.Last.After(until[k]) {
				until[k] = u.Last
			}
			if len(u.Subjects) == 0 || len(u.Subjects) > 5 {
				t.Errorf("%+v: used by %q", k, u.Subjects)
			}
		}
		for k, n := range want {
			if k.binding == left {
				n = 0
			} else if until[k].Before(last[k]) { // a correction does not narrow it
				t.Errorf("%+v was used last at %v, not %v", k, last[k], until[k])
			}
			if ever[k] != n || within && got[k] != n || !within && got[k] != 0 {
				t.Errorf("%+v: %d ever and %d within, want %d", k, ever[k], got[k], n)
			}
		}
	}
}
