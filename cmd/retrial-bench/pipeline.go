package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/procstat"
	"github.com/retrial-io/retrial/query"
	apiclient "github.com/retrial-io/retrial/query/client"
	"github.com/retrial-io/retrial/server"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/test/process"
)

// this process: makes the load         a child: `retrial serve`, what is measured
//
//	events × N, own cluster each ──mTLS──▶ webhook ─▶ Kafka ─▶ replay ─▶ ClickHouse
//	rusage, CPU profile, /proc   ◀────────────────────────────────────────┘
//	then the stored rows against the posted keys (the store is opened here)
func newBenchPipeline(s cli.Streams) *cobra.Command {
	var b pipelineBench
	var output string
	c := &cobra.Command{
		Use:   "pipeline [-- SERVE-FLAGS...]",
		Short: "Post a log over mutual TLS to a new server, and measure until everything is stored",
		Long: `Start ` + "`retrial serve`" + ` as a child process on an empty folder, post the events --repeat times,
each time as another cluster with its own state and its own identifiers (every UUID in events and
state is replaced), and measure until all verdicts are stored, rollups have them and the store's merges are idle.

What is measured is the child alone, on a machine whose memory has been touched: CPU by the operating
system's own accounting, rooms by its CPU profile ("engine" is what the accounting has beyond the
profile: the embedded store's own threads).
Afterwards the stored rows are held against the posted events, and the verdicts against those of
` + "`retrial evaluate`" + ` on the same files: anything lost, doubled or judged otherwise is an error.
Flags after -- go to serve, for instance: -- --kafka-brokers 127.0.0.1:9092. Where they name a
ClickHouse server of this machine, --count-pid adds what that uses.`,
		RunE: func(c *cobra.Command, args []string) error {
			b.serveFlags = args
			if b.partitions > 0 {
				b.serveFlags = append(b.serveFlags, "--kafka-partitions", strconv.Itoa(b.partitions))
			}
			b.log = s.Err
			r, err := b.runAll(c.Context())
			if err != nil {
				return err
			}
			return errors.Join(show(s, output, r), r.check())
		},
	}
	c.Flags().StringVar(&b.state, "state", "", "state file (default: the bundled sample's)")
	c.Flags().StringVar(&b.events, "events", "", "audit log (default: the bundled sample)")
	c.Flags().IntVar(&b.repeat, "repeat", 4, "how many times the log is posted, each time as another cluster")
	c.Flags().IntVar(&b.runs, "runs", 1, "measure this many times, each on an empty folder (all are deleted at the end), and "+
		"report the medians")
	c.Flags().IntVar(&b.connections, "connections", 4, "concurrent posts")
	c.Flags().IntVar(&b.batch, "batch", 400, "events in one post; the default is an apiserver's")
	c.Flags().Float64Var(&b.rate, "rate", 0, "post this many events a second; 0: as many as are accepted")
	c.Flags().BoolVar(&b.interleave, "interleave", false, "alternate the clusters' batches instead of posting one cluster after the other")
	c.Flags().IntVar(&b.partitions, "kafka-partitions", 0, "partitions of the events; 0: the server's default")
	c.Flags().StringVar(&b.keep, "keep", "", "keep the folders of all runs in this new folder")
	c.Flags().IntSliceVar(&b.beside, "count-pid", nil, "another process whose CPU time and memory are counted, besides the child's")
	c.Flags().StringVar(&b.overview, "overview", "", "start with the store that bench storage kept in this folder, and query its "+
		"first page throughout")
	c.Flags().BoolVar(&b.freshness, "freshness", false, "post a request that alerts every other second, as a cluster of its own, and "+
		"measure how long after its acknowledgement it is answered, and its finding; asking for them costs CPU, too")
	c.Flags().StringVar(&b.profile, "profile", "", "keep the child's CPU profile in this file")
	cli.AddOutput(c, &output, "table", "json")
	return c
}

// pipelineBench is one run of the benchmark.
type pipelineBench struct {
	state, events string
	repeat        int
	runs          int
	connections   int
	batch         int
	rate          float64 // events a second; 0: no limit
	interleave    bool
	partitions    int // 0: the server's default
	keep          string
	profile       string
	overview      string
	freshness     bool
	beside        []int // process IDs
	rest          int   // half seconds without work after which the child is idle; 0: four
	serveFlags    []string
	log           io.Writer
}

