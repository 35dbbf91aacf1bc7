package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"runtime"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/procstat"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/test/workload"
)

// What parts cost, as docs/bench.md and docs/storage.md have measured it; flags take the place of most.
const (
	versionBytes  = 654     // of memory, a version of an object: docs/bench.md, RBAC in time
	versionLoad   = 12e-6   // seconds on the clock that a process takes to read a version at its start: docs/bench.md, Start
	laneRate      = 55_000  // events a second of one partition, whatever the machine: docs/capacity.md
	readerRate    = 5_000   // records of audit.policy a second that a process takes in: docs/adr/0041
	blockBytes    = 700e6   // of memory of a process that replays, beside states: blocks under way, the heap's headroom
	ingestBytes   = 200e6   // of memory of a process that receives
	horizonDays   = 2       // that a replaced role or binding is held for beyond the events: docs/adr/0096
	policyBytes   = 1_500.0 // of a version in the log and on disk
	kafkaDays     = 7       // that topics are kept
	brokerRate    = 100e6   // bytes a second that a broker is taken to write; not measured
	busy          = 0.6     // of a processor: the rest is for peaks, merges and the loss of a machine
	startLimit    = 300.0   // seconds that the events of a process may wait at its start
	defaultMemory = 64      // GB of a machine
)

func newBenchCapacity(s cli.Streams) *cobra.Command {
	var c capacity
	var output string
	cmd := &cobra.Command{
		Use:   "capacity",
		Short: "Work out machines for your own rates, and what breaks first",
		Long: `Work out from measured costs how many machines receive, replay, hold Kafka and the store for a number
of events a second from a number of clusters, and by how much each limit is reached. The costs are
those of docs/bench.md, from two virtual processors of an AMD EPYC; retrial bench pipeline measures
your own, which --ingest-cost, --replay-cost and --store-cost take. What the policy of a cluster
takes of memory is measured now, unless --cluster-mb says it: states of generated clusters are loaded.`,
		RunE: func(*cobra.Command, []string) error {
			if err := c.check(); err != nil {
				return cli.ExitWith(cli.ExitUsage, err)
			}
			if c.ClusterMB == 0 {
				var err error
				if c.ClusterMB, c.ClusterLoad, err = measureState(); err != nil {
					return err
				}
			}
			p := c.plan()
			return show(s, output, p)
		},
	}
	cmd.Args = cli.NoArgs
	f := cmd.Flags()
	f.Float64Var(&c.Events, "events", 500_000, "events a second, of all clusters together")
	f.IntVar(&c.Clusters, "clusters", 1000, "clusters")
	f.Float64Var(&c.Writes, "policy-writes", 1000, "writes of roles, bindings, pods and credentials a day that are kept, of one cluster")
	f.Float64Var(&c.Replacing, "replacing-writes", 0,
		"of these, writes that replace a role or a binding: what they replace is held for --event-days")
	f.IntVar(&c.PolicyDays, "policy-days", 431, "days for which processes hold the policy: a month more than --retention-rollups of serve")
	f.IntVar(&c.EventDays, "event-days", 30, "days for which events are kept")
	f.Float64Var(&c.Questions, "questions", 1, "questions a second")
	f.IntVar(&c.Cores, "cores", 16, "processors of a machine")
	f.Float64Var(&c.MemoryGB, "memory", defaultMemory, "GB of memory of a machine")
	f.IntVar(&c.Replicas, "replicas", 3, "copies that Kafka keeps")
	f.Float64Var(&c.ClusterMB, "cluster-mb", 0, "MB that the policy of a cluster takes without its history; 0: measured now")
	f.Float64Var(&c.IngestCost, "ingest-cost", 7.5, "µs of CPU an event to receive it")
	f.Float64Var(&c.ReplayCost, "replay-cost", 20, "µs of CPU an event to judge it")
	f.Float64Var(&c.StoreCost, "store-cost", 40, "µs of CPU an event to store it, rollups and merges included")
	f.Float64Var(&c.QuestionCost, "question-cost", 150, "ms of CPU a question")
	f.Float64Var(&c.LogBytes, "log-bytes", 250, "bytes an event in Kafka, of one copy")
	f.Float64Var(&c.StoreBytes, "store-bytes", 165, "bytes an event in the store")
	cli.AddOutput(cmd, &output, "table", "json")
	return cmd
}

