package storage_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// requestRow makes the row of a request at a time, with the user agent of its number.
func requestRow(t testing.TB, n int, at time.Time, user, decision, verb, uri string) verdict.Row {
	t.Helper()
	stamp := at.Format("2006-01-02T15:04:05.000000Z07:00")
	line := fmt.Sprintf(`{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"Metadata","auditID":"id-%d","stage":"ResponseComplete",`+
		`"requestURI":%q,"verb":%q,`+
		`"user":{"username":%q},"sourceIPs":["10.0.0.1"],"userAgent":"agent-%d","responseStatus":{"metadata":{},"code":200},`+
		`"requestReceivedTimestamp":%q,"stageTimestamp":%q,"annotations":{"authorization.k8s.io/decision":%q}}`,
		n, uri, verb, user, n, stamp, stamp, decision)
	r, err := storagetest.Row("c", []byte(line), event.Position{Epoch: 1, Offset: int64(n)}, at)
	if err != nil {
		t.Fatal(err)
	}
	storagetest.Verdict(&r)
	return r
}

// accessCount returns how many distinct accesses of a subject the store counts by themselves.
func accessCount(t *testing.T, s *storage.Store, subject string) int {
	t.Helper()
	return len(s.Strings(t, "SELECT DISTINCT toString(access) FROM retrial.accesses WHERE subject = '"+subject+"'"))
}

// TestAccessesOfADay has a subject ask for far more than is counted by itself: what is beyond
// is counted by kind, then in one access; a new process and corrections change nothing of that.
func TestAccessesOfADay(t *testing.T) {
	dir := t.TempDir()
	s, stop := storagetest.Start(t, dir)
	defer func() { stop() }()
	s.FoldBeyond(10, 5, 1000, 1000)
	day := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	var in []verdict.Row
	for i := range 40 { // names of two kinds, then kinds, then paths
		in = append(in, requestRow(t, len(in), day, "mallory", "allow", "get", fmt.Sprintf("/api/v1/namespaces/n%d/secrets/own%d", i%2, i)))
	}
	for i := range 20 {
		in = append(in, requestRow(t, len(in), day, "mallory", "allow", "create",
			fmt.Sprintf("/apis/rbac.authorization.k8s.io/v1/namespaces/m%d/rolebindings", i)))
	}
	for i := range 20 {
		in = append(in, requestRow(t, len(in), day, "mallory", "allow", "get", fmt.Sprintf("/path/%d", i)))
	}
	in = append(in, requestRow(t, len(in), day, "alice", "allow", "get", "/api/v1/namespaces/n/secrets/one"))
	insert(t, s, "a", in[:60])
	insert(t, s, "b", in[60:])
	const most = 10 + 5 + 1
	check := func(s *storage.Store, when string) {
		t.Helper()
		if n := accessCount(t, s, "mallory"); n != most {
			t.Fatalf("%s: %d accesses of the subject, want %d", when, n, most)
		}
		if n := accessCount(t, s, "alice"); n != 1 {
			t.Fatalf("%s: %d accesses of another", when, n)
		}
		v := consistent(t, s)
		if err := s.Recover(context.Background(), 0, 1, nil); err != nil {
			t.Fatal(err)
		}
		if again := consistent(t, s); again != v {
			t.Fatalf("%s: recovery changed the rollups\n was %+v\n is  %+v", when, v, again)
		}
	}
	check(s, "inserted")
	u, err := s.SubjectUsage(context.Background(), "c", "mallory", time.Time{}, time.Time{}, 100)
	if err != nil {
		t.Fatal(err)
	}
	byName, folded := int64(0), int64(0)
	for _, x := range u.Uses {
		if x.Implied != "" {
			continue
		}
		if x.Name == codec.Other || x.Path == codec.Other {
			folded += x.Requests
		} else {
			byName += x.Requests
		}
		if x.Path == codec.Other && (x.Verb != codec.Other || x.Resource+x.Group+x.Namespace+x.Name != "") {
			t.Errorf("what is beyond has a face: %+v", x)
		}
	}
	if u.Requests != 80 || byName != 10 || folded != 70 || u.Folded != 70 {
		t.Errorf("%d requests, %d of accesses of their own, %d folded, %d said to be", u.Requests, byName, folded, u.Folded)
	}
	secrets := answers(t, s, "secrets-read", nil)
	if len(secrets) < 2 || !slices.ContainsFunc(secrets, func(l string) bool { return strings.Contains(l, "|"+codec.Other+"||") }) {
		t.Errorf("secrets read: %q", secrets)
	}

	stop()
	s, stop = storagetest.Start(t, dir)
	s.FoldBeyond(10, 5, 1000, 1000)
	var more []verdict.Row
	for i := range 30 {
		more = append(more,
			requestRow(t, 1000+i, day.Add(time.Hour), "mallory", "allow", "get", fmt.Sprintf("/api/v1/namespaces/n0/configmaps/more%d", i)))
	}
	insert(t, s, "c", more)
	check(s, "after a restart")

	stored := everything(t, s, in)
	var pairs []verdict.Row
	for _, r := range stored {
		old, v := r, *r.Verdict
		old.Sign = -1
		v.Outcome, v.Class = verdict.OutcomeDrift, "unexplained"
		r.Verdict, r.Revision = &v, r.Revision+1
		pairs = append(pairs, old, r)
	}
	s.FoldBeyond(1000, 1000, 1000, 1000) // there is room now: what was folded stays so
	insert(t, s, "fix", pairs)
	s.FoldBeyond(10, 5, 1000, 1000)
	check(s, "corrected")
	if again, err := s.SubjectUsage(context.Background(), "c", "mallory", time.Time{}, time.Time{}, 100); err != nil || again.Drift != 80 ||
		again.Folded != 100 {
		t.Errorf("after corrections %d drift, %d folded: %v", again.Drift, again.Folded, err)
	}

	insert(t, s, "d",
		[]verdict.Row{requestRow(t, 5000, day.Add(24*time.Hour), "mallory", "allow", "get", "/api/v1/namespaces/n0/configmaps/nextday")})
	if n := accessCount(t, s, "mallory"); n != most+1 {
		t.Errorf("%d accesses of the subject the day after, want one more than %d", n, most)
	}
}

