package runner

import (
	"maps"
	"time"

	"github.com/retrial-io/retrial/verdict"
)

// judgedBlocks is how many of the latest blocks are remembered one by one; what came before
// them is remembered as one.
const judgedBlocks = 64

// judged remembers which policy the blocks of a partition were judged with, so that a change
// that was known when a request was judged does not have it read from the store again. While
// policy runs ahead of the events, as it does whenever there are many, that is every change.
//
// The blocks are in the order they were judged; the first stands for the rows earlier owners
// stored.
type judged []judgedBlock

// judgedBlock is what is known of the rows of one block.
type judgedBlock struct {
	knows map[int32]int64 // policy offsets below which everything was applied before; nil: not known
	spans map[string]span // by cluster
}

// span covers the requests of some rows.
type span struct {
	from, to time.Time // of request received
	ended    time.Time // the latest stage time, or request received where that is later
}

func (s span) with(t span) span {
	if t.from.Before(s.from) {
		s.from = t.from
	}
	if t.to.After(s.to) {
		s.to = t.to
	}
	if t.ended.After(s.ended) {
		s.ended = t.ended
	}
	return s
}

// meets reports whether the filter may select a row of the span; it looks at times alone.
func (s span) meets(f verdict.AffectedFilter) bool {
	return !s.to.Before(f.From) && (f.To.IsZero() || !s.from.After(f.To)) && !s.ended.Before(f.Ended)
}

// spansOf covers the rows of a block.
func spansOf(rows []verdict.Row) map[string]span {
	out := map[string]span{}
	for i := range rows {
		e := rows[i].Event
		s := span{from: e.RequestReceivedTimestamp, to: e.RequestReceivedTimestamp, ended: e.RequestReceivedTimestamp}
		if e.StageTimestamp.After(s.ended) {
			s.ended = e.StageTimestamp
		}
		if known, ok := out[rows[i].Cluster]; ok {
			s = known.with(s)
		}
		out[rows[i].Cluster] = s
	}
	return out
}

// farEnd is later than any stage of a request: of rows that others judged it is not known how
// long their requests took.
var farEnd = time.Unix(1<<40, 0) //nolint:gochecknoglobals // constant

// judgedEarlier returns what earlier owners stored.
func judgedEarlier(spans []verdict.Span) judgedBlock {
	b := judgedBlock{spans: make(map[string]span, len(spans))}
	for _, s := range spans {
		b.spans[s.Cluster] = span{from: s.From, to: s.To, ended: farEnd}
	}
	return b
}

// add remembers a block that is stored from now on.
func (j *judged) add(b judgedBlock) {
	list := append(*j, b)
	if len(list) > judgedBlocks {
		// The first one knows least: the second is taken to know no more.
		first := judgedBlock{knows: list[0].knows, spans: maps.Clone(list[0].spans)}
		for cluster, s := range list[1].spans {
			if known, ok := first.spans[cluster]; ok {
				s = known.with(s)
			}
			first.spans[cluster] = s
		}
		list = append(list[:0], list[1:]...)
		list[0] = first
	}
	*j = list
}

// outlived returns those of the changes, with those of their filters, that may select a row
// judged without them.
func (j judged) outlived(found []change) []change {
	var out []change
	for _, c := range found {
		var filters []verdict.AffectedFilter
		for _, f := range c.filters {
			if j.needs(c, f) {
				filters = append(filters, f)
			}
		}
		if len(filters) > 0 {
			c.filters = filters
			out = append(out, c)
		}
	}
	return out
}

func (j judged) needs(c change, f verdict.AffectedFilter) bool {
	for _, b := range j {
		if b.knows[c.partition] > c.offset {
			return false // so do all that follow
		}
		if s, ok := b.spans[c.cluster]; ok && s.meets(f) {
			return true
		}
	}
	return false
}

// before returns those of some clusters with rows that were judged without some of the changes below the offsets given for each.
func (j judged) before(below map[string]offsets) map[string]bool {
	clusters := map[string]bool{}
	for _, b := range j {
		for cluster, offsets := range below {
			if _, has := b.spans[cluster]; has && !reached(b.knows, offsets) {
				clusters[cluster] = true
			}
		}
	}
	return clusters
}
