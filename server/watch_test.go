package server

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/watch"
	"github.com/retrial-io/retrial/ingest/watch/watchtest"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// watchBench is a watched cluster whose records go straight into a state.
type watchBench struct {
	server    *watchtest.Server
	positions watchPositions
	check     func(...observe.Observation) error
	stop      func()

	mu      sync.Mutex
	at      time.Time
	st      *state.State
	seen    []observe.Observation
	changed chan struct{}
}

func newWatchBench(t *testing.T) *watchBench {
	t.Helper()
	before := goleak.IgnoreCurrent() // the engines of other tests
	t.Cleanup(func() { goleak.VerifyNone(t, before) })
	b := &watchBench{
		positions: watchPositions(t.TempDir()), at: time.Date(2026, 1, 2, 10, 0, 0, 0, time.UTC),
		st: state.New("prod"), changed: make(chan struct{}),
	}
	b.check = b.st.CheckCluster
	b.server = watchtest.New(t, b.now)
	b.server.Put("namespaces", "", "kube-system", "", nil)
	return b
}

func (b *watchBench) now() time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.at
}

// advance sets the clock forward and returns the new time.
func (b *watchBench) advance(d time.Duration) time.Time {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.at = b.at.Add(d)
	return b.at
}

// Produce implements watch.Producer: what a record says reaches the state as it would
// through Kafka.
func (b *watchBench) Produce(ctx context.Context, recs ...stream.Record) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, r := range recs {
		o, err := observe.Decode(r.Value)
		if err != nil {
			return err
		}
		b.st.Apply(o)
		b.seen = append(b.seen, o)
	}
	close(b.changed)
	b.changed = make(chan struct{})
	return ctx.Err()
}

// await returns once an observation matches.
func (b *watchBench) await(t *testing.T, what string, match func(observe.Observation) bool) {
	t.Helper()
	b.awaitN(t, what, 1, match)
}

func (b *watchBench) awaitN(t *testing.T, what string, n int, match func(observe.Observation) bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	for {
		b.mu.Lock()
		count, changed := 0, b.changed
		for _, o := range b.seen {
			if match(o) {
				count++
			}
		}
		b.mu.Unlock()
		if count >= n {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			t.Fatalf("waiting for %d × %s", n, what)
		}
	}
}

func (b *watchBench) start(t *testing.T) {
	t.Helper()
	cfg := watch.Config{
		Cluster: "prod", REST: b.server.REST(), PageSize: 2, Now: b.now, SaveEvery: -1,
		MinPause: time.Nanosecond, MaxPause: time.Nanosecond, RefusedPause: 24 * time.Hour,
		Pause: func(ctx context.Context, d time.Duration) error {
			if d > time.Hour {
				<-ctx.Done()
			}
			return ctx.Err()
		},
	}
	w, err := watch.New(cfg, b, redact.New([]byte("0123456789abcdef")), &watchEncoder{check: b.check}, b.positions)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	b.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(b.stop)
}

// awaitListings returns when every kind was listed and is watched, a second later by the
// clock: a kind that is not watched yet would miss a compaction and have a gap of its own.
func (b *watchBench) awaitListings(t *testing.T) time.Time {
	t.Helper()
	for _, k := range watch.Kinds() {
		b.await(t, "listing of "+k.Resource, listingOf(k.Resource))
	}
	for _, k := range watch.Kinds() {
		plural, _, _ := strings.Cut(k.Resource, ".")
		b.server.AwaitWatch(t, plural, 1)
	}
	return b.advance(time.Second)
}

// listingOf matches the mark of a resource's complete listing, named what was seen of one
// object.
func listingOf(resource string) func(observe.Observation) bool {
	return func(o observe.Observation) bool { return o.Resource == resource && o.Complete }
}

func named(name string, deleted bool) func(observe.Observation) bool {
	return func(o observe.Observation) bool { return o.Name == name && o.Deleted == deleted }
}

const (
	podReader = `"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]`
	toJane    = `"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"Role","name":"reader"},"subjects":[{"kind":"User",` +
		`"apiGroup":"rbac.authorization.k8s.io","name":"jane"}]`
)

// binding tells what the state says of RoleBinding default/jane at a time.
func (b *watchBench) binding(at time.Time) string { return bindingIn(b.st.RBAC(at)) }

// bindingIn tells the same of a view: "present", "empty" without subjects, "absent",
// "unknown", or "unknown kind" when any binding may be there.
func bindingIn(v state.View) string {
	key := rbacindex.Key{Kind: rbacindex.KindRoleBinding, Namespace: "default", Name: "jane"}
	obj, ok := v.RBAC.Get(key)
	switch {
	case slices.Contains(v.UnknownKinds, rbacindex.KindRoleBinding):
		return "unknown kind"
	case v.IsUnknown(key):
		return "unknown"
	case !ok:
		return "absent"
	case len(obj.(*rbacv1.RoleBinding).Subjects) == 0:
		return "empty"
	}
	return "present"
}

