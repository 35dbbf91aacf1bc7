// Package evaluate judges recorded audit logs offline: the engine of package replay over
// files, without Kafka and without a store. It is what `retrial evaluate` runs.
//
//	state inputs ──ReadSnapshot──▶ ┐
//	event inputs ──policy writes──▶ state.State        (first pass)
//	event inputs ──decode──▶ fold stages, drop duplicates ──▶ Replay ──▶ Sink   (second pass)
//
// The log's own policy writes are read before any event is judged, so the order of lines
// does not matter. One request gives one verdict, whatever number of its stages is
// recorded. Events stream through; what grows is the state, and a bounded memory of request
// keys.
//
// The package opens nothing and reads no clock: inputs are functions that open a reader,
// time is injected.
package evaluate

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/retrial-io/retrial/analysis/lineage"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// Input is one file, stream or set of files read as one.
type Input struct {
	// Name is what messages call it.
	Name string
	// Open returns the plain (decompressed) content from its beginning. Event inputs are
	// opened twice.
	Open func() (io.ReadCloser, error)
	// Server names the apiserver that wrote an event input, see event.Event.Server.
	Server string
}

// Options say what to evaluate and where verdicts go.
type Options struct {
	// Cluster is the cluster's name, part of every key; empty means "evaluate".
	Cluster string
	// States are state files: lists of objects as kubectl get -o json writes them. Each input
	// is one listing; files that together make one listing are one input. None is allowed:
	// then the policy is what the log's own writes tell.
	States []Input
	// FromEmpty says that the cluster held none of the objects the replica keeps when the
	// log began: the log of a new cluster from its first start on needs no state file.
	FromEmpty bool
	// Events are audit logs: JSON lines of Event or EventList objects.
	Events []Input
	// State is filled with the policy the requests are judged by, for a caller that wants to
	// ask it afterwards; it must be new and of the same Cluster. nil = one of Run's own.
	State *state.State
	// Redact takes secrets out of every event before anything else looks at it, from any goroutine;
	// nil leaves them in.
	Redact func(e *event.Event)
	// Policy is told, from one goroutine, what goes into the state: first what each of the log's
	// events tells, in the order they are read, then the objects of each listing (listed). nil
	// drops them.
	Policy func(observations []observe.Observation, listed bool)
	// Trail is told every event, for a caller that wants to ask it afterwards; it must be new.
	// nil = one of Run's own.
	Trail *lineage.Trail
	// Engine decides; required.
	Engine *replay.Engine
	// Sink takes every verdict, in the order in which the requests' judged stages stand in
	// the inputs, from one goroutine. nil drops them. event and verdict must not be modified.
	Sink func(e *event.Event, v *verdict.Verdict) error
	// Rows takes every distinct event as the row it is stored as, in the order of the inputs, from
	// one goroutine. Of a request the first stage that can be judged carries the verdict. Rows
	// are received at Received, and their positions count from 0. nil drops them.
	Rows func(row verdict.Row) error
	// Received is when the rows came.
	Received time.Time
	// Progress is told the bytes of event lines read, over both passes; nil = not.
	Progress func(bytes int)
	// MaxLine is the longest event line in bytes; 0 = 64 MiB.
	MaxLine int
	// Workers decode and judge; 0 = one per CPU.
	Workers int
	// Now is the clock Summary.Seconds is measured with; nil leaves it 0.
	Now func() time.Time
	// Remember bounds the number of requests whose keys are kept to fold stages and find
	// duplicates; 0 = 8 million (about 0.5 GB at the most). A repetition further away than
	// half of it is judged again.
	Remember int

	twins *lineage.Twins // made by Run when a log is an aggregated server's, else nil
}

