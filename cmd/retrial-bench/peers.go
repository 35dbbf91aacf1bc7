package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/server"
	"github.com/retrial-io/retrial/test/workload"
)

// Names of what is measured. A collector's may go on with -tuned, -raw and -lean.
const (
	ownName       = "retrial"
	ownKafkaName  = "retrial-kafka"
	victoriaName  = "victorialogs"
	collectorName = "collector"
)

// this process: makes the posts, 400 events each, over TLS       children: what is measured
//
//	┌──▶ retrial         serve: embedded Kafka, replay, embedded engine
//	├──▶ victorialogs    one process
//	├──▶ retrial-kafka   serve ─▶ Kafka ─▶ chserver
//	└──▶ collector       OTLP ─▶ the same Kafka ─▶ itself ─▶ a chserver
//
// one after the other, in as many rounds as --runs says
func newBenchPeers(s cli.Streams) *cobra.Command {
	var b peersBench
	var output string
	c := &cobra.Command{
		Use:   "peers",
		Short: "Measure the pipeline beside VictoriaLogs and an OpenTelemetry Collector",
		Long: `Post the same events in the same batches over TLS to a new server of each, one after the other and
round after round, at each of --rates, and print what an event cost each: processor time of its
processes until nothing is left to do (merges included, this program and Kafka on no side), peak
memory, and bytes on disk. Medians of --runs rounds, with the least and the most.

  retrial          serve, as it is without a flag: embedded Kafka with fsync, embedded engine; replays,
                   judges, rolls up, detects; its rows and verdicts are verified as bench pipeline does
  victorialogs     a new victoria-logs; JSON lines
  retrial-kafka    serve on the same Kafka and the same engine served over HTTP as a collector
  collector        an OpenTelemetry Collector as its documentation sets it up: OTLP, Kafka, ClickHouse;
                   events parsed into attributes. Suffixes: -tuned sets its exporter up cheaper than
                   documented, -raw leaves an event an opaque text, -lean takes all indexes off its table

make bench-peers builds the programs and starts Kafka; docs/peer.md says what was set up and why.`,
		Args: cli.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			b.log = s.Err
			return measure(c, s, output, b.measure)
		},
	}
	c.Flags().StringSliceVar(&b.peers, "peers", []string{ownName, victoriaName, ownKafkaName, collectorName, collectorName + "-tuned"},
		"what is measured")
	c.Flags().Float64SliceVar(&b.rates, "rates", []float64{0, 500}, "events posted a second; 0: as many as are accepted")
	c.Flags().IntVar(&b.rounds, "runs", 5, "rounds")
	c.Flags().StringVar(&b.programs, "programs", "", "folder of victoria-logs, collector and chserver (default: where make bench-peers "+
		"builds them)")
	c.Flags().StringVar(&b.state, "state", "", "state file (default: the bundled sample's)")
	c.Flags().StringVar(&b.events, "events", "", "audit log (default: the bundled sample)")
	c.Flags().IntVar(&b.repeat, "repeat", 4, "how many times the log is posted, each time as another cluster; at a rate it is posted once")
	c.Flags().IntVar(&b.connections, "connections", 4, "concurrent posts")
	c.Flags().IntVar(&b.batch, "batch", 400, "events in one post; the default is an apiserver's")
	cli.AddOutput(c, &output, "table", "json")
	return c
}

// peersBench measures several programs in turn.
type peersBench struct {
	pipelineBench // how and what is posted, to all of them
	peers         []string
	rates         []float64
	rounds        int
	programs      string
	dir           string // of what the runs leave, deleted at the end
}

// restOfPeers is how many half seconds everybody must have rested: VictoriaLogs writes what it
// holds in memory every five seconds.
const restOfPeers = 12