// TestRequestsOfNobody: whoever reaches the apiserver chooses path and user agent, and the
// rollups know neither. What nobody may do is counted as anybody's.
func TestRequestsOfNobody(t *testing.T) {
	s := storagetest.Open(t)
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	var in []verdict.Row
	for i := range 50 {
		in = append(in, requestRow(t, len(in), at, "", "", "get", fmt.Sprintf("/scan/%d", i)),
			requestRow(t, len(in)+1, at, "system:anonymous", "forbid", "get", fmt.Sprintf("/api/v1/namespaces/n%d/pods/%d", i, i)))
	}
	in = append(in, requestRow(t, len(in), at, "system:anonymous", "allow", "get", "/version"))
	insert(t, s, "a", in)
	consistent(t, s)
	if n := accessCount(t, s, ""); n != 1 {
		t.Errorf("%d accesses without a user, want 1", n)
	}
	if n := accessCount(t, s, "system:anonymous"); n != 2 {
		t.Errorf("%d accesses of anonymous, want 2", n)
	}
	if agents := s.Strings(t, "SELECT DISTINCT toString(user_agent) FROM retrial.activity WHERE 1"); len(agents) != 2 {
		t.Errorf("user agents %q, want (other) and that of the allowed request", agents)
	}
}

// TestFoldsAreBounded: what is remembered of many days and subjects has a bound, and a day that
// was forgotten is read again.
func TestFoldsAreBounded(t *testing.T) {
	s := storagetest.Open(t)
	s.FoldBeyond(20, 5, 100, 150)
	rng := rand.New(rand.NewPCG(1, 2))
	at := time.Date(2026, 11, 1, 9, 0, 0, 0, time.UTC)
	n := 0
	for round := range 12 {
		var in []verdict.Row
		for range 200 {
			n++
			in = append(in, requestRow(t, n, at.Add(time.Duration(round%4)*24*time.Hour), fmt.Sprint("user", rng.IntN(20)), "allow", "get",
				fmt.Sprintf("/api/v1/namespaces/n/secrets/x%d", n)))
		}
		insert(t, s, fmt.Sprint("r", round), in)
		if keys, days := s.FoldsHeld(); keys > 150+125+40 || days > 2 {
			t.Fatalf("round %d: %d accesses of %d days are held", round, keys, days)
		}
	}
	v := consistent(t, s)
	// Of each day: 100 accesses and 20 subjects' kinds, of each subject one more for the rest.
	if v.Accesses > 4*100+2*20 {
		t.Errorf("%d accesses", v.Accesses)
	}
}

