package registry

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/kubernetes"
)

// etcd is what Kubernetes' own etcd3 store needs of etcd, in memory. Each operation takes the
// time its request was given, before and after it is done.
type etcd struct {
	kubernetes.Interface // what is not implemented is not asked for

	mu       sync.Mutex
	revision int64
	pairs    map[string]*mvccpb.KeyValue
}

func newEtcd() *etcd { return &etcd{revision: 1, pairs: map[string]*mvccpb.KeyValue{}} }

// client returns the client the store is made with.
func (e *etcd) client() *kubernetes.Client {
	return &kubernetes.Client{Client: clientv3.NewCtxClient(context.Background()), Kubernetes: e}
}

// clear forgets all there is.
func (e *etcd) clear() {
	e.mu.Lock()
	defer e.mu.Unlock()
	clear(e.pairs)
}

// all returns what there is, by key.
func (e *etcd) all() map[string]*mvccpb.KeyValue {
	e.mu.Lock()
	defer e.mu.Unlock()
	return maps.Clone(e.pairs)
}

// pace is how long each operation of a request takes before and after it is done.
type pace struct{ before, after time.Duration }

type paceKey struct{}

// enter waits for the operation's turn and locks; the function it returns unlocks and waits again.
func (e *etcd) enter(ctx context.Context) func() {
	p, _ := ctx.Value(paceKey{}).(pace)
	time.Sleep(p.before)
	e.mu.Lock()
	return func() {
		e.mu.Unlock()
		time.Sleep(p.after)
	}
}

// Get implements kubernetes.Interface.
func (e *etcd) Get(ctx context.Context, key string, _ kubernetes.GetOptions) (kubernetes.GetResponse, error) {
	defer e.enter(ctx)()
	return kubernetes.GetResponse{KV: e.pairs[key], Revision: e.revision}, nil
}

// List implements kubernetes.Interface.
func (e *etcd) List(ctx context.Context, prefix string, opts kubernetes.ListOptions) (kubernetes.ListResponse, error) {
	defer e.enter(ctx)()
	out := kubernetes.ListResponse{Revision: e.revision}
	for _, key := range slices.Sorted(maps.Keys(e.pairs)) {
		if !strings.HasPrefix(key, prefix) || opts.Continue != "" && key < opts.Continue {
			continue
		}
		out.Count++
		if opts.Limit == 0 || int64(len(out.Kvs)) < opts.Limit {
			out.Kvs = append(out.Kvs, e.pairs[key])
		}
	}
	return out, nil
}

// OptimisticPut implements kubernetes.Interface.
func (e *etcd) OptimisticPut(ctx context.Context, key string, value []byte, expected int64, opts kubernetes.PutOptions) (
	kubernetes.PutResponse, error) {
	defer e.enter(ctx)()
	was := e.pairs[key]
	if !matches(was, expected) {
		out := kubernetes.PutResponse{Revision: e.revision}
		if opts.GetOnFailure {
			out.KV = was
		}
		return out, nil
	}
	e.revision++
	e.pairs[key] = &mvccpb.KeyValue{Key: []byte(key), Value: slices.Clone(value), ModRevision: e.revision}
	return kubernetes.PutResponse{Succeeded: true, Revision: e.revision}, nil
}

// OptimisticDelete implements kubernetes.Interface.
func (e *etcd) OptimisticDelete(ctx context.Context, key string, expected int64,
	opts kubernetes.DeleteOptions) (kubernetes.DeleteResponse, error) {
	defer e.enter(ctx)()
	was := e.pairs[key]
	if !matches(was, expected) {
		out := kubernetes.DeleteResponse{Revision: e.revision}
		if opts.GetOnFailure {
			out.KV = was
		}
		return out, nil
	}
	e.revision++
	delete(e.pairs, key)
	return kubernetes.DeleteResponse{Succeeded: true, Revision: e.revision}, nil
}

// matches reports whether a key was last written at a revision, 0 for a key that is not there.
func matches(was *mvccpb.KeyValue, expected int64) bool {
	if was == nil {
		return expected == 0
	}
	return was.ModRevision == expected
}