// measure lets everybody have its turn at each rate, as many times as asked.
func (b *peersBench) measure(ctx context.Context) (_ *peersResult, err error) {
	if b.rounds < 1 || b.repeat < 1 || slices.Min(append(b.rates, 0)) < 0 {
		return nil, cli.ExitWith(cli.ExitUsage, errors.New("invalid --runs, --repeat or --rates: want at least 1, 1 and 0"))
	}
	if b.programs == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return nil, fmt.Errorf("folder of the programs: %w: name --programs", err)
		}
		b.programs = filepath.Join(cache, "retrial", "peers")
	}
	if b.dir, err = os.MkdirTemp("", "retrial-peers-"); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(b.dir)) }()
	r := &peersResult{Machine: describeMachine(), LoadBefore: loadAverage(), Missing: map[string]string{}}
	for _, name := range b.peers {
		program, why := b.missing(name)
		if why != "" {
			r.Missing[name] = why
			fmt.Fprintf(b.log, "%s is not measured: %s\n", name, why)
			continue
		}
		r.Versions = append(r.Versions, name+" "+versionOf(program))
		for _, rate := range b.rates {
			r.Figures = append(r.Figures, &peerFigure{Peer: name, Rate: rate})
		}
	}
	for round := range b.rounds {
		for i, rate := range b.rates {
			for _, f := range r.Figures {
				if f.Rate != rate {
					continue
				}
				fmt.Fprintf(b.log, "round %d of %d, %s, %s\n", round+1, b.rounds, rateName(rate), f.Peer)
				one, err := b.turn(ctx, f.Peer, rate, filepath.Join(b.dir, fmt.Sprintf("%d-%d-%s", round, i, f.Peer)))
				if err != nil {
					return nil, fmt.Errorf("%s: %w", f.Peer, err)
				}
				fmt.Fprintf(b.log, "%s: %.1f µs, %.0f MB, %.0f bytes\n", f.Peer, one.cpu, one.memory, one.disk)
				f.add(one)
			}
		}
	}
	r.LoadAfter = loadAverage()
	return r, nil
}

// missing returns the program that a name stands for, and why it cannot be run, empty if it can.
func (b *peersBench) missing(name string) (program, why string) {
	variant, collector := strings.CutPrefix(name, collectorName)
	for _, word := range []string{"-tuned", "-raw", "-lean"} {
		variant = strings.Replace(variant, word, "", 1)
	}
	var needs []string
	switch {
	case name == ownName, name == ownKafkaName:
		program, err := findProduct()
		if err != nil {
			return "", err.Error()
		}
		needs = []string{program}
	case name == victoriaName:
		needs = []string{filepath.Join(b.programs, "victoria-logs")}
	case collector && variant == "":
		needs = []string{filepath.Join(b.programs, "collector")}
	default:
		return "", "no such peer"
	}
	if collector || name == ownKafkaName {
		if brokers() == "" {
			return "", "it needs a Kafka: run test/kafkatest/withkafka, as make bench-peers does"
		}
		needs = append(needs, filepath.Join(b.programs, "chserver"))
	}
	for _, file := range needs {
		if _, err := os.Stat(file); err != nil {
			return "", whyNotBuilt(file)
		}
	}
	return needs[0], ""
}

// whyNotBuilt says what became of a program, by the last line of its build's log.
func whyNotBuilt(file string) string {
	text, err := os.ReadFile(file + ".log")
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	if last := lines[len(lines)-1]; err == nil && last != "" {
		return "it could not be built: " + last
	}
	return "there is no " + file + ": make bench-peers builds it"
}

// one is what one run of one of them took: µs of processor time and bytes of an event, MB.
type one struct {
	events            int64
	cpu, memory, disk float64
}

// turn measures one of them once, in a new folder.
func (b *peersBench) turn(ctx context.Context, name string, rate float64, dir string) (one, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return one{}, err
	}
	ctx, cancel := context.WithCancel(ctx) // ends what a failure leaves running
	defer cancel()
	repeat := b.repeat
	if rate > 0 {
		repeat = 1
	}
	switch {
	case strings.HasPrefix(name, ownName):
		return b.ownTurn(ctx, name, repeat, rate, dir)
	case name == victoriaName:
		return b.peerTurn(ctx, repeat, rate, dir, b.startVictoria)
	default:
		return b.peerTurn(ctx, repeat, rate, dir, func(ctx context.Context, dir string) (*peer, error) {
			return b.startCollector(ctx, name, dir)
		})
	}
}

// ownTurn is bench pipeline, with its checks.
func (b *peersBench) ownTurn(ctx context.Context, name string, repeat int, rate float64, dir string) (o one, err error) {
	own := b.pipelineBench
	own.runs, own.repeat, own.rate, own.rest, own.keep = 1, repeat, rate, restOfPeers, filepath.Join(dir, "runs")
	engine := filepath.Join(dir, "engine")
	if name == ownKafkaName {
		store, err := b.startEngine(ctx, engine)
		if err != nil {
			return o, err
		}
		defer func() { err = errors.Join(err, store.stop()) }()
		own.beside = []int{store.cmd.Process.Pid}
		own.serveFlags = []string{"--kafka-brokers", brokers(), "--kafka-replication", "1", "--kafka-partitions",
			strconv.Itoa(peerPartitions), "--clickhouse-dsn", store.dsn(), "--kafka-topic-prefix", topicName(dir) + "."}
	}
	r, err := own.runAll(ctx)
	if err != nil {
		return o, err
	}
	o = one{events: r.Events, cpu: r.CPUPerEvent, memory: r.PeakRSSMB, disk: r.StoredMB * (1 << 20) / float64(r.Events)}
	if name == ownKafkaName {
		o.disk = float64(folderSize(engine)) / float64(r.Events)
	}
	return o, r.check()
}