// run measures once, in a new folder.
func (b *pipelineBench) run(ctx context.Context, dir string) (*pipelineResult, error) {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return nil, err
	}
	cfg := config.Default()
	cfg.DataDir, cfg.KeyFile = filepath.Join(dir, "d"), filepath.Join(dir, "key")
	cfg.ClickHouse.DSN = valueOf(b.serveFlags, "--clickhouse-dsn")
	var err error
	if cfg.Webhook.Listen, err = freeAddress(); err != nil {
		return nil, err
	}
	if cfg.Debug.Listen, err = freeAddress(); err != nil {
		return nil, err
	}
	if cfg.UI.Listen, err = freeAddress(); err != nil {
		return nil, err
	}
	if err := fillFrom(b.overview, cfg.DataDir); err != nil {
		return nil, err
	}
	profile := filepath.Join(dir, "cpu.pprof")
	child, err := b.start(ctx, cfg)
	if err != nil {
		return nil, err
	}
	defer child.kill()

	load, err := b.prepare(cfg)
	if err != nil {
		return nil, err
	}
	fetchMemory(load.bytes)
	fmt.Fprintf(b.log, "posting %d events of %d clusters\n", load.count(), b.repeat)
	before, err := child.begin(ctx, cfg.Debug.Listen, profile)
	if err != nil {
		return nil, err
	}
	ownBefore := procstat.Own()
	probe := probeOverview(ctx, b.overview, child.client)
	var fresh *freshnessProbe
	if b.freshness {
		fresh = probeFreshness(ctx, load.alerts, child.client)
	}
	began := time.Now()
	if err := load.post(ctx, b.connections, b.rate); err != nil {
		return nil, err
	}
	own := procstat.Own() - ownBefore
	if _, err := apiclient.Ask(ctx, child.client, query.DrainedRequest{}); err != nil {
		return nil, err
	}
	took := time.Since(began)
	// A question about rollups has what waits counted, which is part of what events cost.
	for cluster := range load.keys {
		rollups := query.AskRequest{Cluster: cluster, Name: "denials", Values: map[string]string{"to": "1970-01-02T00:00:00Z"}}
		if _, err := apiclient.Ask(ctx, child.client, rollups); err != nil {
			return nil, err
		}
		break
	}
	overview, err := probe.stop()
	if err != nil {
		return nil, err
	}
	if err := fresh.stop(); err != nil {
		return nil, err
	}
	after, err := child.idle(ctx)
	if err != nil {
		return nil, err
	}
	peak, err := child.peakMemory()
	inserts, asked := readInserts(ctx, cfg.UI.Listen)
	if err := errors.Join(err, asked, child.stop()); err != nil {
		return nil, err
	}
	n := float64(load.count())
	r := &pipelineResult{
		Events: load.count(), Seconds: took.Seconds(), EventsPerSecond: n / took.Seconds(), BytesPerEvent: float64(load.bytes) / n,
		CPUPerEvent: float64((after - before).Microseconds()) / n, LoadCPU: float64(own.Microseconds()) / n,
		PeakRSSMB: float64(peak) / (1 << 20), Overview: overview,
	}
	if r.Rooms, err = rooms(profile, r.CPUPerEvent, n); err != nil {
		return nil, err
	}
	if b.profile != "" {
		if err := os.Rename(profile, b.profile); err != nil {
			return nil, fmt.Errorf("keep the profile: %w", err)
		}
	}
	r.StoredMB = float64(folderSize(cfg.DataDir)) / (1 << 20)
	if r.Store, err = measureStore(ctx, cfg, load.count()); err != nil {
		return nil, err
	}
	if r.Store != nil {
		r.Store.Inserts = inserts
	}
	return r, b.verify(ctx, cfg, load, fresh, r)
}

// verify compares what was posted with what the store holds, event by event, and reads when findings were stored.
func (b *pipelineBench) verify(ctx context.Context, cfg config.Config, load *benchLoad, fresh *freshnessProbe,
	r *pipelineResult) (err error) {
	store, done, err := server.OpenStore(ctx, cfg)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if r.Freshness, err = fresh.times(ctx, store); err != nil {
		return err
	}
	r.Verdicts = map[string]int64{}
	for cluster, keys := range load.keys {
		if err := store.EventKeys(ctx, cluster, func(k queries.StoredKey) error {
			if seen, posted := keys[k.Event]; !posted || seen {
				r.Duplicates++
			}
			keys[k.Event] = true
			return nil
		}); err != nil {
			return err
		}
		for _, seen := range keys {
			if !seen {
				r.Lost++
			}
		}
		shares, err := store.Outcomes(ctx, cluster, time.Unix(0, 0), time.Unix(1<<32-1, 0))
		if err != nil {
			return err
		}
		for _, s := range shares {
			r.Verdicts[s.Outcome] += s.Requests
		}
	}
	return nil
}

// fetchMemory touches as much memory as a run with that many bytes of events takes. A virtual
// machine that was idle has given its free memory back to its host, and each page costs up to 12 µs
// to get again, of the CPU time of the process that touches it first.
func fetchMemory(events int64) {
	const most, page = 2 << 30, 4 << 10
	memory := make([]byte, min(6*events, most))
	for i := 0; i < len(memory); i += page {
		memory[i] = 1
	}
	runtime.KeepAlive(memory)
	debug.FreeOSMemory()
}

// child is the server that is measured.
type child struct {
	cmd    *exec.Cmd
	client *apiclient.Client
	ended  chan error
	// profiled holds what became of the profile, once it is whole.
	profiled chan error
	beside   []int // further processes that are measured
	rest     int   // half seconds without work after which it is idle; 0: four
}

