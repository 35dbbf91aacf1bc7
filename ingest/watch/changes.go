package watch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"time"
)

const (
	// maxQueue is how many watch events are read ahead of Kafka, and sent at once.
	maxQueue = 256
	// minWatch is the shortest duration requested of a watch; the longest is twice that.
	minWatch = 5 * time.Minute
	// delay is how long after a write its watch event may arrive; etcd and apiserver take milliseconds.
	delay = time.Second
	// overtime is how much longer it may last before the connection is considered dead.
	overtime = 30 * time.Second
)

// watch follows the kind from rv until the watch ends. It returns nil if the server ended it
// in due time.
func (r *reflector) watch(ctx context.Context) error {
	lasts := minWatch + time.Duration(r.jitter()*float64(minWatch))
	reading, cancel := context.WithTimeout(ctx, lasts+overtime)
	body, err := r.w.get(reading, r.kind, url.Values{
		"watch": {"1"}, "allowWatchBookmarks": {"true"}, "resourceVersion": {r.rv},
		"timeoutSeconds": {strconv.Itoa(int(lasts / time.Second))},
	})
	if err != nil {
		cancel()
		return fmt.Errorf("watch %s: %w", r.kind.Resource, err)
	}
	queue := make(chan frame, maxQueue)
	go r.frames(reading, body, queue)
	defer func() {
		cancel()
		_ = body.Close()
		for range queue { // until the reader has ended
		}
	}()
	r.w.metrics.synced.WithLabelValues(r.kind.Resource).Set(1)
	batch := make([]frame, 0, maxQueue)
	for f := range queue {
		batch = append(batch[:0], f)
		for len(batch) < maxQueue && f.err == nil {
			var more bool
			select {
			case f, more = <-queue:
			default:
			}
			if !more {
				break
			}
			batch = append(batch, f)
		}
		// What was read is sent even if the watch has timed out.
		if err := r.take(ctx, batch); err != nil {
			if errors.Is(err, io.EOF) {
				return nil
			}
			return fmt.Errorf("watch %s: %w", r.kind.Resource, err)
		}
	}
	return reading.Err() // the reader ends without an error only when ctx ends
}

type progress struct {
	out     []outgoing
	rv      string
	floor   time.Time
	objects int
	types   []string
}

// take sends what a batch of frames adds up to. If an error ends the batch, the frames before
// it have been sent.
func (r *reflector) take(ctx context.Context, batch []frame) error {
	p := progress{rv: r.rv, floor: r.floor, objects: r.objects}
	var end error
	for i := range batch {
		if end = r.read(&batch[i], &p); end != nil {
			break
		}
	}
	if err := r.send(ctx, p.out...); err != nil {
		return err
	}
	if p.rv != r.rv {
		r.recovered()
	}
	r.rv, r.floor, r.objects = p.rv, p.floor, p.objects
	if r.resumed && !older(r.rv, r.last.resourceVersion) {
		r.resumed = false
	}
	name := r.kind.Resource
	for _, t := range p.types {
		r.w.metrics.events.WithLabelValues(name, t).Inc()
	}
	if len(p.types) > 0 {
		r.w.metrics.objects.WithLabelValues(name).Set(float64(r.objects))
		r.w.metrics.lastEvent.WithLabelValues(name).Set(seconds(batch[len(p.types)-1].arrived))
		r.save(end != nil)
	}
	return end
}

// read adds one frame. Its error ends the watch.
func (r *reflector) read(f *frame, p *progress) error {
	if f.err != nil {
		return f.err
	}
	if f.kind == "ERROR" {
		r.w.metrics.events.WithLabelValues(r.kind.Resource, typeError).Inc()
		refusal := statusOf(f.object)
		if refusal.code == http.StatusOK || refusal.code == 0 {
			refusal.code = http.StatusInternalServerError
		}
		return refusal
	}
	if f.drained.After(p.floor) {
		p.floor = f.drained
	}
	if f.kind == "BOOKMARK" {
		return r.bookmark(f, p)
	}
	o := Object{Resource: r.kind.Resource, NotAfter: f.arrived}
	t := typeModified
	switch f.kind {
	case "ADDED":
		t = typeAdded
	case "MODIFIED":
	case "DELETED":
		t, o.Deleted = typeDeleted, true
	default:
		return fmt.Errorf("%w: watch event of type %q", errMalformed, cut(f.kind, 32))
	}
	named, err := r.kind.named(f.object)
	if err != nil {
		return err
	}
	o.JSON = r.w.redactor.RedactObject(r.kind.Resource, named)
	h, err := headOf(o.JSON)
	if err != nil {
		return err
	}
	var owned bool
	o.NotBefore, owned = h.since(t == typeAdded, p.floor, f.arrived)
	if o.NotBefore.After(o.NotAfter) {
		// The apiserver's clock is ahead: only the second it recorded is known.
		o.NotAfter = o.NotBefore.Add(time.Second)
	}
	if owned && o.NotBefore.After(p.floor) && !o.NotBefore.After(f.arrived) {
		p.floor = o.NotBefore
	}
	out, err := r.encode(o, h)
	if err != nil {
		return err
	}
	if older(r.last.resourceVersion, h.Metadata.ResourceVersion) { // otherwise the listing has counted it
		switch t {
		case typeAdded:
			p.objects++
		case typeDeleted:
			p.objects--
		}
	}
	p.rv, p.types = h.Metadata.ResourceVersion, append(p.types, t)
	if out.record.Value != nil {
		p.out = append(p.out, out)
	}
	return nil
}

// bookmark adds a bookmark: everything up to its version has arrived.
func (r *reflector) bookmark(f *frame, p *progress) error {
	var h head
	if err := json.Unmarshal(f.object, &h); err != nil {
		return fmt.Errorf("%w: bookmark: %w", errMalformed, err)
	}
	rv := h.Metadata.ResourceVersion
	if err := checkVersion(rv); err != nil {
		return err
	}
	if at := f.arrived.Add(-delay); at.After(p.floor) {
		p.floor = at
	}
	p.rv, p.types = rv, append(p.types, typeBookmark)
	return nil
}
