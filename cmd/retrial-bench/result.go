package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/internal/version"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
)

// pipelineResult is what `bench pipeline -o json` prints. With several runs each figure is its
// median, and the counts are totals over all runs.
type pipelineResult struct {
	Runs            int                `json:"runs"`
	Events          int64              `json:"events"`
	Seconds         float64            `json:"seconds"` // first post to last verdict stored
	EventsPerSecond float64            `json:"events_per_second"`
	BytesPerEvent   float64            `json:"bytes_per_event"` // as posted
	CPUPerEvent     float64            `json:"cpu_us_per_event"`
	Rooms           map[string]float64 `json:"rooms"` // CPU µs per event
	PeakRSSMB       float64            `json:"peak_rss_mb"`
	StoredMB        float64            `json:"stored_mb"` // the data folder when merges are idle
	LoadCPU         float64            `json:"load_cpu_us_per_event"`
	Verdicts        map[string]int64   `json:"verdicts"`
	Evaluated       map[string]int64   `json:"evaluated"` // verdicts of retrial evaluate on the same input, as often
	Lost            int64              `json:"lost"`
	Duplicates      int64              `json:"duplicates"`
	Overview        *overviewTimes     `json:"overview,omitempty"`  // the slowest run's
	Freshness       *freshnessTimes    `json:"freshness,omitempty"` // the slowest run's
	Store           *storeShape        `json:"store,omitempty"`     // the last run's; of an embedded store
	// Each has, with several runs, the events/s and the CPU per event of each.
	Each []pipelineRun `json:"each,omitempty"`
}

// pipelineRun are the two figures of one run of several.
type pipelineRun struct {
	EventsPerSecond float64 `json:"events_per_second"`
	CPUPerEvent     float64 `json:"cpu_us_per_event"`
}