// startChild starts a program. What it writes goes to log.
func startChild(cmd *exec.Cmd, log io.Writer) (*child, error) {
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	c := &child{cmd: cmd, ended: make(chan error, 1)}
	go func() { c.ended <- cmd.Wait() }()
	return c, nil
}

// answers waits until ready returns no error, and fails when the program ends before.
func (c *child) answers(ctx context.Context, ready func() error) error {
	for ready() != nil {
		select {
		case err := <-c.ended:
			return fmt.Errorf("%s did not start: %w", filepath.Base(c.cmd.Path), err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// findProduct returns the path of the product's program: next to this one, else in PATH.
func findProduct() (string, error) {
	if self, err := os.Executable(); err == nil {
		beside := filepath.Join(filepath.Dir(self), "retrial")
		if _, err := os.Stat(beside); err == nil {
			return beside, nil
		}
	}
	path, err := exec.LookPath("retrial")
	if err != nil {
		return "", errors.New("retrial is neither next to this program nor in PATH: make build builds both")
	}
	return path, nil
}

func (b *pipelineBench) start(ctx context.Context, cfg config.Config) (*child, error) {
	product, err := findProduct()
	if err != nil {
		return nil, err
	}
	args := append([]string{
		"serve", "--data-dir", cfg.DataDir, "--key-file", cfg.KeyFile, "--webhook-listen", cfg.Webhook.Listen,
		"--ui-listen", cfg.UI.Listen, "--log-level", "warn", "--debug-listen", cfg.Debug.Listen,
	}, b.serveFlags...)
	c, err := startChild(exec.CommandContext(ctx, product, args...), b.log)
	if err != nil {
		return nil, err
	}
	c.beside, c.rest = b.beside, b.rest
	return c, c.answers(ctx, func() error {
		c.client, err = apiclient.Dial(ctx, "", cfg.DataDir)
		return err
	})
}

func (c *child) kill() {
	_ = c.cmd.Process.Kill() // it has ended already when the run went well
}

// begin has a profile of the child begin, which ends with it, and returns the processor time used
// until then.
func (c *child) begin(ctx context.Context, debug, profile string) (time.Duration, error) {
	const longest = 24 * time.Hour // it ends with the child
	asked := make(chan struct{})
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteRequest: func(httptrace.WroteRequestInfo) { close(asked) }})
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", debug, int(longest.Seconds()))
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, err
	}
	c.profiled = make(chan error, 1)
	go func() { c.profiled <- save(req, profile) }()
	select {
	case <-asked:
		return c.cpu()
	case err := <-c.profiled:
		return 0, fmt.Errorf("profile of the server: %w", err)
	}
}

// save writes an answer to a file.
func save(req *http.Request, path string) error {
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return errors.New(res.Status)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	_, err = io.Copy(f, res.Body)
	return errors.Join(err, f.Close())
}

// cpu returns the processor time the child, and what is measured with it, has used so far.
func (c *child) cpu() (time.Duration, error) {
	total, err := process.CPU(c.cmd.Process.Pid)
	for _, pid := range c.beside {
		used, e := process.CPU(pid)
		total, err = total+used, errors.Join(err, e)
	}
	return total, err
}

// peakMemory returns the most memory the child, and what is measured with it, has had, in bytes.
func (c *child) peakMemory() (int64, error) {
	total, err := process.PeakMemory(c.cmd.Process.Pid)
	for _, pid := range c.beside {
		had, e := process.PeakMemory(pid)
		total, err = total+had, errors.Join(err, e)
	}
	return total, err
}

// valueOf returns what a command line gives a flag, empty if it does not.
func valueOf(args []string, flag string) string {
	for i, arg := range args {
		if v, ok := strings.CutPrefix(arg, flag+"="); ok {
			return v
		}
		if arg == flag && i+1 < len(args) {
			return args[i+1]
		}
	}
	return ""
}

// idle waits until the child uses next to no processor time, which is when the store has
// merged what it wanted to merge, and returns what it has used until then.
func (c *child) idle(ctx context.Context) (time.Duration, error) {
	last, err := c.cpu()
	for quiet := 0; err == nil && quiet < cmp.Or(c.rest, 4); {
		select {
		case <-ctx.Done():
			return last, ctx.Err()
		case <-time.After(500 * time.Millisecond):
		}
		var now time.Duration
		if now, err = c.cpu(); now-last < 40*time.Millisecond {
			quiet++
		} else {
			quiet = 0
		}
		last = now
	}
	return last, err
}

// stop ends the child and waits for it.
func (c *child) stop() error {
	if err := c.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	if err := <-c.ended; err != nil {
		return fmt.Errorf("%s failed: %w", filepath.Base(c.cmd.Path), err)
	}
	if c.profiled == nil {
		return nil
	}
	if err := <-c.profiled; err != nil {
		return fmt.Errorf("profile of the server: %w", err)
	}
	return nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
