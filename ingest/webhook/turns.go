package webhook

import (
	"context"
	"slices"
	"sync"
)

// turns shares something scarce among clusters: processors to decode on, room in the stream.
// What is free goes to whoever asks. When nothing is, each cluster has a queue of its own, and
// what becomes free goes to the queues in turn: a cluster that posts once waits for one of
// another's posts to be done, not for all that the other has waiting.
type turns struct {
	mu    sync.Mutex
	size  int64
	free  int64
	lines map[string][]*turn // who waits, by cluster; no empty ones
	order []string           // the clusters in lines, next first
}

// turn is one request that waits.
type turn struct {
	n     int64
	taken chan struct{} // closed when it is granted
}

func newTurns(size int64) *turns {
	return &turns{size: size, free: size, lines: map[string][]*turn{}}
}

// take takes n, or all there is, and returns how much to give back. It waits until it is the
// cluster's turn or ctx ends.
func (t *turns) take(ctx context.Context, cluster string, n int64) (int64, error) {
	n = min(n, t.size)
	t.mu.Lock()
	if len(t.order) == 0 && n <= t.free {
		t.free -= n
		t.mu.Unlock()
		return n, nil
	}
	w := &turn{n: n, taken: make(chan struct{})}
	if len(t.lines[cluster]) == 0 {
		t.order = append(t.order, cluster)
	}
	t.lines[cluster] = append(t.lines[cluster], w)
	t.mu.Unlock()
	select {
	case <-w.taken:
		return n, nil
	case <-ctx.Done():
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	select {
	case <-w.taken: // at the same moment
		t.free += n
	default:
		t.leave(cluster, w)
	}
	t.grant()
	return 0, ctx.Err()
}

// give gives back what take returned.
func (t *turns) give(n int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.free += n
	t.grant()
}

// grant serves the queues in turn, as far as there is anything to give. It never passes over
// the one whose turn it is because that one wants more: it would wait for ever.
func (t *turns) grant() {
	for len(t.order) > 0 {
		cluster := t.order[0]
		w := t.lines[cluster][0]
		if w.n > t.free {
			return
		}
		t.free -= w.n
		close(w.taken)
		t.order = append(t.order[1:], cluster)
		t.leave(cluster, w)
	}
}

// leave takes one out of its cluster's queue.
func (t *turns) leave(cluster string, w *turn) {
	line := t.lines[cluster]
	line = slices.Delete(line, slices.Index(line, w), slices.Index(line, w)+1)
	if len(line) > 0 {
		t.lines[cluster] = line
		return
	}
	delete(t.lines, cluster) // names come from clients
	t.order = slices.DeleteFunc(t.order, func(c string) bool { return c == cluster })
}