// Run evaluates the inputs. Malformed lines are counted and listed, not errors; an input
// that cannot be opened or read is.
func Run(ctx context.Context, o Options) (*Summary, error) {
	if o.Engine == nil {
		return nil, errors.New("evaluate: no engine")
	}
	o.Cluster = cmp.Or(o.Cluster, "evaluate")
	if o.Workers <= 0 {
		o.Workers = runtime.NumCPU()
	}
	o.Remember = cmp.Or(o.Remember, 8<<20)
	if o.Progress == nil {
		o.Progress = func(int) {}
	}
	var began time.Time
	if o.Now != nil {
		began = o.Now()
	}

	if o.Trail == nil {
		o.Trail = lineage.NewTrail(lineage.TrailConfig{})
	}
	aggregated := map[string]bool{}
	for _, in := range o.Events {
		if o.Engine.Aggregated(o.Cluster, in.Server) {
			aggregated[in.Server] = true
		}
	}
	if len(aggregated) > 0 {
		o.twins = lineage.NewTwins(func(server string) bool { return aggregated[server] }, 0)
	}
	sum := newSummary(o.Engine)
	st, err := o.load(ctx, sum)
	if err != nil {
		return nil, err
	}
	o.Trail.Settle(st)
	o.twins.Settle()
	sum.trail(o.Trail, o.twins)
	if err := o.judge(ctx, st, sum); err != nil {
		return nil, err
	}
	sum.finish()
	if o.Now != nil {
		sum.Seconds = o.Now().Sub(began).Seconds()
	}
	return sum, nil
}

// load builds the state: the log's policy writes, then the listings. Applying is
// commutative, so only the time the log reaches back to has to be known first.
func (o *Options) load(ctx context.Context, sum *Summary) (*state.State, error) {
	st := o.State
	if st == nil {
		st = state.New(o.Cluster)
	}
	var since time.Time
	err := o.decoded(ctx, func([]Malformed) {}, func(b *batch) error { // the second pass counts them
		var all []observe.Observation
		for i := range b.items {
			o.Trail.Observe(b.items[i].event)
			o.twins.Observe(b.items[i].event)
			e := withOutcome(b.items[i].event)
			if at := e.RequestReceivedTimestamp; !at.IsZero() && (since.IsZero() || at.Before(since)) {
				since = at
			}
			if _, _, sighted := event.Sighting(e); !sighted && !event.KeepsPolicy(e) {
				continue
			}
			obs, err := observe.FromEvent(e)
			if err != nil {
				sum.PolicyWritesUnreadable++
			}
			if len(obs) > 0 && obs[0].Resource != observe.Apiservers {
				sum.PolicyWrites++
			}
			if len(obs) == 0 {
				continue
			}
			all = append(all, obs...)
			sum.Born = sum.Born || observe.Bears(obs)
			if o.Policy != nil {
				o.Policy(obs, false)
			}
		}
		st.Apply(all...)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if o.FromEmpty && !since.IsZero() {
		// Listings are what makes a kind known: this one says that there was nothing.
		empty := observe.Snapshot{Began: since, Ended: since, Since: since, Kinds: kept.Resources()}
		if _, err := st.LoadSnapshot(empty); err != nil {
			return nil, fmt.Errorf("load empty state: %w", err)
		}
	}
	for _, in := range o.States {
		snap, err := readSnapshot(in)
		if err != nil {
			return nil, err
		}
		snap.Since = since
		if _, err := st.LoadSnapshot(snap); err != nil {
			return nil, fmt.Errorf("load state %s: %w", in.Name, err)
		}
		if o.Policy != nil {
			o.Policy(snap.Objects, true)
		}
		sum.StateObjects += int64(len(snap.Objects))
	}
	return st, ctx.Err()
}

// withOutcome returns an event whose status was not recorded, or taken out, with the one
// its response object proves: an object answers a success, a Status tells itself. Without
// it, a log without statuses would say nothing of the policy.
func withOutcome(e *event.Event) *event.Event {
	if e.ResponseStatus != nil || e.Stage != event.StageResponseComplete || len(e.ResponseObject) == 0 {
		return e
	}
	var answer struct {
		Kind   string          `json:"kind"`
		Status json.RawMessage `json:"status"`
	}
	if err := json.Unmarshal(e.ResponseObject, &answer); err != nil {
		return e
	}
	if answer.Kind == "Status" && string(answer.Status) != `"Success"` {
		return e
	}
	proven := *e
	proven.ResponseStatus = &event.Status{Code: 200}
	if e.Verb == "create" {
		proven.ResponseStatus.Code = 201
	}
	return &proven
}

func readSnapshot(in Input) (snap observe.Snapshot, err error) {
	r, err := in.Open()
	if err != nil {
		return snap, fmt.Errorf("open state %s: %w", in.Name, err)
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	snap, _, err = observe.ReadSnapshot(r)
	if err != nil {
		return snap, fmt.Errorf("read state %s: %w", in.Name, err)
	}
	if len(snap.Objects) == 0 {
		return snap, fmt.Errorf("read state %s: no object of a kind the replica keeps", in.Name)
	}
	return snap, nil
}