// runAll measures as often as requested and returns the medians.
func (b *pipelineBench) runAll(ctx context.Context) (_ *pipelineResult, err error) {
	if b.runs < 1 || b.repeat < 1 {
		return nil, cli.ExitWith(cli.ExitUsage, errors.New("invalid --runs or --repeat: want at least 1"))
	}
	if b.rate < 0 || b.partitions < 0 {
		return nil, cli.ExitWith(cli.ExitUsage, errors.New("invalid --rate or --kafka-partitions: want at least 0"))
	}
	evaluated, err := b.evaluate(ctx)
	if err != nil {
		return nil, err
	}
	dir := b.keep
	if dir != "" {
		err = os.Mkdir(dir, 0o700)
	} else {
		dir, err = os.MkdirTemp("", "retrial-bench-")
	}
	if err != nil {
		return nil, err
	}
	if b.keep == "" {
		// All folders go at the end: for half a minute ext4 passes over the inodes of deleted files
		// one by one whenever a file is made, which the next run would pay for.
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	results := make([]*pipelineResult, 0, b.runs)
	for i := range b.runs {
		r, err := b.run(ctx, filepath.Join(dir, strconv.Itoa(i)))
		if err != nil {
			return nil, err
		}
		results = append(results, r)
	}
	r := medians(results)
	r.Evaluated = map[string]int64{}
	for name, n := range evaluated {
		r.Evaluated[name] = n * int64(b.repeat*b.runs)
	}
	return r, nil
}

// evaluate judges the log offline, once.
func (b *pipelineBench) evaluate(ctx context.Context) (map[string]int64, error) {
	input := func(name, path string, bundled func() (io.ReadCloser, error)) evaluate.Input {
		return evaluate.Input{Name: name, Open: func() (io.ReadCloser, error) {
			text, err := readAll(path, bundled)
			return io.NopCloser(bytes.NewReader(text)), err
		}}
	}
	sum, err := evaluate.Run(ctx, evaluate.Options{
		States: []evaluate.Input{input("state", b.state, sample.OpenState)}, Events: []evaluate.Input{input("events", b.events,
			sample.OpenAuditLog)},
		Engine: replay.New(replay.Config{Lag: replay.DefaultLag, Version: version.Version}),
	})
	if err != nil {
		return nil, err
	}
	v := sum.Verdicts
	return map[string]int64{"match": v.Match, "drift": v.Drift, "ambiguous": v.Ambiguous, "indeterminate": v.Indeterminate,
		"not_judged": v.NotJudged}, nil
}

// medians joins the results of several runs.
func medians(results []*pipelineResult) *pipelineResult {
	median := func(of func(*pipelineResult) float64) float64 { return medianOf(results, of) }
	out := &pipelineResult{
		Runs: len(results), Events: results[0].Events, BytesPerEvent: results[0].BytesPerEvent,
		Seconds:         median(func(r *pipelineResult) float64 { return r.Seconds }),
		EventsPerSecond: median(func(r *pipelineResult) float64 { return r.EventsPerSecond }),
		CPUPerEvent:     median(func(r *pipelineResult) float64 { return r.CPUPerEvent }),
		PeakRSSMB:       median(func(r *pipelineResult) float64 { return r.PeakRSSMB }),
		StoredMB:        median(func(r *pipelineResult) float64 { return r.StoredMB }),
		LoadCPU:         median(func(r *pipelineResult) float64 { return r.LoadCPU }),
		Rooms:           map[string]float64{}, Verdicts: map[string]int64{},
		Store: results[len(results)-1].Store,
	}
	for _, r := range results {
		if r.Overview != nil && (out.Overview == nil || r.Overview.P95 > out.Overview.P95) {
			out.Overview = r.Overview
		}
		if r.Freshness != nil && (out.Freshness == nil || r.Freshness.Finding.P95 > out.Freshness.Finding.P95) {
			out.Freshness = r.Freshness
		}
		for room := range r.Rooms {
			out.Rooms[room] = 0
		}
		for name, n := range r.Verdicts {
			out.Verdicts[name] += n
		}
		out.Lost += r.Lost
		out.Duplicates += r.Duplicates
		if len(results) > 1 {
			out.Each = append(out.Each, pipelineRun{r.EventsPerSecond, r.CPUPerEvent})
		}
	}
	for room := range out.Rooms {
		out.Rooms[room] = median(func(r *pipelineResult) float64 { return r.Rooms[room] })
	}
	return out
}

// check returns an error unless everything posted is stored once and judged as offline.
func (r *pipelineResult) check() error {
	var errs []error
	if r.Lost != 0 || r.Duplicates != 0 {
		errs = append(errs, fmt.Errorf("%d events are lost and %d are duplicated", r.Lost, r.Duplicates))
	}
	for _, name := range query.Outcomes {
		if got, want := r.Verdicts[name], r.Evaluated[name]; got != want {
			errs = append(errs, fmt.Errorf("%d verdicts are %s, offline %d", got, name, want))
		}
	}
	return errors.Join(errs...)
}

func (r *pipelineResult) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "events\t%d of %.0f bytes\n", r.Events, r.BytesPerEvent)
	if r.Runs > 1 {
		fmt.Fprintf(w, "runs\t%d, medians of:\n", r.Runs)
		for _, one := range r.Each {
			fmt.Fprintf(w, "  \t%.0f events/s, %.1f µs\n", one.EventsPerSecond, one.CPUPerEvent)
		}
	}
	fmt.Fprintf(w, "events/s\t%.0f\n", r.EventsPerSecond)
	fmt.Fprintf(w, "CPU per event\t%.1f µs\n", r.CPUPerEvent)
	for _, name := range roomNames(r.Rooms) {
		fmt.Fprintf(w, "  %s\t%.2f µs\n", name, r.Rooms[name])
	}
	fmt.Fprintf(w, "load generator\t%.1f µs CPU per event\n", r.LoadCPU)
	fmt.Fprintf(w, "peak memory\t%.0f MB\n", r.PeakRSSMB)
	fmt.Fprintf(w, "on disk\t%.0f MB\n", r.StoredMB)
	if r.Store != nil {
		r.Store.print(w, r.Events)
	}
	if o := r.Overview; o != nil {
		fmt.Fprintf(w, "first page\tof %d events: p50 %.0f ms, p95 %.0f ms, worst %.0f ms of %d\n", o.Events, o.P50, o.P95, o.Worst,
			o.Asked)
	}
	if r.Freshness != nil {
		r.Freshness.print(w)
	}
	for _, o := range query.Outcomes {
		fmt.Fprintf(w, "%s\t%d, offline %d\n", o, r.Verdicts[o], r.Evaluated[o])
	}
	fmt.Fprintf(w, "lost\t%d\nduplicates\t%d\n", r.Lost, r.Duplicates)
	return w.Flush()
}
