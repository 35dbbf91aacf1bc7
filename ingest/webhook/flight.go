package webhook

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/retrial-io/retrial/ingest/event"
)

// flight counts the requests and the bytes of bodies being worked on, in total and by cluster. A
// body that finds no room is refused at once, never queued: the apiserver keeps it and posts it
// again.
type flight struct {
	max, maxCluster int64
	gauge           prometheus.Gauge

	mu       sync.Mutex
	total    int64
	cluster  map[string]int64     // only clusters with bytes in flight
	requests map[string]int       // only clusters with requests under way
	full     map[string]time.Time // until when a cluster's posts are refused without decoding
}

func newFlight(maxTotal, maxCluster int64, gauge prometheus.Gauge) *flight {
	return &flight{
		max: maxTotal, maxCluster: maxCluster, gauge: gauge,
		cluster: map[string]int64{}, requests: map[string]int{}, full: map[string]time.Time{},
	}
}

// clusterRequests is how many requests of one cluster are worked on at once. A slow body costs little memory, but it holds a connection and
// a goroutine: these are shared out. Five apiservers that each post ten times a second and wait five seconds for an answer need as many.
const clusterRequests = 256

// enter begins a request of a cluster; it reports false if there are too many.
func (f *flight) enter(cluster string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.requests[cluster] >= clusterRequests {
		return false
	}
	f.requests[cluster]++
	return true
}

func (f *flight) leave(cluster string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.requests[cluster]--; f.requests[cluster] == 0 {
		delete(f.requests, cluster) // names come from clients
	}
}

// fullFor is how long a cluster's posts are refused without decoding after one found the log full.
const fullFor = time.Second

// foundFull notes that the log has no room for a cluster.
func (f *flight) foundFull(cluster string, now time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.full[cluster] = now.Add(fullFor)
}

// isFull reports whether the log had no room for a cluster a moment ago.
func (f *flight) isFull(cluster string, now time.Time) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	until, noted := f.full[cluster]
	if noted && !now.Before(until) {
		delete(f.full, cluster)
	}
	return noted && now.Before(until)
}

// othersShare bounds what one cluster may use: this many times the room it leaves free: a flood leaves a quarter of what it found.
const othersShare = 3

// reserve takes n bytes for cluster; it reports false if there is no room.
func (f *flight) reserve(cluster string, n int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.total+n > f.max || f.cluster[cluster]+n > f.maxCluster {
		return false
	}
	if f.total > 0 && f.cluster[cluster]+n > othersShare*(f.max-f.total-n) {
		return false
	}
	f.total += n
	f.cluster[cluster] += n
	f.gauge.Set(float64(f.total))
	return true
}

func (f *flight) release(cluster string, n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total -= n
	if f.cluster[cluster] -= n; f.cluster[cluster] == 0 {
		delete(f.cluster, cluster) // names come from clients
	}
	f.gauge.Set(float64(f.total))
}

// pooledBuffer is the largest buffer kept for the next body: an apiserver's usual posts
// fit, and a rare larger one leaves no memory behind.
const pooledBuffer = 4 << 20

// buffers pools body buffers. A buffer may be put back once nothing decoded from it is used
// any more.
type buffers struct {
	pool    sync.Pool // of *[]byte
	decoded sync.Pool // of *event.Lists
}

// lists returns memory to decode a list into.
func (b *buffers) lists() *event.Lists {
	if l, ok := b.decoded.Get().(*event.Lists); ok {
		return l
	}
	return new(event.Lists)
}

// putLists takes l back, which ends the life of its events.
func (b *buffers) putLists(l *event.Lists) {
	l.Forget()
	b.decoded.Put(l)
}

// get returns an empty buffer with room for at least n bytes, n up to pooledBuffer.
func (b *buffers) get(n int) []byte {
	if p, ok := b.pool.Get().(*[]byte); ok && cap(*p) >= n {
		return (*p)[:0]
	}
	return make([]byte, 0, n)
}

func (b *buffers) put(buf []byte) {
	if cap(buf) == 0 || cap(buf) > pooledBuffer {
		return
	}
	b.pool.Put(&buf)
}

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

func (q *fairQueue) give(n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.free += n
	q.grant()
}

// grant serves the queues round-robin while the next waiter fits into what is free. It never passes over one that wants more than is free:
// that would wait forever.
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
