package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/procstat"
	"github.com/retrial-io/retrial/internal/version"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/server"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/test/workload"
	"github.com/retrial-io/retrial/verdict"
)

// benchCluster is the cluster of the generated events.
const benchCluster = "bench"

// benchBlock is how many rows go in at once: as many as a block of the pipeline has at most.
const benchBlock = 20_000

func newBenchStorage(s cli.Streams) *cobra.Command {
	var b storageBench
	var output string
	c := &cobra.Command{
		Use:   "storage",
		Short: "Fill a new store with generated events, and measure what they take on disk",
		Long: `Generate audit events of a busy cluster (the same for a seed), redact them, judge them by the engine
and the built-in detection rules, and insert them into an empty embedded store as the pipeline does.
When everything is merged, print the bytes each column and table takes per event, beside

  - zstd at level 19 over the first 200,000 of the same events as JSON lines, and
  - the table OpenTelemetry's ClickHouse exporter makes for logs (otel_logs), with the first million,

and what the questions of docs/questions.md take: the median of five times, rows and bytes read; of
the page's first view the 95th percentile of forty at the most; and of lists with filters drawn at random
(the same for a seed), and of ten users who open that view together, the median, the 95th percentile and
the worst. --pages asks instead what every page asks, with the parameters it asks with, of the last hour, day and
week: each question alone, up to twenty times, and all of a page together; of a new store also before it is merged.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if b.rows < 1 {
				return cli.ExitWith(cli.ExitUsage, fmt.Errorf("invalid --rows %d: want at least 1", b.rows))
			}
			if b.again && b.dir == "" {
				return cli.ExitWith(cli.ExitUsage, errors.New("--again needs the folder of a kept store: --dir"))
			}
			b.log = s.Err
			return measure(c, s, output, b.run)
		},
	}
	c.Args = cli.NoArgs
	c.Flags().IntVar(&b.rows, "rows", 5_000_000, "events to generate")
	c.Flags().Uint64Var(&b.seed, "seed", 1, "seed of the generator")
	c.Flags().StringVar(&b.dir, "dir", "", "keep the store in this folder (default: a temporary one, removed)")
	c.Flags().BoolVar(&b.again, "again", false, "query the store kept in --dir again, after making it --times as large: "+
		"nothing is generated")
	c.Flags().BoolVar(&b.plain, "no-otel", false, "leave out the comparison with otel_logs")
	c.Flags().BoolVar(&b.quick, "no-zstd", false, "leave out the comparison with zstd, which takes more than a minute")
	c.Flags().IntVar(&b.times, "times", 1, "then make the store this many times as large, inside it, and query it again")
	c.Flags().BoolVar(&b.pages, "pages", false, "ask what every page asks, each question alone and all of a page "+
		"together, and nothing else")
	cli.AddOutput(c, &output, "table", "json")
	return c
}

// storageBench is one run of the benchmark.
type storageBench struct {
	rows  int
	seed  uint64
	dir   string
	again bool
	plain bool
	quick bool
	times int
	pages bool
	log   io.Writer

	engine *embedded.Engine
	store  *storage.Store
	lines  string // file with the first lines
	otel   *otelLogs
}

func (b *storageBench) run(ctx context.Context) (r *storageResult, err error) {
	dir := b.dir
	if dir == "" {
		if dir, err = os.MkdirTemp("", "retrial-bench-"); err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	}
	b.lines = filepath.Join(dir, "lines.jsonl")
	path := filepath.Join(dir, "clickhouse")
	if _, none := os.Stat(path); (none == nil) != b.again {
		if b.again {
			return nil, cli.ExitWith(cli.ExitUsage, fmt.Errorf("--again: there is no store in %s", b.dir))
		}
		return nil, cli.ExitWith(cli.ExitUsage, fmt.Errorf("%s exists: the measurement needs an empty store", path))
	}
	if b.engine, err = embedded.Open(embedded.Config{Path: path, MaxMemory: 4 << 30}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.engine.Close()) }()
	if b.store, err = storage.Open(ctx, storage.Config{Transport: b.engine}); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, b.store.Close()) }()
	r = &storageResult{Seed: b.seed, Times: b.times}
	if b.again {
		err = b.count(ctx)
	} else {
		err = b.fillAndMeasure(ctx, r)
	}
	if err != nil {
		return nil, err
	}
	r.Rows = int64(b.rows)
	if !b.pages && (!b.again || b.times <= 1) {
		if r.Questions, r.Drawn, r.Together, err = b.askAll(ctx); err != nil {
			return nil, err
		}
	}
	if b.times > 1 {
		if err := b.multiply(ctx, b.times); err != nil {
			return nil, err
		}
		if !b.pages {
			if r.QuestionsTimes, r.DrawnTimes, r.TogetherTimes, err = b.askAll(ctx); err != nil {
				return nil, err
			}
		}
	}
	if b.pages {
		if r.Pages, err = b.askPages(ctx); err != nil {
			return nil, err
		}
	}
	r.finish()
	return r, nil
}

// askAll asks the questions that have names, lists of drawn filters, and the first page of many users.
func (b *storageBench) askAll(ctx context.Context) (named map[string]questionCost, drawn *drawnLists, all *together, err error) {
	if named, err = b.ask(ctx); err != nil {
		return nil, nil, nil, err
	}
	if drawn, err = b.askDrawn(ctx); err != nil {
		return nil, nil, nil, err
	}
	all, err = b.askTogether(ctx)
	return named, drawn, all, err
}

// count records how many events the kept store has.
func (b *storageBench) count(ctx context.Context) error {
	rows, err := rawRows(ctx, b.engine, "SELECT sum(count) FROM retrial.volume")
	if err == nil {
		b.rows = int(numeric(rows[0][0]))
	}
	return err
}

// fillAndMeasure fills the store, merges it and measures what it takes.
func (b *storageBench) fillAndMeasure(ctx context.Context, r *storageResult) (err error) {
	if !b.plain {
		if b.otel, err = newOtelLogs(ctx, b.engine); err != nil {
			return err
		}
	}
	r.Rows = int64(b.rows)
	began, used := time.Now(), procstat.Own()
	if err := b.fill(ctx, r); err != nil {
		return err
	}
	r.FillSeconds = time.Since(began).Seconds()
	fmt.Fprintf(b.log, "%d events in after %.0f s and %.0f s of CPU; merging\n", b.rows, r.FillSeconds, (procstat.Own() - used).Seconds())
	if b.pages {
		if r.PagesUnmerged, err = b.askPages(ctx); err != nil {
			return err
		}
	}
	if err := b.merge(ctx); err != nil {
		return err
	}
	if err := b.measure(ctx, r); err != nil {
		return err
	}
	if !b.quick {
		if r.Baseline, err = b.baseline(ctx); err != nil {
			return err
		}
	}
	r.RebuiltEvents, err = b.rebuild(ctx)
	return err
}

// fill generates, judges and inserts the rows. The blocks are made by one goroutine and
// inserted by another, as a partition's are.
func (b *storageBench) fill(ctx context.Context, r *storageResult) error {
	m, err := newRowMaker(b.seed)
	if err != nil {
		return err
	}
	lines, err := os.Create(b.lines)
	if err != nil {
		return err
	}
	defer lines.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	blocks := make(chan []verdict.Row, 1)
	var making error
	go func() {
		defer close(blocks)
		for made := 0; made < b.rows && ctx.Err() == nil; {
			rows, text := m.block(min(benchBlock, b.rows-made))
			if keep := zstdLines - made; keep > 0 {
				for i := range min(keep, len(text)) {
					if _, making = lines.Write(append(text[i], '\n')); making != nil {
						return
					}
					r.SampleBytes += int64(len(text[i])) + 1
					r.SampleLines++
				}
			}
			for i := range text {
				r.LineBytes += int64(len(text[i])) + 1
			}
			if keep := otelLines - made; b.otel != nil && keep > 0 {
				if making = b.otel.insert(ctx, rows[:min(keep, len(rows))], text); making != nil {
					return
				}
			}
			made += len(rows)
			select {
			case blocks <- rows:
			case <-ctx.Done():
			}
		}
	}()
	n := 0
	for rows := range blocks {
		if err := b.store.Insert(ctx, fmt.Sprintf("bench-%d", n), rows); err != nil {
			return err
		}
		if n += len(rows); n%1_000_000 == 0 {
			fmt.Fprintf(b.log, "%d events\n", n)
		}
	}
	return errors.Join(making, ctx.Err())
}

// rowMaker makes rows as the pipeline does: redacted, with keys, judged, marked.
type rowMaker struct {
	gen      *workload.Generator
	redactor *redact.Redactor
	engine   *replay.Engine
	state    *state.State
	tagger   *detect.Tagger
	offset   int64
	judged   map[event.Hash128]bool // requests whose first stage is stored and whose last is still to come
}

func newRowMaker(seed uint64) (*rowMaker, error) {
	cfg := workload.Config{Seed: seed}
	snap, err := workload.Snapshot(cfg)
	if err != nil {
		return nil, err
	}
	st := state.New(benchCluster)
	if _, err := st.LoadSnapshot(snap); err != nil {
		return nil, fmt.Errorf("load the generated policy: %w", err)
	}
	rules, err := server.LoadRules("", nil)
	if err != nil {
		return nil, err
	}
	return &rowMaker{
		gen: workload.New(cfg), redactor: redact.New([]byte("a key for measurements only")),
		engine: replay.New(replay.Config{Version: version.Version}),
		state:  st, tagger: detect.NewTagger(rules, nil), judged: map[event.Hash128]bool{},
	}, nil
}

// block makes the next n rows and their events as JSON lines.
func (m *rowMaker) block(n int) ([]verdict.Row, [][]byte) {
	rows, text := make([]verdict.Row, n), make([][]byte, n)
	carrier := make([]bool, n)
	for i := range rows {
		e := m.gen.Next()
		rows[i] = verdict.Row{Cluster: benchCluster, Source: "webhook", Event: e, Sign: 1, Revision: 1,
			Position: event.Position{Epoch: 1, Offset: m.offset}, Request: event.RequestKey(benchCluster, e)}
		m.offset++
		carrier[i] = m.first(&rows[i])
	}
	received := rows[n-1].Event.StageTimestamp // a block's records were posted in batches of 400
	for i := range rows {
		if i%400 == 0 {
			received = rows[min(i+399, n-1)].Event.StageTimestamp.Add(250 * time.Millisecond)
		}
		rows[i].Received = received
	}
	var wg sync.WaitGroup
	const parts = 2
	for p := range parts {
		wg.Go(func() {
			for i := p; i < n; i += parts {
				m.finish(&rows[i], &text[i], carrier[i])
			}
		})
	}
	wg.Wait()
	return rows, text
}

// first reports whether the row is the first stage of its request.
func (m *rowMaker) first(r *verdict.Row) bool {
	switch {
	case m.judged[r.Request]:
		delete(m.judged, r.Request)
		return false
	case r.Event.Stage == event.StageResponseStarted:
		m.judged[r.Request] = true
	}
	return true
}

func (m *rowMaker) finish(r *verdict.Row, text *[]byte, carrier bool) {
	m.redactor.Redact(r.Event)
	*text = event.AppendJSON(make([]byte, 0, 2048), r.Event)
	r.EventKey, r.Content, r.Size = event.EventKey(r.Request, r.Event), event.Content(*text), len(*text)
	if carrier {
		r.Verdict = m.engine.Replay(r.Event, m.state)
		r.Marks = m.tagger.Tag(r.Cluster, r.Event, r.Verdict)
	}
}
