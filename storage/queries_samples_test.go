package storage_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// TestSamples: an access's samples are its newest requests of the day of its last, the request's own and those of checks behind requests,
// after corrections.
func TestSamples(t *testing.T) {
	s := storagetest.Open(t)
	in := rows(t, "c", 0)
	in = append(in, hostile(t)...)
	for i := range in {
		in[i].Cluster, in[i].Position.Partition = "c", 0
	}
	insert(t, s, "a", in)
	insert(t, s, "other", rows(t, "another", 1)[:50])
	insert(t, s, "fix", revised(in, 7))

	type request struct {
		id string
		at time.Time
	}
	want, asked := map[string][]request{}, map[string]queries.Sampled{}
	add := func(r *verdict.Row, by []string, who, check string, a *verdict.Attributes) {
		groups := slices.Compact(slices.Sorted(slices.Values(by)))
		name := a.Name
		if strings.HasPrefix(check, "signer-") {
			name = ""
		}
		k := strings.Join(append(groups, "", who, check, a.Verb, a.APIGroup, a.Resource, a.Subresource, a.Namespace, name, a.Path), "\x01")
		at := r.Event.RequestReceivedTimestamp
		want[k] = append(want[k], request{r.Event.AuditID, at})
		if x, ok := asked[k]; !ok || at.After(x.Last) {
			slices.Reverse(groups) // their order is not told apart
			asked[k] = queries.Sampled{Subject: who, Groups: groups, Check: check, Attributes: *a, Last: at}
		}
	}
	checks := 0
	for i := range in {
		r := &in[i]
		v := r.Verdict
		if v == nil || v.Outcome != verdict.OutcomeMatch && v.Outcome != verdict.OutcomeAmbiguous {
			continue
		}
		u := r.Event.EffectiveUser()
		add(r, u.Groups, u.Username, "", &v.Attributes)
		for j := range v.Implied {
			c, by := &v.Implied[j], u
			if c.ByRequestor() {
				by = &r.Event.User
			}
			checks++
			add(r, by.Groups, by.Username, c.Check, &c.Attributes)
		}
	}
	if checks == 0 || len(want) < 50 {
		t.Fatalf("%d checks, %d accesses", checks, len(want))
	}
	var keys []string
	var of []queries.Sampled
	for k, x := range asked {
		keys, of = append(keys, k), append(of, x)
	}
	const most = 2
	got, err := s.Samples(t.Context(), "c", of, most)
	if err != nil {
		t.Fatal(err)
	}
	for i, k := range keys {
		day := of[i].Last.UTC().Truncate(24 * time.Hour)
		all := slices.DeleteFunc(want[k], func(r request) bool { return r.at.Before(day) || r.id == "" })
		slices.SortFunc(all, func(a, b request) int { return b.at.Compare(a.at) })
		ids := map[string]bool{}
		for _, r := range all {
			ids[r.id] = true
		}
		if len(got[i]) != min(len(ids), most) || len(all) > 0 && !slices.ContainsFunc(all, func(r request) bool {
			return r.id == got[i][0] && r.at.Equal(all[0].at)
		}) || slices.ContainsFunc(got[i], func(id string) bool { return !ids[id] }) {
			t.Errorf("%q: %q, want the newest of %v", k, got[i], all)
		}
	}
	got, err = s.Samples(t.Context(), "nobody", of, most)
	if err != nil || slices.ContainsFunc(got, func(x []string) bool { return x != nil }) {
		t.Errorf("%v: another cluster has samples", err)
	}
}
