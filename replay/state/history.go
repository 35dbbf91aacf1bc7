package state

import (
	"cmp"
	"slices"

	"github.com/retrial-io/retrial/replay/state/content"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// What RBAC objects held before is kept as long as requests may ask for it, but for contents that are large: whoever may write one object
// may write it any number of times. So many bytes of them are kept of a cluster (as JSON), and a share of one object if more are written.
const (
	historyBytes = 64 << 20
	historyShare = historyBytes / 16
	historyStep  = historyBytes / 4 // is made room for at once
)

// tooMuch is the reason given for the contents of an object that was written too often.
const tooMuch = "its older versions take more room than there is for one cluster's"

// history counts the large contents of a State.
type history struct {
	bytes  int // of all contents, including those in force; what was told twice may count twice
	trimAt int // when to look for contents to forget
	lost   int // contents that were forgotten
}

// pastContent is a large content of a version that was replaced, or whose object ended, or of a write without a version.
type pastContent struct {
	obj   *object
	blind bool
	i     int // of its versions, or of its writes without one
	na    int64
}

// forget drops the content; of a write without a version an outline stays.
func (p *pastContent) forget() {
	if p.blind {
		b := &p.obj.blinds[p.i]
		b.content = b.content.Outlined()
		return
	}
	v := &p.obj.versions[p.i]
	v.content, v.forgotten = nil, true
}

// content returns what forget would drop.
func (p *pastContent) content() *content.Content {
	if p.blind {
		return p.obj.blinds[p.i].content
	}
	return p.obj.versions[p.i].content
}

// trimHistory forgets the oldest large contents once they take too much: first those of the objects that have most, down to a share for
// each. What is in force stays, and verdicts stand: forgetting has no effects.
func (s *State) trimHistory() {
	if s.history.bytes <= max(s.history.trimAt, historyBytes) {
		return
	}
	s.recount()
	type written struct {
		past  []pastContent // oldest first
		bytes int
	}
	var all []*written
	total := 0
	for res := kept.ResNone + 1; res < kept.ResCount; res++ {
		if res.RBACKind() == 0 {
			continue
		}
		for _, obj := range s.objects[res] {
			w := &written{past: obj.past()}
			for i := range w.past {
				w.bytes += w.past[i].content().Bytes()
			}
			if w.bytes > 0 {
				all = append(all, w)
				total += w.bytes
			}
		}
	}
	var dirty []kept.Key
	forget := func(p pastContent) (bytes int) {
		bytes = p.content().Bytes()
		p.forget()
		total -= bytes
		s.history.bytes -= bytes
		s.history.lost++
		dirty = append(dirty, p.obj.key)
		return bytes
	}
	if total > historyBytes {
		slices.SortFunc(all, func(a, b *written) int {
			return cmp.Or(b.bytes-a.bytes, kept.CompareKeys(a.past[0].obj.key, b.past[0].obj.key))
		})
		const enough = historyBytes - historyStep
		var rest []pastContent
		for _, w := range all {
			for total > enough && w.bytes > historyShare {
				w.bytes -= forget(w.past[0])
				w.past = w.past[1:]
			}
			rest = append(rest, w.past...)
		}
		slices.SortFunc(rest, func(a, b pastContent) int {
			return cmp.Or(cmp.Compare(a.na, b.na), kept.CompareKeys(a.obj.key, b.obj.key), cmp.Compare(a.i, b.i))
		})
		for _, p := range rest {
			if total <= enough {
				break
			}
			forget(p)
		}
	}
	s.history.trimAt = s.history.bytes + historyStep
	if len(dirty) > 0 {
		s.views.forget()
		s.resolve(dirty)
		s.revision.Add(1)
	}
}

// over returns how many of the first versions are no longer in force: all if the object has ended, else those before the last that says
// what it holds.
func (o *object) over() int {
	if n := len(o.line); n > 0 && o.line[n-1].phase == phaseAbsent {
		return len(o.versions)
	}
	for i := len(o.versions) - 1; i >= 0; i-- {
		if v := &o.versions[i]; v.content != nil && !v.unchanged {
			return i
		}
	}
	return 0
}

// past returns the large contents of an object that may be forgotten, the oldest first: those of versions no longer in force, and of writes
// without a version except the last that was done.
func (o *object) past() (out []pastContent) {
	for i := range o.over() {
		if v := &o.versions[i]; v.content.Bytes() > 0 {
			out = append(out, pastContent{obj: o, i: i, na: v.seen.na})
		}
	}
	last := len(o.blinds) - 1
	for last >= 0 && (o.blinds[last].maybe || o.blinds[last].content == nil) {
		last--
	}
	for i := range o.blinds {
		if b := &o.blinds[i]; i != last && b.content.Bytes() > 0 {
			out = append(out, pastContent{obj: o, blind: true, i: i, na: b.na})
		}
	}
	slices.SortStableFunc(out, func(a, b pastContent) int { return cmp.Compare(a.na, b.na) })
	return out
}

// recount counts the large contents again.
func (s *State) recount() {
	s.history.bytes, s.history.trimAt = 0, 0
	for _, objects := range s.objects {
		for _, obj := range objects {
			s.history.bytes += obj.contentBytes()
		}
	}
}

// contentBytes returns what the contents of an object's versions count for.
func (o *object) contentBytes() int {
	n := 0
	for i := range o.versions {
		n += o.versions[i].content.Bytes()
	}
	for i := range o.blinds {
		n += o.blinds[i].content.Bytes()
	}
	return n
}
