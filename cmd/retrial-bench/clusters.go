package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/replay/runner"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/test/workload"
	"github.com/retrial-io/retrial/verdict"
)

func newBenchClusters(s cli.Streams) *cobra.Command {
	var b clustersBench
	var output string
	c := &cobra.Command{
		Use:   "clusters",
		Short: "Ask about one cluster of a store that has one, and of a store that has many",
		Long: `Generate events of a cluster (the same for a seed) and insert them into two stores; the second is given
as many more clusters, each with accesses, groups and policy of its own. Then ask every question of
docs/questions.md, and what pages ask, about the one cluster: in turn in both stores, five times. The
answers have to be the same. What is printed is the CPU of one question, by the operating system, and
the rows and bytes it read. At last the loop that replays is started on the second store: as the one
process of all clusters, and as one of four that share twelve partitions, a cluster in one of them. What
is printed is the live heap of the process once it holds the policy it needs, and how long that took.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if b.rows < 1 || b.clusters < 2 {
				return cli.ExitWith(cli.ExitUsage, errors.New("invalid --rows or --clusters: want at least 1 and 2"))
			}
			b.log = s.Err
			return measure(c, s, output, b.run)
		},
	}
	c.Args = cli.NoArgs
	c.Flags().IntVar(&b.clusters, "clusters", 1000, "clusters in the second store")
	c.Flags().IntVar(&b.rows, "rows", 5000, "events of each")
	c.Flags().Uint64Var(&b.seed, "seed", 1, "seed of the generator")
	cli.AddOutput(c, &output, "table", "json")
	return c
}

// clustersBench is one run of the benchmark.
type clustersBench struct {
	clusters, rows int
	seed           uint64
	log            io.Writer

	besides // a store with one cluster, and one with many
}

// The databases of the two stores.
var clustersIn = [2]string{"one", "many"} //nolint:gochecknoglobals // constant table

// clustersResult is what `bench clusters -o json` prints.
type clustersResult struct {
	Clusters  int                        `json:"clusters"`
	Events    int                        `json:"events"` // of each
	Questions map[string][2]questionCost `json:"questions"`
	Held      [2]heldCost                `json:"held"` // by one process alone, and by one of several
}

func (b *clustersBench) run(ctx context.Context) (r *clustersResult, err error) {
	stores, done, err := openBesides(ctx, clustersIn[:])
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	b.besides = stores
	if err := b.fill(ctx); err != nil {
		return nil, err
	}
	began := time.Now()
	if err := b.multiply(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(b.log, "%d clusters after %.0f s; asking\n", b.clusters, time.Since(began).Seconds())
	r = &clustersResult{Clusters: b.clusters, Events: b.rows}
	if r.Questions, err = b.ask(ctx); err != nil {
		return nil, err
	}
	for i, partitions := range [...]int{benchPartitions, benchPartitions / heldShare} {
		if r.Held[i], err = b.hold(ctx, partitions); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// fill inserts the events and the policy of the one cluster into both stores.
func (b *clustersBench) fill(ctx context.Context) error {
	m, err := newRowMaker(b.seed)
	if err != nil {
		return err
	}
	for made := 0; made < b.rows; {
		rows, _ := m.block(min(benchBlock, b.rows-made))
		for _, s := range b.stores {
			if err := s.Insert(ctx, fmt.Sprint("bench-", made), rows); err != nil {
				return err
			}
		}
		made += len(rows)
	}
	snap, err := workload.Snapshot(workload.Config{Seed: b.seed})
	if err != nil {
		return err
	}
	versions := make([]verdict.PolicyVersion, len(snap.Objects))
	for i := range snap.Objects {
		versions[i] = runner.Version(benchCluster, &snap.Objects[i], snap.Ended, time.Date(2026, 11, 2, 6, 0, 0, 0, time.UTC))
		versions[i].Position = event.Position{Epoch: 1, Offset: int64(i)}
	}
	for _, s := range b.stores {
		if err := errors.Join(s.SavePolicy(ctx, versions), s.RollUp(ctx)); err != nil {
			return err
		}
	}
	return nil
}

// multiply gives the second store the other clusters. Views count their volume and marks.
func (b *clustersBench) multiply(ctx context.Context) error {
	own := map[string]string{ // what each cluster has of its own
		"cluster":        "concat('" + benchCluster + "-', toString(other))",
		"access":         "cityHash64(access, other)",
		"implied_access": "arrayMap(a -> if(a = 0, 0, cityHash64(a, other)), implied_access)",
		"group_set":      "if(group_set >= 18446744073709551614, group_set, cityHash64(group_set, other))",
	}
	for _, table := range []string{"events", "accesses", "group_sets", "access_usage", "grant_usage", "activity", "unmatched", "objects",
		"policy_objects"} {
		columns, err := rawRows(ctx, b.engine, "SELECT name FROM system.columns WHERE database = 'one' AND table = '"+table+
			"' AND default_kind IN ('', 'DEFAULT') ORDER BY position")
		if err != nil {
			return err
		}
		var names, values []string
		for _, c := range columns {
			value := c[0]
			if v, ok := own[value]; ok {
				value = v
			}
			if table == "events" && value == "kpart" {
				value = fmt.Sprintf("toInt32(other %% %d)", benchPartitions)
			}
			names, values = append(names, c[0]), append(values, value)
		}
		if _, err := rawRows(ctx, b.engine, fmt.Sprintf("INSERT INTO many.%s (%s) SELECT %s FROM one.%[1]s "+
			"ARRAY JOIN range(1, %[4]d) AS other SETTINGS max_block_size = 128, max_threads = 2, max_partitions_per_insert_block = 0, "+
			"insert_deduplicate = 0, optimize_on_insert = 0",
			table, strings.Join(names, ", "), strings.Join(values, ", "), b.clusters)); err != nil {
			return err
		}
	}
	for _, database := range clustersIn {
		tables, err := rawRows(ctx, b.engine, "SELECT name FROM system.tables WHERE engine LIKE '%MergeTree' AND database = '"+database+"'")
		if err != nil {
			return err
		}
		for _, t := range tables {
			if _, err := rawRows(ctx, b.engine, "OPTIMIZE TABLE "+database+"."+t[0]+" FINAL"); err != nil {
				return err
			}
		}
	}
	return nil
}

// questions returns what is asked: the named questions, and what pages ask of rollups and events.
func (b *clustersBench) questions(ctx context.Context) ([]asked, error) {
	facts, err := rawRows(ctx, b.engine, "SELECT argMax(user_name, request_received), argMax(toString(audit_uuid), request_received), "+
		"maxIf(credential, credential LIKE 'JTI=%') FROM one.events WHERE user_name LIKE 'system:serviceaccount:%'")
	if err != nil {
		return nil, err
	}
	if len(facts) == 0 || facts[0][2] == "" {
		return nil, errors.New("no service account made a request: generate more rows")
	}
	subject := facts[0][0]
	common := map[string]string{"subject": subject, "credential": facts[0][2], "id": facts[0][1], "resource": "secrets",
		"namespace": "ads-prod", "name": "sync-config-0", "role": "engineer"}
	var out []asked
	for _, q := range queries.Questions() {
		values := map[string]string{}
		for _, p := range q.Params {
			if v, ok := common[p.Name]; ok && !(q.Name == "role-usage" && p.Name == "namespace") {
				values[p.Name] = v
			}
		}
		out = append(out, askedByName(ctx, q.Name, values))
	}
	var none time.Time
	return append(out,
		asked{"(first page)", func(s *storage.Store) (any, error) {
			return s.Overview(ctx, benchCluster, time.Unix(0, 0), time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC))
		}},
		asked{"(list)", func(s *storage.Store) (any, error) {
			rows, err := s.Events(ctx, queries.EventFilter{Cluster: benchCluster, Judged: true})
			return len(rows), err
		}},
		asked{"(a subject)", func(s *storage.Store) (any, error) {
			return s.SubjectUsage(ctx, benchCluster, subject, none, none, 100)
		}},
		asked{"(its groups)", func(s *storage.Store) (any, error) {
			groups, last, _, err := s.LastGroups(ctx, benchCluster, subject, none)
			return fmt.Sprint(groups, last), err
		}},
		asked{"(names like it)", func(s *storage.Store) (any, error) { return s.NearSubjects(ctx, benchCluster, subject+"x", 5) }},
	), nil
}

// ask asks every question in both stores, in turn.
func (b *clustersBench) ask(ctx context.Context) (map[string][2]questionCost, error) {
	list, err := b.questions(ctx)
	if err != nil {
		return nil, err
	}
	out := map[string][2]questionCost{}
	for _, q := range list {
		costs, answers, err := b.inTurn(ctx, q)
		if err != nil {
			return nil, err
		}
		if answers[0] != answers[1] {
			return nil, fmt.Errorf("%s: the answer is not that of the store with one cluster: %.200s, and %.200s", q.name, answers[0],
				answers[1])
		}
		out[q.name] = [2]questionCost(costs)
	}
	return out, nil
}

func (r *clustersResult) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "%d events of a cluster\tone cluster\t\t%d clusters\t\tCPU\trows\n", r.Events, r.Clusters)
	var sum [2]float64
	for _, name := range slices.Sorted(maps.Keys(r.Questions)) {
		c := r.Questions[name]
		fmt.Fprintf(w, "%s\t%.1f ms CPU\t%d rows\t%.1f ms CPU\t%d rows\t%.2f x\t%.2f x\n", name, 1e3*c[0].CPU, c[0].Rows, 1e3*c[1].CPU,
			c[1].Rows, c[1].CPU/c[0].CPU, float64(c[1].Rows)/float64(max(c[0].Rows, 1)))
		sum[0], sum[1] = sum[0]+c[0].CPU, sum[1]+c[1].CPU
	}
	fmt.Fprintf(w, "all of them\t%.1f ms CPU\t\t%.1f ms CPU\t\t%.2f x\n", 1e3*sum[0], 1e3*sum[1], sum[1]/sum[0])
	if err := w.Flush(); err != nil {
		return err
	}
	alone, share := r.Held[0], r.Held[1]
	for _, c := range r.Held {
		fmt.Fprintf(w, "a process with %d of %d partitions\t%d clusters\t%.0f MB of heap\tafter %.1f s\t%.1f s CPU\n", c.Partitions,
			benchPartitions, c.Clusters, c.HeapMB, c.Seconds, c.CPU)
	}
	fmt.Fprintf(w, "one of %d beside one alone\t%.2f x\t%.2f x\t%.2f x\t%.2f x\n", heldShare,
		float64(share.Clusters)/float64(alone.Clusters), share.HeapMB/alone.HeapMB, share.Seconds/alone.Seconds, share.CPU/alone.CPU)
	return w.Flush()
}
