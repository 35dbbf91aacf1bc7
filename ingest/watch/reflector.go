package watch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"time"

	"go.uber.org/zap"
)

// reflector follows one kind. All fields belong to its goroutine.
//
//	┌────────▶ list ──sent──▶ watch ──ends──▶ pause ──▶ watch from rv
//	│                           │ 410, or interrupted for longer than gapAfter
//	└───────── gap sent ◀───────┘
//
// After a start with a saved position the watch begins there, not at the listing: what happened in between is known, too.
type reflector struct {
	w      *Watcher
	kind   Kind
	log    *zap.Logger
	jitter func() float64

	current bool      // everything up to floor has been sent, and more follows from rv
	rv      string    // the watch continues after this version; valid if current
	floor   time.Time // what comes after rv was written after this; valid if current
	listed  bool      // listed since the start or the last gap
	last    listing   // valid when listed
	// resumed is set while the watch is between a saved position and the listing.
	resumed bool

	away    time.Time // since when nothing has arrived although it should; zero while all is well
	reason  string    // of the last failure, "" while all is well
	wait    backoff
	objects int
	saved   time.Time // when the position was saved last
}

func newReflector(w *Watcher, k Kind) *reflector {
	r := &reflector{w: w, kind: k, log: w.log.With(zap.String("resource", k.Resource)), jitter: rand.Float64}
	r.wait = r.newBackoff()
	return r
}

func (r *reflector) count(reason string) {
	r.w.metrics.errors.WithLabelValues(r.kind.Resource, reason).Inc()
}

func (r *reflector) run(ctx context.Context) {
	r.load()
	for ctx.Err() == nil {
		err := r.step(ctx)
		r.w.metrics.synced.WithLabelValues(r.kind.Resource).Set(0)
		if ctx.Err() != nil {
			break
		}
		pause := r.wait.next()
		if err != nil {
			pause, err = r.failed(ctx, err, pause)
		}
		if err != nil || r.w.cfg.Pause(ctx, pause) != nil {
			break // only ctx ends these
		}
	}
	r.save(true)
}

// step lists if it must and watches until the watch ends; it returns nil if that ended in an
// orderly way.
func (r *reflector) step(ctx context.Context) error {
	if !r.listed {
		l, err := r.list(ctx)
		if err != nil {
			return err
		}
		if err := r.adopt(ctx, l); err != nil {
			return err
		}
	}
	return r.watch(ctx)
}

// adopt makes a sent listing the base of what follows.
func (r *reflector) adopt(ctx context.Context, l listing) error {
	r.listed, r.last, r.objects = true, l, l.objects
	r.w.metrics.relists.WithLabelValues(r.kind.Resource).Inc()
	r.w.metrics.objects.WithLabelValues(r.kind.Resource).Set(float64(l.objects))
	r.log.Info("listed", zap.Int("objects", l.objects), zap.String("version", l.resourceVersion))
	r.recovered()
	if r.current {
		if !older(l.resourceVersion, r.rv) {
			r.resumed = r.rv != l.resourceVersion
			return nil
		}
		// The cluster went back in time: it was restored from a backup or recreated.
		r.log.Error("the cluster's versions are older than those seen before",
			zap.String("seen", r.rv), zap.String("now", l.resourceVersion))
		return r.lose(ctx, true)
	}
	r.ground()
	return nil
}

// ground makes the watch continue from the listing.
func (r *reflector) ground() {
	r.current, r.resumed = true, false
	r.rv, r.floor = r.last.resourceVersion, r.last.began
	r.save(true)
}

