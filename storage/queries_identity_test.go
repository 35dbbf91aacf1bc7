package storage_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// identified stores a recording whose every 7th verdict was replaced by drift with a finding.
func identified(t *testing.T) (*storage.Store, []verdict.Row) {
	t.Helper()
	s := storagetest.Open(t)
	in := rows(t, "c", 0)
	for i := range in {
		if e := in[i].Event; strings.HasPrefix(e.User.Username, "system:serviceaccount:kube-system:") {
			e.User.Extra = append(e.User.Extra[:len(e.User.Extra):len(e.User.Extra)],
				event.ExtraEntry{Key: "authentication.kubernetes.io/node-name", Values: []string{"n"}},
				event.ExtraEntry{Key: "authentication.kubernetes.io/pod-name", Values: []string{"p"}})
		}
	}
	insert(t, s, "a", in)
	insert(t, s, "other", rows(t, "another", 1))
	fix := revised(in, 7)
	for i := range fix {
		if fix[i].Sign > 0 {
			fix[i].Verdict.Identity = []string{"sa-groups-mismatch", "verb-contradicts"}
			fix[i].Verdict.Evidence = []string{"groups of " + fix[i].Event.User.Username}
		}
	}
	insert(t, s, "fix", fix)
	return s, in
}

func source(r *verdict.Row) string {
	if n := len(r.Event.SourceIPs); n > 0 {
		return r.Event.SourceIPs[n-1]
	}
	return ""
}

