package webhook

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// flight counts the bytes of bodies being worked on, in all and by cluster. A body that
// finds no room is refused at once, never queued: the apiserver keeps it and comes back.
type flight struct {
	max, maxCluster int64
	gauge           prometheus.Gauge

	mu      sync.Mutex
	total   int64
	cluster map[string]int64 // only clusters with bytes in flight
}

func newFlight(maxTotal, maxCluster int64, gauge prometheus.Gauge) *flight {
	return &flight{max: maxTotal, maxCluster: maxCluster, gauge: gauge, cluster: map[string]int64{}}
}

// reserve takes n bytes for cluster, or reports that there is no room.
func (f *flight) reserve(cluster string, n int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.total+n > f.max || f.cluster[cluster]+n > f.maxCluster {
		return false
	}
	f.total += n
	f.cluster[cluster] += n
	f.gauge.Set(float64(f.total))
	return true
}

// release gives n bytes of cluster back.
func (f *flight) release(cluster string, n int64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.total -= n
	if f.cluster[cluster] -= n; f.cluster[cluster] == 0 {
		delete(f.cluster, cluster) // names come from clients
	}
	f.gauge.Set(float64(f.total))
}

// pooledBuffer is the largest buffer kept for the next body; an apiserver's usual posts
// fit, and what a rare large one needed does not stay.
const pooledBuffer = 4 << 20

// buffers lends body buffers. A buffer may be given back once nothing decoded from it is
// used any more.
type buffers struct{ pool sync.Pool }

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
