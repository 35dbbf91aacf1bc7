package runner

import (
	"cmp"
	"maps"
	"slices"
	"sync"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

// change is one policy record that may have altered answers about the past: which standing
// rows have to be judged again. The filters carry no partitions yet; every owner puts its
// own in.
type change struct {
	partition int32 // of audit.policy
	offset    int64
	cluster   string
	filters   []verdict.AffectedFilter
}

// offsets are offsets of partitions of audit.policy.
type offsets = map[int32]int64

// changes is the log of policy changes the owned partitions are corrected from. Each
// partition has its own cursor, the policy offsets its stored rows reflect, which it commits
// with its offset; so a new owner resumes where the old one stopped.
//
// The log is bounded. A cursor older than what it still holds is told of which clusters changes were forgotten, and how far those reach.
type changes struct {
	limit int

	mu      sync.Mutex
	logs    map[int32][]change // by policy partition, ascending offset
	epochs  map[int32]uint32   // of the offsets; what was stored under an earlier one has no place in the log
	floor   map[string]offsets // by cluster: some of its changes below these offsets have been forgotten
	head    map[int32]int64    // offset after the last applied record
	entries int
}

func newChanges(limit int) *changes {
	return &changes{limit: limit, logs: map[int32][]change{}, epochs: map[int32]uint32{}, floor: map[string]offsets{},
		head: map[int32]int64{}}
}

// begin notes where reading a partition begins, and the epoch of its offsets.
func (l *changes) begin(partition int32, epoch uint32, next int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.epochs[partition] = epoch
	if next > 0 {
		l.head[partition] = next
	}
}

// present reports whether what is stored at a position has a place in the log.
func (l *changes) present(at event.Position) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return at.Epoch >= l.epochs[at.Partition]
}

// insert notes what records that were read before changed: of clusters that were not held then.
func (l *changes) insert(partition int32, found []change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.put(partition, found)
}

// drop forgets the changes of clusters.
func (l *changes) drop(clusters map[string]bool) {
	if len(clusters) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for partition, log := range l.logs {
		kept := slices.DeleteFunc(log, func(c change) bool { return clusters[c.cluster] })
		l.entries -= len(log) - len(kept)
		l.logs[partition] = slices.Clip(kept)
	}
	maps.DeleteFunc(l.floor, func(cluster string, _ offsets) bool { return clusters[cluster] })
}

// add notes what the records of a partition below next changed.
func (l *changes) add(partition int32, next int64, found []change) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.head[partition] = max(l.head[partition], next)
	l.put(partition, found)
}

// put adds to a log, in the order of offsets.
func (l *changes) put(partition int32, found []change) {
	if len(found) == 0 {
		return
	}
	byOffset := func(a, b change) int { return cmp.Compare(a.offset, b.offset) }
	log := l.logs[partition]
	last := max(0, len(log)-1)
	log = append(log, found...)
	if !slices.IsSortedFunc(log[last:], byOffset) {
		slices.SortStableFunc(log, byOffset)
	}
	l.entries += len(found)
	// Half is dropped at once, so that the copy is paid for rarely.
	if len(log) > l.limit {
		drop := len(log) - l.limit/2
		for _, c := range log[:drop] {
			if l.floor[c.cluster] == nil {
				l.floor[c.cluster] = offsets{}
			}
			l.floor[c.cluster][partition] = max(l.floor[c.cluster][partition], c.offset+1)
		}
		log = append([]change(nil), log[drop:]...)
		l.entries -= drop
	}
	l.logs[partition] = log
}

// since returns the changes at or after the cursor and the cursor that follows them. Where some of those were forgotten it tells of which
// clusters, and below which offsets: any of them may have altered any answer about the cluster.
func (l *changes) since(cursor map[int32]int64) (found []change, next map[int32]int64, forgotten map[string]offsets) {
	l.mu.Lock()
	defer l.mu.Unlock()
	forgotten = map[string]offsets{}
	for cluster, floor := range l.floor {
		if !reached(cursor, floor) {
			forgotten[cluster] = maps.Clone(floor)
		}
	}
	for partition, log := range l.logs {
		from := cursor[partition]
		i := len(log)
		for i > 0 && log[i-1].offset >= from {
			i--
		}
		found = append(found, log[i:]...)
	}
	next = maps.Clone(cursor)
	if next == nil {
		next = map[int32]int64{}
	}
	for partition, head := range l.head {
		next[partition] = max(next[partition], head)
	}
	return found, next, forgotten
}

// cursor returns the cursor of rows that reflect every applied record.
func (l *changes) cursor() map[int32]int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.head)
}

// size returns the number of changes held.
func (l *changes) size() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.entries
}

// reached reports whether a cursor is at or past all marks.
func reached(cursor, marks map[int32]int64) bool {
	for p, mark := range marks {
		if cursor[p] < mark {
			return false
		}
	}
	return true
}
