package watch

import (
	"context"
	"errors"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
)

// outgoing is a record and the object it was made from, if any.
type outgoing struct {
	record stream.Record
	object Object
	head   head
}

func (r *reflector) encode(o Object, h head) (outgoing, error) {
	value, err := r.w.encoder.Object(o)
	if err != nil {
		return outgoing{}, errors.Join(errMalformed, err)
	}
	return outgoing{r.record(value), o, h}, nil
}

func (r *reflector) record(value []byte) stream.Record {
	return stream.PolicyRecord(stream.KindObservation, r.w.cfg.Cluster, "watch", r.w.cfg.Now(), value)
}

// send produces records in order and returns once all are acknowledged. It fails only if ctx ends or a record cannot be made smaller.
func (r *reflector) send(ctx context.Context, out ...outgoing) error {
	if len(out) == 0 {
		return nil
	}
	records := make([]stream.Record, len(out))
	for i := range out {
		records[i] = out[i].record
	}
	failing := false
	wait := r.newBackoff()
	for {
		err := r.w.producer.Produce(ctx, records...)
		if err == nil {
			if failing {
				r.log.Info("kafka accepts records again")
			}
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		var large *stream.TooLargeError
		if errors.As(err, &large) && large.Index < len(out) && out[large.Index].object.JSON != nil && !out[large.Index].object.Unknown {
			small, err := r.shrink(out[large.Index], large.Limit-recordOverhead)
			if err != nil {
				return err
			}
			out[large.Index], records[large.Index] = small, small.record
			continue
		}
		r.count(reasonProduce)
		if !failing {
			failing = true
			r.log.Warn("kafka does not accept records; the watch waits for it", zap.Int("records", len(records)), zap.Error(err))
		}
		if err := r.w.cfg.Pause(ctx, wait.next()); err != nil {
			return err
		}
	}
}

// recordOverhead bounds what a record holds beside an object.
const recordOverhead = 4 << 10

// shrink replaces an object that is too large for a record with what the replica reads of it, for roles
// and bindings with a part of that if need be, or, if that is no smaller, with the object without content.
func (r *reflector) shrink(o outgoing, room int) (outgoing, error) {
	fields := []zap.Field{zap.String("namespace", o.head.Metadata.Namespace), zap.String("name", event.ShortName(o.head.Metadata.Name)),
		zap.Int("bytes", len(o.object.JSON))}
	if kept := event.KeepObject(r.kind.Resource, o.object.JSON, room); kept != nil && len(kept) < len(o.object.JSON) {
		r.log.Warn("object is too large for a record; only what is judged by it is kept, or a part of that",
			append(fields, zap.Int("kept", len(kept)))...)
		o.object.JSON = kept
		return r.encode(o.object, o.head)
	}
	r.count(reasonTooLarge)
	r.log.Error("object is too large for a record; its content stays unknown", fields...)
	bare, err := o.head.bare(r.kind)
	if err != nil {
		return outgoing{}, err
	}
	o.object.JSON, o.object.Unknown = bare, true
	return r.encode(o.object, o.head)
}

type backoff struct {
	min, max, at time.Duration
	jitter       func() float64 // in [0,1)
}

func (r *reflector) newBackoff() backoff {
	return backoff{min: r.w.cfg.MinPause, max: r.w.cfg.MaxPause, at: r.w.cfg.MinPause, jitter: r.jitter}
}

// next returns the pause to make now: between half of the step and all of it.
func (b *backoff) next() time.Duration {
	d := jittered(b.at, b.jitter)
	b.at = min(2*b.at, b.max)
	return d
}

func (b *backoff) reset() { b.at = b.min }

func jittered(d time.Duration, jitter func() float64) time.Duration {
	return d/2 + time.Duration(jitter()*float64(d/2))
}