func (b *watchBench) expect(t *testing.T, what string, at time.Time, want string) {
	t.Helper()
	if got := b.binding(at); got != want {
		t.Errorf("%s (%s): %s, want %s", what, at.Format(time.TimeOnly), got, want)
	}
}

func TestWatchKindsAreTheStates(t *testing.T) {
	var watched []string
	for _, k := range watch.Kinds() {
		watched = append(watched, k.Resource)
	}
	kept := slices.DeleteFunc(kept.Resources(), func(r string) bool { return r == kept.Credentials })
	slices.Sort(watched)
	slices.Sort(kept)
	if !slices.Equal(watched, kept) {
		t.Errorf("watched %v\nkept %v", watched, kept)
	}
}

func TestWatchedStateFollows(t *testing.T) {
	b := newWatchBench(t)
	b.server.Put("roles", "default", "reader", podReader, nil)
	b.advance(time.Minute)
	b.start(t)
	began := b.awaitListings(t)
	b.expect(t, "before the listing", began.Add(-2*time.Second), "unknown kind")
	b.expect(t, "after the listing", began, "absent")

	added := b.advance(10 * time.Second)
	b.server.Put("rolebindings", "default", "jane", toJane, nil)
	b.await(t, "binding", named("jane", false))
	emptied := b.advance(10 * time.Second)
	b.server.Put("rolebindings", "default", "jane", strings.Replace(toJane, `"subjects":[{`, `"was":[{`, 1), nil)
	b.awaitN(t, "emptied binding", 2, named("jane", false))
	b.advance(10 * time.Second)
	b.server.Delete("rolebindings", "default", "jane")
	b.await(t, "deleted binding", named("jane", true))
	deleted := b.now()

	b.expect(t, "before it was added", added.Add(-time.Second), "absent")
	b.expect(t, "once added", added, "present")
	b.expect(t, "until it was emptied", emptied.Add(-time.Second), "present")
	b.expect(t, "once emptied", emptied, "empty")
	b.expect(t, "once deleted", deleted, "absent")
	if v := b.st.RBAC(deleted); !v.Certain() {
		t.Errorf("unknown after all was listed: %v %v", v.Unknown, v.UnknownKinds)
	}
	if got := b.st.Namespace("kube-system", began, deleted); got != state.NamespaceActive {
		t.Errorf("kube-system is %s", got)
	}
}

func TestWatchedStateThroughBreaks(t *testing.T) {
	b := newWatchBench(t)
	b.start(t)
	began := b.awaitListings(t)
	added := b.advance(10 * time.Second)
	b.server.Hold("rolebindings", true)
	b.server.End("rolebindings", false)
	b.server.Put("rolebindings", "default", "jane", toJane, nil)
	b.advance(10 * time.Second)
	b.server.Hold("rolebindings", false)
	b.await(t, "binding added while the watch was away", named("jane", false))
	b.expect(t, "resumed: before", began, "absent")
	b.expect(t, "resumed: told late, true from its creation on", b.now(), "present")
	if views := b.st.RBACWindow(added, b.now()); len(views) != 2 {
		t.Errorf("%d views while the binding may have come, want 2", len(views))
	}
	for at := began; !at.After(b.now()); at = at.Add(time.Second) {
		if got := b.binding(at); strings.HasPrefix(got, "unknown") {
			t.Fatalf("%s at %s although nothing was missed", got, at)
		}
	}
}

func TestWatchedStateAcrossAGap(t *testing.T) {
	b := newWatchBench(t)
	b.start(t)
	b.awaitListings(t)
	added := b.advance(10 * time.Second)
	b.server.Put("rolebindings", "default", "jane", toJane, nil)
	b.await(t, "binding", named("jane", false))
	b.server.Hold("rolebindings", true)
	b.server.End("rolebindings", false)
	missed := b.advance(time.Minute)
	b.server.Delete("rolebindings", "default", "jane")
	b.server.Compact(false)
	relisted := b.advance(time.Minute)
	b.server.Hold("rolebindings", false)
	b.awaitN(t, "second listing", 2, listingOf(kept.RoleBindings))

	b.expect(t, "before the gap", added.Add(-time.Second), "absent")
	b.expect(t, "in the gap", missed, "unknown kind")
	b.expect(t, "just before the second listing", relisted.Add(-time.Nanosecond), "unknown kind")
	b.expect(t, "deleted in the gap", relisted.Add(time.Second), "absent")
	v := b.st.RBAC(missed)
	if want := []rbacindex.Kind{rbacindex.KindRoleBinding}; !slices.Equal(v.UnknownKinds, want) {
		t.Errorf("unknown in the gap: %v, want the kind that was away alone", v.UnknownKinds)
	}
}

