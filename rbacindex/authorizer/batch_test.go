package authorizer

import (
	"fmt"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/rbacindex"
)

// TestEventsWaitTogether: what arrives while a Snapshot is being made is one change of the
// next, whatever the number of events.
func TestEventsWaitTogether(t *testing.T) {
	m, err := newMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	a := &Authorizer{metrics: m, pending: map[rbacindex.Key]any{}, closed: make(chan struct{}), synced: true}
	first := &view{snapshot: rbacindex.Empty(), replaced: make(chan struct{})}
	a.view.Store(first)
	a.applying = true // as while one is being made
	h := handler{a: a, kind: rbacindex.KindClusterRoleBinding}
	for i := range 500 {
		b := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("b", i%100)}}
		h.OnAdd(b, false)
		if i%100 >= 90 {
			h.OnDelete(b)
		}
	}
	if a.view.Load() != first {
		t.Fatal("two Snapshots are being made at a time")
	}
	a.running.Add(1)
	a.drain()
	v := a.view.Load()
	if _, _, _, n := v.snapshot.Len(); n != 90 {
		t.Errorf("%d bindings, want 90", n)
	}
	if a.applying || len(a.pending) > 0 {
		t.Error("drain ended with work left")
	}
	select {
	case <-first.replaced:
	default:
		t.Error("the first view does not tell that it was replaced")
	}
	select {
	case <-v.replaced:
		t.Error("there was more than one replacement")
	default:
	}
}