// peer is a running program that takes posts and stores what is in them.
type peer struct {
	*child
	url, kind string // where to, and what a body is
	encode    func(cluster string, lines [][]byte) ([]byte, error)
	// stored counts what it holds: all of it, and what differs.
	stored func(context.Context) (rows, different int64, err error)
	folder string
	end    func() error
}

// peerTurn starts a peer, posts to it, and waits until it holds every event once and rests.
func (b *peersBench) peerTurn(ctx context.Context, repeat int, rate float64, dir string,
	start func(ctx context.Context, dir string) (*peer, error)) (o one, err error) {
	p, err := start(ctx, dir)
	if err != nil {
		return o, err
	}
	p.rest = restOfPeers
	load, err := b.peerLoad(p, repeat, dir)
	if err != nil {
		return o, err
	}
	for _, post := range load.posts {
		o.events += int64(post.events)
	}
	fetchMemory(load.bytes)
	before, err := p.cpu()
	if err != nil {
		return o, err
	}
	if err := load.post(ctx, b.connections, rate); err != nil {
		return o, err
	}
	after, err := p.untilStored(ctx, o.events)
	if err != nil {
		return o, err
	}
	peak, err := p.peakMemory()
	if err := errors.Join(err, p.end()); err != nil {
		return o, err
	}
	n := float64(o.events)
	o.cpu, o.memory, o.disk = float64((after-before).Microseconds())/n, float64(peak)/(1<<20), float64(folderSize(p.folder))/n
	return o, nil
}

// untilStored waits until the peer rests and holds every event once. It returns the processor time
// used until it rested, before the question.
func (p *peer) untilStored(ctx context.Context, events int64) (time.Duration, error) {
	for last := int64(-1); ; {
		used, err := p.idle(ctx)
		if err != nil {
			return 0, err
		}
		rows, different, err := p.stored(ctx)
		switch {
		case err != nil:
			return 0, err
		case rows == events && different == events:
			return used, nil
		case rows == last || rows > events:
			return 0, fmt.Errorf("it holds %d rows, %d of them different, of %d events", rows, different, events)
		}
		last = rows
	}
}

// peerLoad makes the posts for a peer, of the same events with the same identifiers as ours.
func (b *peersBench) peerLoad(p *peer, repeat int, dir string) (*benchLoad, error) {
	text, err := readAll(b.events, sample.OpenAuditLog)
	if err != nil {
		return nil, err
	}
	authority, err := server.OpenIdentity(identityIn(dir))
	if err != nil {
		return nil, err
	}
	client, err := clusterClient(authority, collectorName)
	if err != nil {
		return nil, err
	}
	load := &benchLoad{}
	for i := range repeat {
		cluster := "bench-" + strconv.Itoa(i+1)
		lines := bytes.Split(bytes.TrimSpace(workload.Renumber(text, cluster)), []byte("\n"))
		for batch := range slices.Chunk(lines, b.batch) {
			body, err := p.encode(cluster, batch)
			if err != nil {
				return nil, err
			}
			load.posts = append(load.posts, benchPost{client: client, url: strings.ReplaceAll(p.url, "CLUSTER", cluster), body: body,
				events: len(batch), kind: p.kind})
			load.bytes += int64(len(body))
		}
	}
	return load, nil
}

// identityIn returns the settings under which a peer's certificates lie in its folder.
func identityIn(dir string) config.Config {
	cfg := config.Default()
	cfg.DataDir, cfg.KeyFile = filepath.Join(dir, "tls"), filepath.Join(dir, "key")
	return cfg
}

// certificatesIn makes the certificates of a peer: the authority's, and its own with the key.
func certificatesIn(dir string) (ca, cert, key string, err error) {
	cfg := identityIn(dir)
	if _, err := server.OpenIdentity(cfg); err != nil {
		return "", "", "", err
	}
	pki := server.IdentityConfig(cfg).Dir
	return filepath.Join(pki, "ca.crt"), filepath.Join(pki, "server.crt"), filepath.Join(pki, "server.key"), nil
}
