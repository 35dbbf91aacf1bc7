package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/procstat"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage"
)

func newBenchUses(s cli.Streams) *cobra.Command {
	var b usesBench
	var output string
	c := &cobra.Command{
		Use:   "uses",
		Short: "Make suggestions of what rollups count of a long time",
		Long: `Fill the tables of usage, without events, as a cluster would have that asked so much: its accesses are unevenly
those of its subjects, with names, in namespaces, each on one of the days. Then read what all subjects used and make every
suggestion, and the one for the subject with most accesses.

Printed are the time and CPU of one question, the rows it read, and the most memory of the process, in which the store is.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if b.accesses < 1000 || b.days < 1 || b.requests < int64(b.accesses) {
				return cli.ExitWith(cli.ExitUsage, errors.New("invalid --accesses, --days or --requests: want at least 1000, at least 1, "+
					"and at least one request an access"))
			}
			b.log = s.Err
			return measure(c, s, output, b.run)
		},
	}
	c.Args = cli.NoArgs
	c.Flags().IntVar(&b.accesses, "accesses", 1_000_000, "distinct accesses of the cluster")
	c.Flags().IntVar(&b.days, "days", 400, "days in which they were made")
	c.Flags().Int64Var(&b.requests, "requests", 1_000_000_000, "requests in all")
	cli.AddOutput(c, &output, "table", "json")
	return c
}

// usesBench is one run of the benchmark.
type usesBench struct {
	accesses, days int
	requests       int64
	log            io.Writer

	besides
}

// usesResult is what `bench uses -o json` prints.
type usesResult struct {
	Accesses    int                     `json:"accesses"`
	Days        int                     `json:"days"`
	Requests    int64                   `json:"requests"`
	Usage       tableSize               `json:"access_usage"`
	Suggestions int                     `json:"suggestions"`
	Questions   map[string]questionCost `json:"questions"`
	Memory      int64                   `json:"memory_bytes"` // the most of the process
	names       []string
}

// Of the cluster: the subjects, whose accesses are theirs unevenly, and the roles, each of which several hold.
const (
	usesSubjects = 2000
	usesRoles    = 100
)

// all are the accesses: the number and the subject of each.
func (b *usesBench) all() string {
	return fmt.Sprintf("(SELECT number AS i, toUInt64(%d * pow(cityHash64(i, 1) / 18446744073709551616., 3)) AS s, "+
		"cityHash64('access', i) AS access FROM numbers(%d))", usesSubjects, b.accesses)
}

func (b *usesBench) run(ctx context.Context) (r *usesResult, err error) {
	stores, done, err := openBesides(ctx, []string{"uses"})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	b.besides = stores
	began := time.Now()
	if err := b.fill(ctx); err != nil {
		return nil, err
	}
	fmt.Fprintf(b.log, "%d accesses after %.0f s; asking\n", b.accesses, time.Since(began).Seconds())
	r = &usesResult{Accesses: b.accesses, Days: b.days, Requests: b.requests, Questions: map[string]questionCost{}}
	rows, err := rawRows(ctx, b.engine, "SELECT sum(rows), sum(bytes_on_disk) FROM system.parts WHERE active AND database = 'uses' AND "+
		"table = 'access_usage'")
	if err != nil {
		return nil, err
	}
	r.Usage = tableSize{int64(numeric(rows[0][0])), int64(numeric(rows[0][1]))}
	st, err := b.policy()
	if err != nil {
		return nil, err
	}
	service := &query.Service{Store: ruled{b.stores[0], nil}, Replay: oneState{st}, Now: time.Now}
	for _, q := range []struct {
		name string
		query.SuggestRequest
	}{
		{"suggest, all subjects", query.SuggestRequest{Cluster: benchCluster, All: true}},
		{"suggest, the largest subject", query.SuggestRequest{Cluster: benchCluster, Subjects: []string{usesSubject(0)}}},
	} {
		costs, _, err := b.inTurn(ctx, asked{q.name, func(*storage.Store) (any, error) {
			a, err := service.Suggest(ctx, q.SuggestRequest)
			r.Suggestions = max(r.Suggestions, len(a.Suggestions))
			return nil, err
		}})
		if err != nil {
			return nil, err
		}
		r.Questions[q.name], r.names = costs[0], append(r.names, q.name)
	}
	r.Memory = procstat.Peak()
	return r, nil
}

// usesSubject returns the name of a subject, as daysName in SQL.
func usesSubject(n int) string { return fmt.Sprintf("system:serviceaccount:team-%d:app-%d", n%40, n) }

// What an access is, and who has it; a role allows all that its holders ask.
const (
	usesVerbs     = "['get', 'list', 'watch', 'create', 'update', 'patch', 'delete']"
	usesResources = "['pods', 'secrets', 'configmaps', 'services', 'events', 'endpoints', 'serviceaccounts', 'persistentvolumeclaims']"
	usesGranted   = `concat('["ClusterRoleBinding","","binding-', toString(s), '","ClusterRole","role-', toString(s % 100), ` +
		`'","ServiceAccount","team-', toString(s % 40), '","app-', toString(s), '",0]')`
)

// fill fills the tables as the views would.
func (b *usesBench) fill(ctx context.Context) error {
	used := fmt.Sprintf("(SELECT *, toDate('2026-11-20') - cityHash64(i, 3) %% %d AS day, toDateTime64(day, 6, 'UTC') + "+
		"toIntervalSecond(cityHash64(i, 4) %% 43200) AS first_seen, first_seen + toIntervalHour(3) AS last_seen, toInt64(1 + "+
		"cityHash64(i, 5) %% %d) AS count FROM %s)", b.days, 2*b.requests/int64(b.accesses)-1, b.all())
	for _, sql := range []string{
		"INSERT INTO uses.accesses SELECT '" + benchCluster + "', access, " + daysName + ", s, " + usesVerbs + "[1 + i % 7] AS verb, '', " +
			usesResources + "[1 + i % 8], '', concat('team-', toString(cityHash64(i, 6) % 40)), if(verb IN ('list', 'watch', 'create'), " +
			"'', concat('name-', toString(cityHash64(i, 7) % 5000))), '', today() FROM " + b.all(),
		"INSERT INTO uses.group_sets SELECT s, ['system:authenticated', concat('team-', toString(s % 40))], today() FROM " +
			"(SELECT DISTINCT s FROM " + b.all() + ")",
		"INSERT INTO uses.access_usage (cluster, day, access, recorded, replayed, outcome, class, kpart, ingest_day, count, first_seen, " +
			"last_seen) SELECT '" + benchCluster + "', day, access, 'allow', 'allow', 'match', '', 0, day, count, first_seen, last_seen " +
			"FROM " + used,
		"INSERT INTO uses.grant_usage (cluster, day, granted, access, kpart, ingest_day, count, first_seen, last_seen) SELECT '" +
			benchCluster + "', day, " + usesGranted + ", access, 0, day, count, first_seen, last_seen FROM " + used,
		"INSERT INTO uses.volume SELECT '" + benchCluster + "', toDateTime(day, 'UTC'), 'allow', 'allow', 'match', '', 0, day, " +
			"sum(count) FROM " + used + " GROUP BY day",
	} {
		if _, err := rawRows(ctx, b.engine, sql+" SETTINGS max_partitions_per_insert_block = 0, max_threads = 2"); err != nil {
			return err
		}
	}
	for _, table := range []string{"accesses", "group_sets", "access_usage", "grant_usage", "volume"} {
		if _, err := rawRows(ctx, b.engine, "OPTIMIZE TABLE uses."+table+" FINAL"); err != nil {
			return err
		}
	}
	return nil
}

// policy returns the state in which every subject holds a role everywhere, with its group.
func (b *usesBench) policy() (*state.State, error) {
	at := time.Date(2026, 11, 20, 0, 0, 0, 0, time.UTC).AddDate(0, 0, -b.days)
	snap := observe.Snapshot{Began: at, Ended: at, Since: at, Kinds: kept.Resources()}
	add := func(resource, name string, object any) error {
		raw, err := json.Marshal(object)
		n := fmt.Sprint(len(snap.Objects) + 1)
		snap.Objects = append(snap.Objects, observe.Observation{Source: observe.SourceSnapshot, Resource: resource, Name: name, UID: n,
			ResourceVersion: n, Object: raw, NotBefore: at, NotAfter: at})
		return err
	}
	for n := range usesRoles {
		name := fmt.Sprintf("role-%d", n)
		if err := add(kept.ClusterRoles, name, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{""}, Resources: []string{"*"}, Verbs: []string{"*"}}}}); err != nil {
			return nil, err
		}
	}
	for n := range usesSubjects {
		name := fmt.Sprintf("binding-%d", n)
		o := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: fmt.Sprintf("role-%d", n%usesRoles)},
			Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: fmt.Sprintf("team-%d", n%40), Name: fmt.Sprintf("app-%d", n)}}}
		if err := add(kept.ClusterRoleBindings, name, o); err != nil {
			return nil, err
		}
	}
	st := state.New(benchCluster)
	_, err := st.LoadSnapshot(snap)
	return st, err
}

func (r *usesResult) print(out io.Writer) error {
	fmt.Fprintf(out, "%d accesses in %d days, %d requests; access_usage %d rows, %.1f MB; suggestions %d; memory at most %.1f GB\n",
		r.Accesses, r.Days, r.Requests, r.Usage.Rows, float64(r.Usage.Bytes)/1e6, r.Suggestions, float64(r.Memory)/1e9)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for _, name := range r.names {
		c := r.Questions[name]
		fmt.Fprintf(w, "%s\t%.2f s\t%.2f s of CPU\t%d rows\n", name, c.Seconds, c.CPU, c.Rows)
	}
	return w.Flush()
}