// capacity is what is asked for, and what it costs.
type capacity struct {
	Events       float64 `json:"events_per_second"`
	Clusters     int     `json:"clusters"`
	Writes       float64 `json:"policy_writes_per_day"`
	Replacing    float64 `json:"replacing_writes_per_day"` // of Writes
	PolicyDays   int     `json:"policy_days"`
	EventDays    int     `json:"event_days"`
	Questions    float64 `json:"questions_per_second"`
	Cores        int     `json:"cores"`
	MemoryGB     float64 `json:"memory_gb"`
	Replicas     int     `json:"replicas"`
	ClusterMB    float64 `json:"cluster_mb"`
	ClusterLoad  float64 `json:"cluster_load_seconds,omitempty"` // CPU; measured
	IngestCost   float64 `json:"ingest_us_per_event"`
	ReplayCost   float64 `json:"replay_us_per_event"`
	StoreCost    float64 `json:"store_us_per_event"`
	QuestionCost float64 `json:"question_ms"`
	LogBytes     float64 `json:"log_bytes_per_event"`
	StoreBytes   float64 `json:"store_bytes_per_event"`
}

func (c *capacity) check() error {
	if c.Events <= 0 || c.Clusters < 1 || c.Cores < 1 || c.MemoryGB <= 0 || c.Replicas < 1 || c.PolicyDays < 1 || c.EventDays < 1 {
		return errors.New("invalid --events, --clusters, --cores, --memory, --replicas or days: want more than nothing")
	}
	if c.Replacing > c.Writes {
		return fmt.Errorf("invalid --replacing-writes %v: want at most the %v of --policy-writes", c.Replacing, c.Writes)
	}
	for _, v := range []float64{c.Writes, c.Replacing, c.Questions, c.ClusterMB, c.IngestCost, c.ReplayCost, c.StoreCost, c.QuestionCost,
		c.LogBytes, c.StoreBytes} {
		if v < 0 || math.IsNaN(v) || math.IsInf(v, 0) {
			return fmt.Errorf("invalid cost or rate %v: want a number of at least 0", v)
		}
	}
	return nil
}

// share is what one kind of machine has to do.
type share struct {
	Name     string  `json:"name"`
	Cores    float64 `json:"cores"` // busy, on the mean
	Machines int     `json:"machines"`
	MemoryGB float64 `json:"memory_gb"` // of each
	DiskTB   float64 `json:"disk_tb"`   // of all
}

// limit is something that cannot be had by more machines.
type limit struct {
	Name  string  `json:"name"`
	Used  float64 `json:"used"` // of the limit; above 1 it breaks
	About string  `json:"about"`
}

// plan is what `bench capacity -o json` prints.
type plan struct {
	Asked      capacity `json:"asked"`
	Partitions int      `json:"partitions"` // of audit.events, at least
	Shares     []share  `json:"shares"`
	Limits     []limit  `json:"limits"` // the one that breaks first first
}

// versions returns how many versions of objects a cluster has in the policy table, and how many of them a process holds.
func (c *capacity) versions() (stored, held float64) {
	days := float64(c.PolicyDays)
	return c.Writes * days, (c.Writes-c.Replacing)*days + c.Replacing*min(days, float64(c.EventDays)+horizonDays)
}

