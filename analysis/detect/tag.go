package detect

import (
	"cmp"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

// Tagger determines which rules of a set select a request, so that later work is only counting. It
// is safe for concurrent use.
type Tagger struct {
	set    *Set
	failed func(rule string, err error)
	work   sync.Pool // *tagging
}

// tagging is what one call of Tag needs.
type tagging struct {
	in    input
	group []byte
	marks []verdict.Mark
}

// NewTagger returns a tagger. failed, which may be nil, is called for expressions that fail on a
// request, from any goroutine; the rule does not hold for the request then, unless the request is
// too large to be checked: size must not hide a request.
func NewTagger(set *Set, failed func(rule string, err error)) *Tagger {
	if failed == nil {
		failed = func(string, error) {}
	}
	return &Tagger{set: set, failed: failed, work: sync.Pool{New: func() any { return &tagging{} }}}
}

// Tag returns a mark for each rule that selects the request, in the order of the rules'
// ids; nil if none does. Event and verdict are only read, and not kept.
//
// The name of a mark is the rule's id; after a slash first-seen rules have "first", window
// rules a number with bit i set when the request passes the i-th threshold's where. Its key is
// the 64-bit hash of the group.
func (t *Tagger) Tag(cluster string, e *event.Event, v *verdict.Verdict) []verdict.Mark {
	w := t.work.Get().(*tagging)
	w.in.reset(cluster, e, v)
	w.marks = w.marks[:0]
	// Both lists are sorted by id; merged, so are the marks.
	here := t.set.byRes[resourceKey{w.in.attrs.APIGroup, w.in.attrs.Resource, w.in.attrs.Subresource}]
	if !w.in.attrs.ResourceRequest {
		here = nil
	}
	for rest := t.set.any; len(here) > 0 || len(rest) > 0; {
		if len(rest) == 0 || len(here) > 0 && here[0].rule.ID < rest[0].rule.ID {
			t.tag(w, here[0])
			here = here[1:]
		} else {
			t.tag(w, rest[0])
			rest = rest[1:]
		}
	}
	var out []verdict.Mark
	if len(w.marks) > 0 {
		out = append(out, w.marks...) // no spare capacity: it lives as long as the row
	}
	w.in = input{} // do not retain the caller's event and verdict
	t.work.Put(w)
	return out
}

func (t *Tagger) tag(w *tagging, p *program) {
	if !p.matches(&w.in) {
		return
	}
	if p.expr != nil {
		ok, err := p.expr.bool(&w.in)
		if err != nil {
			t.failed(p.rule.ID, err)
		}
		if !ok && !tooCostly(err) {
			return
		}
	}
	var err error
	if w.group, err = p.appendGroup(w.group[:0], &w.in); err != nil {
		t.failed(p.rule.ID, err)
		return
	}
	counts := 0
	for i, c := range p.counts {
		ok := true
		if c.where != nil {
			if ok, err = c.where.bool(&w.in); err != nil {
				t.failed(p.rule.ID, err)
			}
		}
		if ok {
			counts |= 1 << i
		}
	}
	w.marks = append(w.marks, verdict.Mark{Name: p.markNames[counts], Key: xxhash.Sum64(w.group)})
}

// appendGroup appends what distinguishes the request's group from others.
func (p *program) appendGroup(b []byte, in *input) ([]byte, error) {
	for i, g := range p.group {
		s, err := g.string(in)
		if err != nil {
			return b, err
		}
		if i > 0 {
			b = append(b, 0)
		}
		b = append(b, s...)
	}
	return b, nil
}

// markNames returns the names that a rule's marks can have, by the thresholds they count for.
func markNames(r *Rule) []string {
	switch r.Kind {
	case KindEvent:
		return []string{r.ID}
	case KindFirstSeen:
		return []string{r.ID + verdict.MarkFirst}
	}
	names := make([]string, 1<<len(r.Counts))
	for i := range names {
		names[i] = r.ID + "/" + strconv.Itoa(i)
	}
	return names
}

// day is the stretch of time whose first-seen keys are told by themselves or together.
const day = 24 * time.Hour

// firstKey is a key that was not seen before.
type firstKey struct {
	group string
	key   uint64    // of the group, as marks have it
	first time.Time // its earliest request
	user  string    // whose that is, as it authenticated: whom somebody acts as he makes up
}

// restOf names the keys of a day that are told together: those of a user who has more than
// FirstLimits.User, or, when none of a user's is among the first FirstLimits.Cluster, those of all such users.
type restOf struct {
	user      string
	everybody bool
}

// ranked parts the keys of a day into those that are told and the rest, each by time. What the store
// answers to FirstSeen agrees with it.
func ranked(keys []firstKey, most verdict.FirstLimits) (told []firstKey, rests map[restOf][]firstKey) {
	slices.SortFunc(keys, func(a, b firstKey) int {
		return cmp.Or(cmp.Compare(a.first.UnixMicro(), b.first.UnixMicro()), cmp.Compare(a.key, b.key))
	})
	places, known, within := map[string]int{}, map[string]bool{}, 0
	var left []firstKey
	for _, k := range keys {
		if places[k.user]++; places[k.user] <= most.User {
			if within++; within <= most.Cluster {
				told, known[k.user] = append(told, k), true
				continue
			}
		}
		left = append(left, k)
	}
	rests = map[restOf][]firstKey{}
	for _, k := range left {
		of := restOf{everybody: true}
		if known[k.user] {
			of = restOf{user: k.user}
		}
		rests[of] = append(rests[of], k)
	}
	return told, rests
}