// TestUserAgentsOfADay: of a subject's user agents of a day the first are counted by themselves, the
// rest together; a new process and corrections change nothing of that, nor does recovery.
func TestUserAgentsOfADay(t *testing.T) {
	dir := t.TempDir()
	s, stop := storagetest.Start(t, dir)
	defer func() { stop() }()
	limit := func() {
		s.FoldBeyond(1000, 1000, 1000, 1000)
		s.FoldAgentsBeyond(5, 12)
	}
	limit()
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	var in []verdict.Row
	for i := range 60 {
		in = append(in, requestRow(t, i, at.Add(time.Duration(i)*30*time.Second), fmt.Sprint("user", i%4), "allow", "get",
			"/api/v1/namespaces/n/pods/x"))
	}
	insert(t, s, "a", in[:30])
	insert(t, s, "b", in[30:])
	check := func(when string, count int) {
		t.Helper()
		if n := s.Strings(t,
			"SELECT DISTINCT concat(subject, ' ', user_agent) FROM retrial.activity WHERE user_agent != '(other)'"); len(n) != 12 {
			t.Fatalf("%s: %d user agents by themselves, want 12: %q", when, len(n), n)
		}
		if n := s.Strings(t, "SELECT DISTINCT concat(subject, ' ', toString(sum(count))) FROM retrial.activity WHERE subject = 'user0' "+
			"AND 1 GROUP BY subject HAVING 1"); len(n) != 1 || n[0] != fmt.Sprint("user0 ", count) {
			t.Fatalf("%s: counted %q, want %d requests", when, n, count)
		}
		v := consistent(t, s)
		if err := s.Recover(context.Background(), 0, 1, nil); err != nil {
			t.Fatal(err)
		}
		if again := consistent(t, s); again != v {
			t.Fatalf("%s: recovery changed the rollups\n was %+v\n is  %+v", when, v, again)
		}
	}
	check("inserted", 15)

	stop()
	s, stop = storagetest.Start(t, dir)
	limit()
	insert(t, s, "c", []verdict.Row{requestRow(t, 1000, at.Add(time.Hour), "user0", "allow", "get", "/api/v1/namespaces/n/pods/x"),
		requestRow(t, 0, at.Add(time.Hour), "user0", "allow", "get", "/api/v1/namespaces/n/pods/y")})
	check("after a restart", 17)

	var pairs []verdict.Row
	for _, r := range everything(t, s, in) {
		old, v := r, *r.Verdict
		old.Sign = -1
		v.Outcome, v.Class = verdict.OutcomeDrift, "unexplained"
		r.Verdict, r.Revision = &v, r.Revision+1
		pairs = append(pairs, old, r)
	}
	s.FoldAgentsBeyond(1000, 1000) // there is room now: what was folded stays so
	insert(t, s, "fix", pairs)
	limit()
	check("corrected", 17)
}
