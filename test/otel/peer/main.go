// Command peer puts Retrial beside an OpenTelemetry Collector that takes the same events the
// same way: TLS posts of 400 events, through the same Kafka, into the same ClickHouse engine
// served over HTTP. It prints what each used of the processor, and whether each stored all
// of the events; docs/peer.md says what was set up and why.
//
//	events × N ──TLS──▶ collector ─▶ Kafka ─▶ collector ─▶ chserver      the peer
//	events × N ──TLS──▶ retrial serve ─▶ Kafka ─▶ replay ─▶ chserver     bench pipeline
//	           (both: rusage of the process and of its chserver, until the merges are idle)
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"
)

// options are what a run is told.
type options struct {
	retrial, collector, chserver string // programs
	brokers                      string
	events, state                string // files
	repeat                       int
	batch                        int
	connections                  int
	lean, tuned                  bool
	forms                        string
	ours                         bool
	dir                          string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx); err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "peer:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) (err error) {
	var o options
	flags := flag.NewFlagSet("peer", flag.ContinueOnError)
	flags.StringVar(&o.retrial, "retrial", "bin/retrial", "the product's `binary`")
	flags.StringVar(&o.collector, "collector", "", "the collector's `binary`")
	flags.StringVar(&o.chserver, "chserver", "", "`binary` of test/chserver/cmd/chserver")
	flags.StringVar(&o.brokers, "brokers", os.Getenv("RETRIAL_TEST_KAFKA_BROKERS"), "Kafka's `addresses`; withkafka sets them")
	flags.StringVar(&o.events, "events", "", "audit log, uncompressed or .zst; empty: the sample's")
	flags.StringVar(&o.state, "state", "", "state of the cluster before it; empty: the sample's")
	flags.IntVar(&o.repeat, "repeat", 4, "how many times the log is posted, each time with other identifiers")
	flags.IntVar(&o.batch, "batch", 400, "events in one post")
	flags.IntVar(&o.connections, "connections", 4, "concurrent posts")
	flags.BoolVar(&o.lean, "lean", false, "the peer's table without its text and attribute indexes, cheaper than what the exporter makes")
	flags.BoolVar(&o.tuned, "tuned", false, "the peer's exporter with larger batches, uncompressed and without asynchronous inserts, "+
		"cheaper than what its documentation recommends")
	flags.StringVar(&o.forms, "forms", formRaw+","+formParsed, "what the collector makes of an event: raw, one opaque body; parsed, its "+
		"members as attributes too, so that they can be asked for")
	flags.BoolVar(&o.ours, "ours", true, "run Retrial too")
	if err := flags.Parse(os.Args[1:]); err != nil {
		return err
	}
	if o.collector == "" || o.chserver == "" || o.brokers == "" {
		return errors.New("name --collector, --chserver and --brokers (make bench-otel does)")
	}
	if o.dir, err = os.MkdirTemp("", "retrial-peer-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(o.dir)) }()
	var ours figure
	if o.ours {
		if ours, err = runOurs(ctx, o); err != nil {
			return fmt.Errorf("retrial: %w", err)
		}
		ours.print("retrial")
	}
	peers := map[string]figure{}
	forms := strings.Split(o.forms, ",")
	for _, form := range forms {
		if peers[form], err = runPeer(ctx, o, form); err != nil {
			return fmt.Errorf("collector, %s: %w", form, err)
		}
		peers[form].print("collector, " + form)
	}
	if !o.ours {
		return nil
	}
	for _, form := range forms {
		name := "peer"
		if form != formParsed {
			name += "-" + form
		}
		fmt.Printf("%s events_per_cpu_second=%.0f ours=%.0f ratio=%.2f\n", name, peers[form].perCPUSecond(), ours.perCPUSecond(),
			ours.perCPUSecond()/peers[form].perCPUSecond())
	}
	return nil
}

// Forms of an event in the collector's table.
const (
	formRaw    = "raw"
	formParsed = "parsed"
)

// figure is what one side did.
type figure struct {
	events, stored int64
	cpu, engine    time.Duration // of the pipeline's own process, and of the store's
	wall           time.Duration
	rows           string // what was verified
}

func (f figure) perCPUSecond() float64 { return float64(f.events) / (f.cpu + f.engine).Seconds() }

func (f figure) print(name string) {
	n := float64(f.events)
	split := fmt.Sprintf("%.1f µs (process %.1f, engine %.1f)", float64((f.cpu+f.engine).Microseconds())/n, float64(f.cpu.Microseconds())/n,
		float64(f.engine.Microseconds())/n)
	fmt.Println(strings.Join([]string{
		fmt.Sprintf("%-9s events=%d stored=%d", name, f.events, f.stored), f.rows,
		"cpu per event " + split, fmt.Sprintf("%.0f events per CPU-second", f.perCPUSecond()), fmt.Sprintf("%.0f events/s",
			n/f.wall.Seconds()),
	}, "; "))
}