// failed records a failure and returns the pause to make after it.
func (r *reflector) failed(ctx context.Context, err error, pause time.Duration) (time.Duration, error) {
	reason := reasonOf(err)
	if reason == reasonForbidden && r.kind.Optional {
		reason = reasonNotGranted
	}
	now := r.w.cfg.Now()
	r.count(reason)
	if r.away.IsZero() {
		r.away = now
	}
	refused := reason == reasonForbidden || reason == reasonUnauthorized || reason == reasonOtherCluster
	missing := reason == reasonNotGranted || reason == reasonNotServed && r.kind.Optional
	if reason != r.reason {
		log := r.log.Warn
		switch {
		case refused:
			log = r.log.Error
		case missing:
			log = r.log.Info
		}
		log(advice[reason], zap.String("reason", reason), zap.Error(err))
		r.reason = reason
	}
	// A malformed change would be malformed when read again, too: it is lost like a compacted
	// one.
	if r.current && (reason == reasonGone || reason == reasonMalformed || now.Sub(r.away) >= gapAfter) {
		if err := r.lose(ctx, r.resumed); err != nil {
			return 0, err
		}
	}
	if missing {
		r.w.metrics.synced.DeleteLabelValues(r.kind.Resource) // the kind is optional
	}
	if refused || missing {
		pause = jittered(r.w.cfg.RefusedPause, r.jitter)
	}
	var status *statusError
	if errors.As(err, &status) {
		pause = max(pause, status.retryAfter)
	}
	return pause, nil
}

// advice is what a failure means to an operator who reads the log.
var advice = map[string]string{
	reasonForbidden:    "the watch is not permitted: apply deploy/watch-rbac.yaml; until then this kind is not updated",
	reasonNotGranted:   "the kubeconfig may not read this kind: what depends on it is judged from the audit stream alone",
	reasonNotServed:    "the cluster does not serve this kind",
	reasonUnauthorized: "the cluster does not accept the credentials of the kubeconfig",
	reasonOtherCluster: "the kubeconfig leads to another cluster than before; nothing is read from it",
	reasonGone:         "the watch cannot be resumed: the versions in between are gone",
	reasonMalformed:    "the cluster's answer cannot be read",
	reasonUnavailable:  "the watch was interrupted",
}

// recovered records that the cluster answers as it should.
func (r *reflector) recovered() {
	r.wait.reset()
	r.away = time.Time{}
	if r.reason != "" {
		r.log.Info("the cluster answers again", zap.String("after", r.reason))
		r.reason = ""
	}
}

// lose declares a gap from the floor on and sends it. covered: the last listing was taken after all that was lost; else another is needed.
func (r *reflector) lose(ctx context.Context, covered bool) error {
	to := r.w.cfg.Now()
	if covered {
		to = r.last.began
	}
	if err := r.send(ctx, outgoing{record: r.record(r.w.encoder.Gap(r.kind.Resource, r.floor, to))}); err != nil {
		return err
	}
	r.w.metrics.gaps.WithLabelValues(r.kind.Resource).Inc()
	r.log.Warn("changes may have been missed", zap.Time("from", r.floor), zap.Time("to", to))
	if covered {
		r.ground()
		return nil
	}
	r.current, r.listed, r.resumed = false, false, false
	return nil
}

func (r *reflector) load() {
	if r.w.positions == nil {
		return
	}
	p, found, err := r.w.positions.Load(r.kind.Resource)
	if err != nil {
		r.count(reasonPosition)
		r.log.Error("load watch position: changes made while nothing was running may be missed", zap.Error(err))
		return
	}
	if found {
		r.current, r.rv, r.floor, r.away = true, p.ResourceVersion, p.Good, p.Good
	}
}

// save saves the position if it is due, or in any case if must is set.
func (r *reflector) save(must bool) {
	now := r.w.cfg.Now()
	if r.w.positions == nil || !r.current || !must && now.Sub(r.saved) < r.w.cfg.SaveEvery {
		return
	}
	if err := r.w.positions.Save(r.kind.Resource, Position{r.rv, r.floor}); err != nil {
		r.count(reasonPosition)
		r.log.Warn("save watch position", zap.Error(err))
		return
	}
	r.saved = now
}

// gapAfter is how long a watch may be interrupted before its kind is declared unknown: etcd compacts after five minutes.
const gapAfter = 5 * time.Minute

// older reports whether resourceVersion a is older than b; one that is not a number never is.
func older(a, b string) bool {
	x, errA := strconv.ParseUint(a, 10, 64)
	y, errB := strconv.ParseUint(b, 10, 64)
	return errA == nil && errB == nil && x < y
}

// checkVersion returns an error for a version that is not a number.
func checkVersion(rv string) error {
	if _, err := strconv.ParseUint(rv, 10, 64); err != nil {
		return fmt.Errorf("%w: invalid resourceVersion %q: want a number", errMalformed, cut(rv, 32))
	}
	return nil
}