func TestWatchedStateWithoutPermission(t *testing.T) {
	b := newWatchBench(t)
	b.server.Refuse("rolebindings", 403)
	b.start(t)
	for _, k := range watch.Kinds() {
		if k.Resource != kept.RoleBindings {
			b.await(t, "listing of "+k.Resource, listingOf(k.Resource))
		}
	}
	now := b.advance(time.Second)
	b.expect(t, "a kind that may not be read", now, "unknown kind")
	if v := b.st.RBAC(now); len(v.UnknownKinds) != 1 {
		t.Errorf("unknown kinds: %v", v.UnknownKinds)
	}
}

func TestWatchedStateAfterARestart(t *testing.T) {
	for name, tc := range map[string]struct {
		compact bool
		between string // what the binding may have been, in the views of the minute it existed
	}{
		"resumed from the position file": {false, "absent present absent"},
		"too late to resume":             {true, "unknown kind"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newWatchBench(t)
			b.start(t)
			b.awaitListings(t)
			b.stop()
			added := b.advance(time.Minute)
			b.server.Put("rolebindings", "default", "jane", toJane, nil)
			removed := b.advance(time.Minute)
			b.server.Delete("rolebindings", "default", "jane")
			if tc.compact {
				b.server.Compact(true)
			}
			restarted := b.advance(time.Minute)
			b.start(t)
			if tc.compact {
				b.await(t, "gap", func(o observe.Observation) bool { return o.Resource == kept.RoleBindings && o.AllOf && o.Unknown })
			} else {
				b.await(t, "end of the binding", named("jane", true))
			}
			var between []string
			for _, v := range b.st.RBACWindow(added, removed) {
				between = append(between, bindingIn(v))
			}
			if got := strings.Join(between, " "); got != tc.between {
				t.Errorf("while nothing ran: %q, want %q", got, tc.between)
			}
			b.expect(t, "after the restart", restarted.Add(time.Second), "absent")
		})
	}
}

func TestWatchedClusterIsAnotherOne(t *testing.T) {
	b := newWatchBench(t)
	b.st.Apply(observe.Observation{
		Source: observe.SourceSnapshot, Resource: kept.Namespaces, Name: "kube-system", UID: "of-another-cluster", ResourceVersion: "7",
		Object: []byte(`{"kind":"Namespace","apiVersion":"v1","metadata":{"name":"kube-system","uid":"of-another-cluster",` +
			`"resourceVersion":"7","creationTimestamp":"2025-01-01T00:00:00Z"}}`),
	})
	b.start(t)
	b.server.AwaitRequests(t, "fieldSelector", len(watch.Kinds()))
	b.stop()
	if len(b.seen) != 0 {
		t.Errorf("took %v from another cluster", b.seen)
	}
	for _, uri := range b.server.Requests() {
		if !strings.Contains(uri, "fieldSelector") {
			t.Errorf("went on to %s", uri)
		}
	}
}

func TestWatchPositions(t *testing.T) {
	p := watchPositions(t.TempDir())
	if _, found, err := p.Load(kept.Roles); found || err != nil {
		t.Fatalf("nothing was saved: found %v, %v", found, err)
	}
	at := watch.Position{ResourceVersion: "42", Good: time.Date(2026, 1, 2, 3, 4, 5, 6, time.UTC)}
	for _, want := range []watch.Position{{ResourceVersion: "41", Good: at.Good}, at} {
		if err := p.Save(kept.Roles, want); err != nil {
			t.Fatal(err)
		}
		if got, found, err := p.Load(kept.Roles); got != want || !found || err != nil {
			t.Errorf("got %v, %v, %v; want %v", got, found, err, want)
		}
	}
	for name, content := range map[string]string{"cut": `{"resourceVersion":"4`, "empty": ``,
		"without a time": `{"resourceVersion":"42"}`} {
		if err := os.WriteFile(p.file(kept.Roles), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, found, err := p.Load(kept.Roles); found || err == nil {
			t.Errorf("%s: found %v, %v; want an error", name, found, err)
		}
	}
	if files, err := filepath.Glob(string(p) + "/.*"); len(files) != 0 || err != nil {
		t.Errorf("left behind: %v, %v", files, err)
	}
}

func TestWatchEncoderRefusesOtherObjects(t *testing.T) {
	for name, raw := range map[string]string{
		"another kind": `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"1"}}`,
		"no uid": `{"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"a","namespace":"b",` +
			`"resourceVersion":"1"}}`,
		"a list":  `{"kind":"RoleList","apiVersion":"rbac.authorization.k8s.io/v1","items":[]}`,
		"no JSON": `{"kind":`,
	} {
		if got, err := (&watchEncoder{}).Object(watch.Object{Resource: kept.Roles, JSON: []byte(raw)}); err == nil {
			t.Errorf("%s: encoded as %s", name, got)
		}
	}
	refused := errors.New("not now")
	e := &watchEncoder{check: func(...observe.Observation) error { return refused }}
	if err := e.Check(kept.Namespaces, nil); !errors.Is(err, refused) || errors.Is(err, watch.ErrOtherCluster) {
		t.Errorf("an error that is not about the cluster became %v", err)
	}
}
