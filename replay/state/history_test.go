package state

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// writtenRole is the n-th write of a role with so many names, no two writes alike.
func writtenRole(name string, n, names int, at time.Time) observe.Observation {
	r := rbacv1.ClusterRole{TypeMeta: metav1.TypeMeta{APIVersion: "rbac.authorization.k8s.io/v1", Kind: "ClusterRole"},
		ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID("uid-" + name), ResourceVersion: fmt.Sprint(n + 1)}}
	rule := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"get"}}
	for i := range names {
		rule.ResourceNames = append(rule.ResourceNames, fmt.Sprintf("name-%d-of-write-%d-%s", i, n, strings.Repeat("x", 60)))
	}
	r.Rules = []rbacv1.PolicyRule{rule}
	raw, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	return observe.Observation{Source: observe.SourceAudit, Resource: kept.ClusterRoles, Name: name, UID: "uid-" + name,
		ResourceVersion: fmt.Sprint(n + 1), Object: raw, NotBefore: at, NotAfter: at.Add(time.Millisecond)}
}

// TestHistoryHasABudget writes a large role again and again, and large roles under ever new
// names. What is in force stays, small objects keep their history, and of what was forgotten it
// is said so.
func TestHistoryHasABudget(t *testing.T) {
	began := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	s := New("c")
	n := 0
	at := func() time.Time { return began.Add(time.Duration(n) * time.Second) }
	for i := range 50 {
		s.Apply(writtenRole("small", i, 3, at()))
		n++
	}
	small := at()
	var first []Effect
	for range 600 { // of 512 KiB
		first = append(first, s.Apply(writtenRole("large", n, 5500, at()))...)
		s.RBAC(at().Add(time.Minute)) // as a request would
		n++
	}
	for i := range 100 {
		o := writtenRole(fmt.Sprint("many-", i), n, 5500, at())
		s.Apply(o)
		n++
		s.Apply(observe.Observation{Source: observe.SourceAudit, Resource: kept.ClusterRoles, Name: o.Name, UID: o.UID, Deleted: true,
			NotBefore: at(), NotAfter: at().Add(time.Millisecond)})
		n++
	}
	for _, e := range first {
		if e.From.Before(small) && e.Resource == kept.ClusterRoles && e.Name == "large" {
			t.Fatalf("what was forgotten is to be judged again: %+v", e)
		}
	}
	st := s.Stats()
	if st.HistoryBytes > historyBytes+historyStep+1<<20 || st.Forgotten < 500 {
		t.Errorf("%d MiB of history, %d contents forgotten", st.HistoryBytes>>20, st.Forgotten)
	}
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	if m.HeapAlloc > 6*historyBytes {
		t.Errorf("%d MiB in use", m.HeapAlloc>>20)
	}
	known := func(name string, when time.Time) string {
		t.Helper()
		return s.Reason(rbacindex.Key{Kind: rbacindex.KindClusterRole, Name: name}, when)
	}
	if got := known("large", at()); got != "" {
		t.Errorf("the role in force: %s", got)
	}
	if got := known("large", small.Add(90*time.Second)); !strings.Contains(got, tooMuch) {
		t.Errorf("the role as it was: %q", got)
	}
	for i := range 50 {
		if got := known("small", began.Add(time.Duration(i)*time.Second+500*time.Millisecond)); got != "" {
			t.Fatalf("the small role at its write %d: %s", i, got)
		}
	}
	// A version that is told again stays forgotten.
	before := s.Stats().HistoryBytes
	s.Apply(writtenRole("large", 60, 5500, began.Add(60*time.Second)))
	if got := s.Stats().HistoryBytes - before; got > 1<<20 {
		t.Errorf("%d bytes came back", got)
	}
	if got := known("large", began.Add(60*time.Second+500*time.Millisecond)); !strings.Contains(got, tooMuch) {
		t.Errorf("told again, the role as it was: %q", got)
	}
	runtime.KeepAlive(s)
}

// TestPrepare: after a large listing was indexed, the first question allocates nothing to speak of.
func TestPrepare(t *testing.T) {
	at := time.Date(2026, 11, 20, 9, 0, 0, 0, time.UTC)
	first := func(prepare bool) uint64 {
		s := New("c")
		for i := range 2000 {
			s.Apply(writtenRole(fmt.Sprint("r", i), i, 3, at))
		}
		if prepare {
			s.Prepare()
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		v := s.RBAC(at.Add(time.Hour))
		runtime.ReadMemStats(&after)
		if _, clusterRoles, _, _ := v.RBAC.Len(); clusterRoles != 2000 {
			t.Fatalf("%d roles", clusterRoles)
		}
		return after.TotalAlloc - before.TotalAlloc
	}
	cold, warm := first(false), first(true)
	if warm > 64<<10 || cold < 1<<20 {
		t.Errorf("the first question allocates %d bytes, %d after the listing was indexed", cold, warm)
	}
	New("empty").Prepare()
}
