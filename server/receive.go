package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/webhook"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// receiver returns the handler audit events are posted to. The trusted one, for the owner alone, takes imports and states unauthenticated.
func (s *system) receiver(trusted bool) (http.Handler, error) {
	w := s.cfg.Webhook
	cfg := webhook.Config{
		MaxBody: int64(w.MaxBodyBytes), MaxEvent: int(w.MaxEventBytes), MaxInFlight: int64(w.MaxInFlightBytes),
		MaxClusterInFlight: int64(w.MaxClusterInFlight), Anonymous: w.AllowAnonymous, Trusted: trusted, Ready: s.ready,
		Contacts: s.contacts,
	}
	switch {
	case trusted && s.runner != nil:
		cfg.State = s.takeState
	case trusted:
		cfg.State = stateElsewhere
	}
	return webhook.New(cfg, s.producer(), s.redactor, s.authority.Registry(), s.log, s.reg)
}

func (s *system) ready(ctx context.Context) error {
	if err := s.reachable(ctx); err != nil {
		return err
	}
	if s.store == nil {
		return nil
	}
	return s.store.Ping(ctx)
}

type takenState struct {
	Objects int            `json:"objects"`
	Kinds   []string       `json:"kinds"`
	Skipped map[string]int `json:"skipped,omitempty"` // objects of kinds the replica does not keep
}

// String returns what became of the listing, for people.
func (t takenState) String() string {
	text := fmt.Sprintf("%d objects", t.Objects)
	if len(t.Skipped) == 0 {
		return text
	}
	kinds := slices.Sorted(maps.Keys(t.Skipped))
	for i, kind := range kinds {
		kinds[i] = fmt.Sprintf("%d %s", t.Skipped[kind], kind)
	}
	return text + "; not needed and left out: " + strings.Join(kinds, ", ")
}

// stateElsewhere refuses a listing in a process that cannot check which cluster it is of.
func stateElsewhere(context.Context, string, time.Time, io.Reader) (any, error) {
	return nil, fmt.Errorf("%w here: this process only receives; import it with the --data-dir of a replay process", webhook.ErrBadState)
}

// takeState turns a listing, as kubectl prints it, into observations on audit.policy.
func (s *system) takeState(ctx context.Context, cluster string, since time.Time, r io.Reader) (any, error) {
	snap, skipped, err := observe.ReadSnapshot(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", webhook.ErrBadState, err)
	}
	snap.Since = since
	observations := snap.Observations()
	if len(snap.Objects) == 0 {
		return nil, fmt.Errorf("%w: it holds no role, binding, namespace or service account", webhook.ErrBadState)
	}
	if err := s.runner.CheckCluster(ctx, cluster, observations...); err != nil {
		return nil, fmt.Errorf("%w: %w; is it meant for another cluster's name?", webhook.ErrBadState, err)
	}
	now := time.Now()
	records := make([]stream.Record, 0, len(observations))
	for i := range observations {
		o := &observations[i]
		if len(o.Object) > 0 { // annotations hold copies of Secrets, and tokens
			o.Object = s.redactor.RedactObject(o.Resource, o.Object)
		}
		records = append(records, stream.PolicyRecord(stream.KindObservation, cluster, "import", now, o.Append(nil)))
	}
	if err := s.produceState(ctx, records, observations); err != nil {
		return nil, err
	}
	s.log.Info("state taken in", zap.String("cluster", cluster), zap.Int("objects", len(snap.Objects)))
	return takenState{Objects: len(snap.Objects), Kinds: snap.Kinds, Skipped: skipped}, nil
}

// produceState produces the records of observations. An object too large for a record is reduced to what the replica reads, roles and
// bindings to a part if need be: one object must not keep out the listing of all others.
func (s *system) produceState(ctx context.Context, records []stream.Record, observations []observe.Observation) error {
	for {
		err := s.producer().Produce(ctx, records...)
		var large *stream.TooLargeError
		if !errors.As(err, &large) || large.Index >= len(observations) || observations[large.Index].Unknown ||
			observations[large.Index].AllOf {
			return err
		}
		o, r := &observations[large.Index], &records[large.Index]
		shrinkObservation(o, large.Limit)
		s.log.Warn("object is too large for a record; what it is judged by is kept, or a part of it",
			zap.String("cluster", r.Cluster), zap.String("resource", o.Resource), zap.String("namespace", o.Namespace),
			zap.String("name", o.Name), zap.Int("bytes", large.Size))
		*r = stream.PolicyRecord(stream.KindObservation, r.Cluster, r.Source, r.Received, o.Append(nil))
	}
}

// shrinkObservation makes an observation smaller by leaving out what nobody reads, then rules or subjects, and finally the whole content.
func shrinkObservation(o *observe.Observation, limit int) {
	kept := event.KeepObject(o.Resource, o.Object, limit-observationOverhead)
	if kept == nil || len(kept) >= len(o.Object) {
		kept, o.Unknown = nil, true
	}
	o.Name, o.Object = event.ShortName(o.Name), kept
}

// observationOverhead bounds what a record of an observation holds beside its object.
const observationOverhead = 4 << 10
