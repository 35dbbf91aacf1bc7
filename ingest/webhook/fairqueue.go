package webhook

import (
	"context"
	"slices"
	"sync"
)

// fairQueue is a weighted semaphore that serves clusters in turn: processors to decode on, bytes
// in the producer. What is free goes to the first request that wants it. If nothing is free, each
// cluster has a queue of its own, and what becomes free goes to the queues round-robin: a cluster
// that posts once waits for one of another's posts, not for all that the other has waiting.
type fairQueue struct {
	mu      sync.Mutex
	size    int64
	free    int64
	waiting map[string][]*waiter // by cluster, first come first; no empty queues
	order   []string             // the clusters with a queue, next first
}

// waiter is one request in a queue.
type waiter struct {
	n       int64
	granted chan struct{} // closed when it is granted
}

func newFairQueue(size int64) *fairQueue {
	return &fairQueue{size: size, free: size, waiting: map[string][]*waiter{}}
}

// take takes n, or the whole size if n is larger, and returns how much to give back. It waits
// until it is the cluster's turn or ctx ends.
func (q *fairQueue) take(ctx context.Context, cluster string, n int64) (int64, error) {
	n = min(n, q.size)
	q.mu.Lock()
	if len(q.order) == 0 && n <= q.free {
		q.free -= n
		q.mu.Unlock()
		return n, nil
	}
	w := &waiter{n: n, granted: make(chan struct{})}
	if len(q.waiting[cluster]) == 0 {
		q.order = append(q.order, cluster)
	}
	q.waiting[cluster] = append(q.waiting[cluster], w)
	q.mu.Unlock()
	select {
	case <-w.granted:
		return n, nil
	case <-ctx.Done():
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-w.granted: // at the same moment
		q.free += n
	default:
		q.leave(cluster, w)
	}
	q.grant()
	return 0, ctx.Err()
}

// give gives back what take returned.
func (q *fairQueue) give(n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free += n
	q.grant()
}

// grant serves the queues round-robin while the next waiter fits into what is free. It never
// passes over a waiter because it wants more than is free: that one would wait for ever.
func (q *fairQueue) grant() {
	for len(q.order) > 0 {
		cluster := q.order[0]
		w := q.waiting[cluster][0]
		if w.n > q.free {
			return
		}
		q.free -= w.n
		close(w.granted)
		q.order = append(q.order[1:], cluster)
		q.leave(cluster, w)
	}
}

// leave removes w from its cluster's queue.
func (q *fairQueue) leave(cluster string, w *waiter) {
	line := q.waiting[cluster]
	line = slices.Delete(line, slices.Index(line, w), slices.Index(line, w)+1)
	if len(line) > 0 {
		q.waiting[cluster] = line
		return
	}
	delete(q.waiting, cluster) // names come from clients
	q.order = slices.DeleteFunc(q.order, func(c string) bool { return c == cluster })
}