// plan works it out.
func (c *capacity) plan() plan {
	perSecond := func(cost float64) float64 { return c.Events * cost / 1e6 }
	machines := func(cores float64) int { return max(1, int(math.Ceil(cores/(float64(c.Cores)*busy)))) }
	stored, kept := c.versions()
	versions := float64(c.Clusters) * stored
	states := float64(c.Clusters) * (c.ClusterMB*1e6 + kept*versionBytes)
	policyRate := float64(c.Clusters) * c.Writes / 86400
	day := c.Events * 86400

	receive, judge := perSecond(c.IngestCost), perSecond(c.ReplayCost)
	store := perSecond(c.StoreCost) + c.Questions*c.QuestionCost/1e3
	log := c.Events * c.LogBytes * float64(c.Replicas)
	start := versions*versionLoad + float64(c.Clusters)*c.ClusterLoad
	// Of the processes that replay each holds the clusters of its partitions; one cluster cannot be parted.
	replays := max(machines(judge), min(c.Clusters, int(math.Ceil(max(2*states/max(c.MemoryGB*1e9-blockBytes, 1), start/startLimit)))))
	held := max(states/float64(replays), states/float64(c.Clusters))
	p := plan{Asked: *c, Partitions: max(1, int(math.Ceil(c.Events/(laneRate*busy)))), Shares: []share{
		{"receive (retrial ingest)", receive, machines(receive), ingestBytes / 1e9, 0},
		{"Kafka", 0, max(int(math.Ceil(log/brokerRate)), c.Replicas), 0, log * kafkaDays * 86400 / 1e12},
		{"replay (retrial replay)", judge, replays, (2*held + blockBytes) / 1e9, 0},
		{"store (ClickHouse)", store, machines(store), 0, (day*float64(c.EventDays)*c.StoreBytes + versions*policyBytes) / 1e12},
	}}
	p.Partitions = max(p.Partitions, p.Shares[2].Machines)
	start *= held / states
	p.Limits = []limit{
		{"memory of a process that replays", (2*held + blockBytes) / (c.MemoryGB * 1e9),
			fmt.Sprintf("%.1f GB of policy, doubled by the collector: that of its part of the clusters", held/1e9)},
		{"start of a process that replays", start / startLimit,
			fmt.Sprintf("%.0f s until %.1f million versions are read, for which its events wait; at most %.0f s", start,
				versions*held/states/1e6, startLimit)},
		{"policy that each process takes in", policyRate / readerRate,
			fmt.Sprintf("%.1f records a second, of %d that one can", policyRate, readerRate)},
		{"one partition", c.Events / float64(p.Partitions) / laneRate,
			fmt.Sprintf("%.0f events a second in each of %d, of %d that one can", c.Events/float64(p.Partitions), p.Partitions, laneRate)},
		{"processors of a machine", max(receive/float64(p.Shares[0].Machines), judge/float64(p.Shares[2].Machines),
			store/float64(p.Shares[3].Machines)) / float64(c.Cores), "the busiest of those above"},
	}
	slices.SortStableFunc(p.Limits, func(a, b limit) int { return cmp.Compare(b.Used, a.Used) })
	return p
}

func (p plan) print(out io.Writer) error {
	c := p.Asked
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "%.0f events/s, clusters: %d, machines of %d processors and %.0f GB\n", c.Events, c.Clusters, c.Cores, c.MemoryGB)
	fmt.Fprintf(w, "a million events\t%.1f s of CPU to receive, %.1f to judge, %.1f to store; %.0f MB on disk\n", c.IngestCost,
		c.ReplayCost, c.StoreCost, c.StoreBytes)
	_, kept := c.versions()
	fmt.Fprintf(w, "a cluster\t%.1f MB of policy, and %d bytes a write: %.1f MB with %d days of %.0f\n", c.ClusterMB, versionBytes,
		c.ClusterMB+kept*versionBytes/1e6, c.PolicyDays, c.Writes)
	fmt.Fprintf(w, "a question\t%.0f ms of CPU\n\n", c.QuestionCost)
	fmt.Fprintf(w, "to\tmachines\tprocessors busy\tmemory of each\tdisk of all\n")
	of := func(v float64, unit string) string {
		if v == 0 {
			return "-"
		}
		return fmt.Sprintf("%.1f %s", v, unit)
	}
	for _, s := range p.Shares {
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", s.Name, s.Machines, of(s.Cores, ""), of(s.MemoryGB, "GB"), of(s.DiskTB, "TB"))
	}
	fmt.Fprintf(w, "partitions of audit.events\t%d at least\n\nwhat breaks first\tof its limit\n", p.Partitions)
	for _, l := range p.Limits {
		fmt.Fprintf(w, "%s\t%.0f %%\t%s\n", l.Name, 100*l.Used, l.About)
	}
	return w.Flush()
}

// measuredStates is how many generated clusters are loaded to learn what one takes.
const measuredStates = 24

// measureState returns what the policy of a generated cluster takes of the heap, in MB, and of CPU until it is loaded and was asked once.
func measureState() (mb, seconds float64, err error) {
	heap := func() float64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	}
	var states [measuredStates]*state.State
	before, used := 0.0, time.Duration(0)
	for i := range states {
		snap, err := workload.Snapshot(workload.Config{Seed: uint64(i) + 1})
		if err != nil {
			return 0, 0, err
		}
		if i == 1 { // the first has what all share
			before = heap()
		}
		cpu := procstat.Own()
		states[i] = state.New(fmt.Sprint("cluster-", i))
		if _, err := states[i].LoadSnapshot(snap); err != nil {
			return 0, 0, fmt.Errorf("load a generated policy: %w", err)
		}
		states[i].RBACWindow(time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC), time.Date(2026, 11, 2, 6, 0, 1, 0, time.UTC))
		used += procstat.Own() - cpu
	}
	after := heap()
	runtime.KeepAlive(states)
	return max(after-before, 0) / (measuredStates - 1) / 1e6, used.Seconds() / measuredStates, nil
}