// TestCredentialUses follows every credential of a recording, and every user's credentials.
func TestCredentialUses(t *testing.T) {
	s, in := identified(t)
	ctx := context.Background()
	type place struct{ user, agent, source string }
	uses := map[string]map[place]int64{}
	of := map[string]map[string]int64{}
	earliest := map[[2]string]*verdict.Row{} // by user and credential
	for i := range in {
		v := in[i].Verdict
		if v == nil {
			continue
		}
		e := in[i].Event
		if of[e.User.Username] == nil {
			of[e.User.Username] = map[string]int64{}
		}
		of[e.User.Username][v.Credential]++
		who := [2]string{e.User.Username, v.Credential}
		if have := earliest[who]; have == nil || cmp.Or(e.RequestReceivedTimestamp.Compare(have.Event.RequestReceivedTimestamp),
			strings.Compare(in[i].Request.String(), have.Request.String())) < 0 {
			earliest[who] = &in[i]
		}
		if v.Credential == "" {
			continue
		}
		if uses[v.Credential] == nil {
			uses[v.Credential] = map[place]int64{}
		}
		uses[v.Credential][place{e.User.Username, e.UserAgent, source(&in[i])}]++
	}
	if len(uses) < 5 {
		t.Fatalf("%d credentials in the recording", len(uses))
	}
	for credential, want := range uses {
		all, err := s.CredentialUses(ctx, "c", []string{credential, "another"}, time.Time{}, time.Time{}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		got := all[credential]
		sums := map[place]int64{}
		for i, u := range got {
			sums[place{u.User, u.UserAgent, u.Source}] += u.Requests
			if u.First.After(u.Last) || i > 0 && u.First.Before(got[i-1].First) {
				t.Errorf("%s: use %+v out of order", credential, u)
			}
		}
		if fmt.Sprint(sums) != fmt.Sprint(want) {
			t.Errorf("%s: uses %v, want %v", credential, sums, want)
		}
	}
	pods, explained := 0, 0
	for user, want := range of {
		got, err := s.Credentials(ctx, "c", user, time.Time{}, time.Time{}, 1000)
		if err != nil {
			t.Fatal(err)
		}
		sums := map[string]int64{}
		for _, c := range got {
			sums[c.Credential] += c.Requests
			first := earliest[[2]string{user, c.Credential}]
			if !c.First.Equal(first.Event.RequestReceivedTimestamp) || !slices.Equal(c.Explained, first.Verdict.Explained) {
				t.Errorf("%s of %s: first at %s by %v, want %s by %v", c.Credential, user, c.First, c.Explained,
					first.Event.RequestReceivedTimestamp, first.Verdict.Explained)
			}
			explained += len(c.Explained)
			uses, err := s.CredentialUses(ctx, "c", []string{c.Credential}, c.First, c.Last.Add(time.Microsecond), 1000)
			if err != nil {
				t.Fatal(err)
			}
			if slices.ContainsFunc(uses[c.Credential], func(u queries.CredentialUse) bool { return u.Pod != "" && u.Node != "" }) {
				pods++
			}
		}
		if fmt.Sprint(sums) != fmt.Sprint(want) {
			t.Errorf("credentials of %s: %v, want %v", user, sums, want)
		}
	}
	if pods == 0 || explained == 0 {
		t.Errorf("%d credentials name their pod and node, %d authenticators take some", pods, explained)
	}
	if got, err := s.CredentialUses(ctx, "c", []string{"x'\t\n OR 1=1 --"}, time.Time{}, time.Time{}, 10); err != nil || len(got) != 0 {
		t.Errorf("a hostile name: %v, %v", got, err)
	}
}

// TestCredentialReadsLittle: a credential that was used once is found without reading all.
func TestCredentialReadsLittle(t *testing.T) {
	s := storagetest.Open(t)
	in := rows(t, "c", 0)
	all := make([]verdict.Row, 0, 40*len(in))
	for n := range 40 {
		for _, r := range in {
			e := *r.Event
			r.Event = &e
			r.Position.Offset += int64(n * len(in))
			shift(&r, time.Duration(n)*time.Hour)
			if r.Verdict != nil {
				v := *r.Verdict
				v.Credential = "JTI=common"
				if n == 20 && len(all)%len(in) == 100 {
					v.Credential = "JTI=rare"
				}
				r.Verdict = &v
			}
			all = append(all, r)
		}
	}
	insert(t, s, "a", all)
	granules := func(credential string) string {
		t.Helper()
		return s.Strings(t, `SELECT arrayStringConcat(groupArray(explain), '\n') FROM (EXPLAIN indexes = 1 SELECT count() `+
			`FROM retrial.events WHERE cluster = 'c' AND credential = '`+credential+`') WHERE explain LIKE '%%Granules%%'`)[0]
	}
	if rare, common := granules("JTI=rare"), granules("JTI=common"); rare == common {
		t.Errorf("the index selects\n%s\nfor a credential used once, and\n%s\nfor one used all the time", rare, common)
	}
}

// TestDriftOfNodes: what is missing for thousands of objects is one group, each example says for which; of requests that were judged again
// nothing is left, in whole slots and at the ends of a range.
func TestDriftOfNodes(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	var in, fix []verdict.Row
	for i, r := range rows(t, "c", 0) {
		if r.Verdict == nil {
			continue
		}
		v := *r.Verdict
		v.Outcome, v.Class, v.Missing = verdict.OutcomeIndeterminate, verdict.ClassNodeGraph,
			[]string{fmt.Sprintf("pods bound to node n (path to secrets/a/%d)", i)}
		v.Cause = "not known: " + v.Missing[0]
		r.Verdict = &v
		in = append(in, r)
		if len(in)%3 == 1 { // among them the first of all
			old, again := r, *r.Verdict
			old.Sign = -1
			again.Outcome, again.Class, again.Missing, again.Cause, again.Revision = verdict.OutcomeMatch, "", nil, "", 2
			r.Verdict, r.Revision = &again, 2
			fix = append(fix, old, r)
		}
	}
	insert(t, s, "a", in)
	insert(t, s, "b", fix)
	stand := func(r *verdict.Row, from, to time.Time) bool {
		at := r.Event.RequestReceivedTimestamp
		return (from.IsZero() || !at.Before(from.Truncate(time.Minute))) && (to.IsZero() ||
			at.Before(to.Add(time.Minute-1).Truncate(time.Minute)))
	}
	first := in[0].Event.RequestReceivedTimestamp
	for _, span := range [][2]time.Time{{}, {first.Add(3 * time.Minute), first.Add(47 * time.Minute)}, {first.Add(5 * time.Minute), {}},
		{{}, first.Add(6 * time.Minute)}, {first, first.Add(2 * time.Minute)}} {
		want, users := map[string]*verdict.Row{}, map[string]bool{}
		var requests int64
		for i := range in {
			if i%3 != 0 && stand(&in[i], span[0], span[1]) {
				requests++
				users[in[i].Event.EffectiveUser().Username] = true
				want[in[i].Verdict.Cause] = &in[i]
			}
		}
		groups, err := s.DriftGroups(ctx, "c", span[0], span[1], 3, 1000)
		if err != nil {
			t.Fatal(err)
		}
		var sum int64
		for _, d := range groups {
			sum += d.Requests
			if !slices.Equal(d.Missing, []string{"pods bound to node n"}) || d.Cause != "" || len(d.Examples) == 0 ||
				int(d.Users) > len(users) {
				t.Errorf("%v: group %+v", span, d)
			}
			for _, x := range d.Examples {
				if r := want[x.Cause]; r == nil || r.Event.AuditID != x.AuditID {
					t.Errorf("%v: example %+v does not stand", span, x)
				}
			}
		}
		if sum != requests || sum == 0 {
			t.Errorf("%v: %d requests in %d groups, want %d", span, sum, len(groups), requests)
		}
	}
}

// TestDriftGroups holds groups and counts to the rows.
func TestDriftGroups(t *testing.T) {
	s, in := identified(t)
	ctx := context.Background()
	var driftRequests int64
	for _, r := range in {
		if r.Verdict != nil && r.Verdict.Outcome == verdict.OutcomeDrift {
			driftRequests++
		}
	}
	groups, err := s.DriftGroups(ctx, "c", time.Time{}, time.Time{}, 3, 1000)
	if err != nil {
		t.Fatal(err)
	}
	var sum int64
	for _, d := range groups {
		sum += d.Requests
		if d.Outcome != verdict.OutcomeDrift || d.Class != verdict.ClassAllowForbid || d.Users == 0 || len(d.Examples) == 0 ||
			len(d.Examples) > 3 ||
			d.Examples[0].At != d.First || d.Examples[0].AuditID == "" || d.Examples[0].URI == "" {
			t.Errorf("group %+v", d)
		}
	}
	if sum != driftRequests {
		t.Errorf("%d requests in groups, want %d", sum, driftRequests)
	}
	requests, judged, err := s.Judged(ctx, "c", time.Time{}, time.Time{})
	if err != nil || judged < driftRequests || requests < judged {
		t.Errorf("%d requests, %d judged, %v; want at least %d", requests, judged, err, driftRequests)
	}
	if requests, judged, err := s.Judged(ctx, "c", in[0].Event.RequestReceivedTimestamp.AddDate(-1, 0, 0),
		in[0].Event.RequestReceivedTimestamp.AddDate(-1, 0, 1)); err != nil || requests != 0 || judged != 0 {
		t.Errorf("a range without requests: %d requests, %d judged, %v", requests, judged, err)
	}
	none, err := s.DriftGroups(ctx, "c", in[0].Event.RequestReceivedTimestamp.AddDate(-1, 0, 0),
		in[0].Event.RequestReceivedTimestamp.AddDate(-1, 0, 1), 3, 10)
	if err != nil || len(none) != 0 {
		t.Errorf("a range without requests: %v, %v", none, err)
	}
}

// TestExplainedOfTheFirstUse: authenticators are those of a credential's earliest request, whatever another credential of the user was
// used for first at the time of a later one.
func TestExplainedOfTheFirstUse(t *testing.T) {
	s := storagetest.Open(t)
	var in []verdict.Row
	base := rows(t, "c", 0)
	base = base[slices.IndexFunc(base, func(r verdict.Row) bool { return r.Verdict != nil }):]
	for i, one := range []struct {
		credential, explained string
		after                 time.Duration
	}{{"JTI=a", "first", 0}, {"JTI=a", "later", time.Second}, {"JTI=b", "other", time.Second}} {
		r := base[0]
		e, v := *r.Event, *r.Verdict
		r.Event, r.Verdict = &e, &v
		e.AuditID, v.Credential, v.Explained = fmt.Sprint("audit-", i), one.credential, []string{one.explained}
		r.Position.Offset += int64(i)
		shift(&r, one.after)
		in = append(in, r)
	}
	insert(t, s, "a", in)
	got, err := s.Credentials(context.Background(), "c", in[0].Event.User.Username, time.Time{}, time.Time{}, 10)
	if err != nil || len(got) != 2 || !slices.Equal(got[0].Explained, []string{"first"}) ||
		!slices.Equal(got[1].Explained, []string{"other"}) {
		t.Errorf("got %+v, %v", got, err)
	}
}
