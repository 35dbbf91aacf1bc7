package evaluate

import (
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
)

// maxWaiting bounds the requests of which only the arrival has been seen so far. Beyond it
// the oldest is judged as received only.
const maxWaiting = 1 << 16

// folder finds the event of each request that is judged: the first stage seen that can be. It is
// used by one goroutine, in the order of the inputs.
type folder struct {
	all            bool // the others are kept as well, as rows without a verdict
	requests, keys recent
	waiting        map[event.Hash128]*event.Event // RequestReceived seen, nothing else yet
	arrivals       []event.Hash128                // keys of waiting in order, from first
	first          int
	evicted        []item

	events, duplicates int64
}

func newFolder(remember int, all bool) *folder {
	return &folder{
		all: all, requests: newRecent(remember / 2), keys: newRecent(remember / 2),
		waiting: map[event.Hash128]*event.Event{},
	}
}

// fold leaves the items of a batch that are to be judged or stored.
func (f *folder) fold(b *batch) {
	kept := b.items[:0]
	for _, it := range b.items {
		if !f.keys.add(it.key) {
			f.duplicates++
			continue
		}
		f.events++
		if it.stored = f.all; replay.Judged(it.event) {
			delete(f.waiting, it.request)
			it.judged = f.requests.add(it.request)
		} else {
			f.arrived(it)
		}
		if it.judged || it.stored {
			kept = append(kept, it)
		}
	}
	b.items = append(kept, f.evicted...)
	f.evicted = f.evicted[:0]
}

// arrived remembers a RequestReceived until a later stage of its request comes.
func (f *folder) arrived(it item) {
	if f.requests.has(it.request) {
		return
	}
	if len(f.waiting) >= maxWaiting {
		for f.first < len(f.arrivals) {
			key := f.arrivals[f.first]
			f.first++
			if e, ok := f.waiting[key]; ok {
				delete(f.waiting, key)
				f.requests.add(key)
				f.evicted = append(f.evicted, item{event: e, request: key, judged: true})
				break
			}
		}
	}
	if f.first > 4*maxWaiting {
		f.arrivals = append(f.arrivals[:0], f.arrivals[f.first:]...)
		f.first = 0
	}
	f.waiting[it.request] = detached(it.event)
	f.arrivals = append(f.arrivals, it.request)
}

// rest returns the requests of which nothing but the arrival was recorded.
func (f *folder) rest() *batch {
	b := &batch{}
	for _, key := range f.arrivals[f.first:] {
		if e, ok := f.waiting[key]; ok {
			delete(f.waiting, key)
			b.items = append(b.items, item{event: e, request: key, judged: true})
		}
	}
	return b
}

// detached copies what a verdict on a RequestReceived needs, so that a waiting request does
// not keep the memory of all lines read with it.
func detached(e *event.Event) *event.Event {
	c := &event.Event{
		Level: e.Level, AuditID: strings.Clone(e.AuditID), Stage: event.StageRequestReceived,
		RequestURI: strings.Clone(e.RequestURI), Verb: strings.Clone(e.Verb),
		RequestReceivedTimestamp: e.RequestReceivedTimestamp, StageTimestamp: e.StageTimestamp,
	}
	c.User = event.User{Username: strings.Clone(e.User.Username), UID: strings.Clone(e.User.UID)}
	for _, g := range e.User.Groups {
		c.User.Groups = append(c.User.Groups, strings.Clone(g))
	}
	for _, x := range e.User.Extra {
		entry := event.ExtraEntry{Key: strings.Clone(x.Key)}
		for _, v := range x.Values {
			entry.Values = append(entry.Values, strings.Clone(v))
		}
		c.User.Extra = append(c.User.Extra, entry)
	}
	for _, ip := range e.SourceIPs {
		c.SourceIPs = append(c.SourceIPs, strings.Clone(ip))
	}
	return c
}

// recent is a set of hashes that forgets: it keeps between limit/2 and limit of the newest.
type recent struct {
	young, old map[event.Hash128]struct{}
	half       int
}

func newRecent(limit int) recent {
	return recent{young: map[event.Hash128]struct{}{}, half: max(limit/2, 1)}
}

// add enters a hash and reports whether it was not there.
func (r *recent) add(h event.Hash128) bool {
	if r.has(h) {
		return false
	}
	if len(r.young) >= r.half {
		r.old, r.young = r.young, make(map[event.Hash128]struct{}, r.half)
	}
	r.young[h] = struct{}{}
	return true
}

func (r *recent) has(h event.Hash128) bool {
	if _, ok := r.young[h]; ok {
		return true
	}
	_, ok := r.old[h]
	return ok
}
