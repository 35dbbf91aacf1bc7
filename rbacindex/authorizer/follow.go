package authorizer

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	rbacinformers "k8s.io/client-go/informers/rbac/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/retrial-io/retrial/rbacindex"
)

// feed is one informer with our handler on it.
type feed struct {
	informer cache.SharedIndexInformer
	handle   cache.ResourceEventHandlerRegistration
}

// follow adds a handler to each informer.
func (a *Authorizer) follow(informers rbacinformers.Interface) error {
	for _, f := range []struct {
		kind     rbacindex.Kind
		informer cache.SharedIndexInformer
	}{
		{rbacindex.KindClusterRole, informers.ClusterRoles().Informer()},
		{rbacindex.KindRole, informers.Roles().Informer()},
		{rbacindex.KindClusterRoleBinding, informers.ClusterRoleBindings().Informer()},
		{rbacindex.KindRoleBinding, informers.RoleBindings().Informer()},
	} {
		// No resyncs: they would repeat what is known.
		handle, err := f.informer.AddEventHandlerWithResyncPeriod(&handler{a: a, kind: f.kind}, 0)
		if err != nil {
			return fmt.Errorf("add a handler for %s: %w", f.kind, err)
		}
		a.feeds = append(a.feeds, feed{f.informer, handle})
	}
	return nil
}

func (a *Authorizer) unfollow() {
	for _, f := range a.feeds {
		if err := f.informer.RemoveEventHandler(f.handle); err != nil {
			utilruntime.HandleError(fmt.Errorf("stop following RBAC: %w", err))
		}
	}
}

// await makes the first Snapshot when all first lists have been delivered.
func (a *Authorizer) await() {
	defer a.running.Done()
	for _, f := range a.feeds {
		select {
		case <-f.handle.HasSyncedChecker().Done():
		case <-a.closed:
			return
		}
	}
	a.mu.Lock()
	a.synced, a.first, a.applying = true, true, true
	a.mu.Unlock()
	a.running.Add(1)
	a.drain()
}

// enter records the latest version of an object; nil means that it is gone.
func (a *Authorizer) enter(k rbacindex.Key, object any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.closed:
		return
	default:
	}
	if object == nil && !a.synced {
		delete(a.pending, k)
		return
	}
	a.pending[k] = object
	if a.synced && !a.applying {
		a.applying = true
		a.running.Add(1)
		go a.drain()
	}
}

// drain makes Snapshots until nothing is pending. One runs at a time, outside the informers'
// goroutines, which keep delivering.
func (a *Authorizer) drain() {
	defer a.running.Done()
	for {
		changes, ok := a.take()
		if !ok {
			return
		}
		a.publish(changes)
	}
}

// take returns what is pending; false if there is nothing to do, after which drain must end.
func (a *Authorizer) take() (map[rbacindex.Key]any, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	select {
	case <-a.closed:
		a.applying = false
		return nil, false
	default:
	}
	if len(a.pending) == 0 && !a.first {
		a.applying = false
		return nil, false
	}
	changes := a.pending
	a.pending, a.first = make(map[rbacindex.Key]any), false
	return changes, true
}

// publish makes the next Snapshot and lets decisions see it.
func (a *Authorizer) publish(changes map[rbacindex.Key]any) {
	old := a.view.Load()
	next, err := after(old.snapshot, changes)
	if err != nil { // handlers let nothing through that could be refused here
		utilruntime.HandleError(fmt.Errorf("update RBAC: %w", err))
		return
	}
	a.metrics.published(next, len(changes))
	a.view.Store(&view{snapshot: next, replaced: make(chan struct{})})
	close(old.replaced)
}

// after returns the Snapshot with the changes made; of nothing else when s is nil.
func after(s *rbacindex.Snapshot, changes map[rbacindex.Key]any) (*rbacindex.Snapshot, error) {
	if s == nil {
		objects := make([]any, 0, len(changes))
		for _, o := range changes {
			objects = append(objects, o)
		}
		return rbacindex.New(objects...)
	}
	list := make([]rbacindex.Change, 0, len(changes))
	for k, o := range changes {
		list = append(list, rbacindex.Change{Key: k, Object: o})
	}
	return s.Apply(list...)
}

// handler takes the events of one kind.
type handler struct {
	a    *Authorizer
	kind rbacindex.Kind
}

// OnAdd implements cache.ResourceEventHandler.
func (h *handler) OnAdd(object any, _ bool) {
	h.set(object, eventAdded)
}

// OnUpdate implements cache.ResourceEventHandler.
func (h *handler) OnUpdate(old, object any) {
	if same(old, object) {
		h.a.metrics.event(h.kind, eventUnchanged)
		return
	}
	if !h.set(object, eventUpdated) {
		// Its present content is not known, so the former one does not count any more.
		if k, ok := h.key(old); ok {
			h.a.enter(k, nil)
		}
	}
}

// OnDelete implements cache.ResourceEventHandler. An informer that missed the deletion hands
// over the key, with an object that may be old.
func (h *handler) OnDelete(object any) {
	k, ok := h.key(object)
	if gone, missed := object.(cache.DeletedFinalStateUnknown); missed {
		namespace, name, err := cache.SplitMetaNamespaceKey(gone.Key)
		k, ok = rbacindex.Key{Kind: h.kind, Namespace: namespace, Name: name}, err == nil
	}
	if !ok {
		h.malformed(object)
		return
	}
	h.a.metrics.event(h.kind, eventDeleted)
	h.a.enter(k, nil)
}

func (h *handler) set(object any, event string) bool {
	k, ok := h.key(object)
	if !ok {
		h.malformed(object)
		return false
	}
	h.a.metrics.event(h.kind, event)
	h.a.enter(k, object)
	return true
}

func (h *handler) malformed(object any) {
	h.a.metrics.event(h.kind, eventMalformed)
	utilruntime.HandleError(fmt.Errorf("follow RBAC: the informer of %s delivered a %T", h.kind, object))
}

// key returns the key of an object of the handler's kind.
func (h *handler) key(object any) (rbacindex.Key, bool) {
	k, err := rbacindex.KeyOf(object)
	return k, err == nil && k.Kind == h.kind
}

// same reports whether an update changed nothing that RBAC reads. Anything but two objects of one
// kind and name is not the same.
func same(old, object any) bool {
	switch n := object.(type) {
	case *rbacv1.ClusterRole:
		o, ok := old.(*rbacv1.ClusterRole)
		return ok && (o == n || o.Name == n.Name && slices.EqualFunc(o.Rules, n.Rules, rbacindex.SameRule) &&
			apiequality.Semantic.DeepEqual(o.AggregationRule, n.AggregationRule))
	case *rbacv1.Role:
		o, ok := old.(*rbacv1.Role)
		return ok && (o == n || o.Namespace == n.Namespace && o.Name == n.Name && slices.EqualFunc(o.Rules, n.Rules, rbacindex.SameRule))
	case *rbacv1.ClusterRoleBinding:
		o, ok := old.(*rbacv1.ClusterRoleBinding)
		return ok && (o == n || o.Name == n.Name && o.RoleRef == n.RoleRef && slices.Equal(o.Subjects, n.Subjects))
	case *rbacv1.RoleBinding:
		o, ok := old.(*rbacv1.RoleBinding)
		return ok && (o == n || o.Namespace == n.Namespace && o.Name == n.Name && o.RoleRef == n.RoleRef && slices.Equal(o.Subjects,
			n.Subjects))
	}
	return false
}
