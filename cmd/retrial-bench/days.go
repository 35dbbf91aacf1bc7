package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/queries"
)

func newBenchDays(s cli.Streams) *cobra.Command {
	var b daysBench
	var output string
	c := &cobra.Command{
		Use:   "days",
		Short: "Ask about usage of 30, 100 and 400 days, and of rollups that have no days",
		Long: `Fill the tables of usage, without events, for one cluster and others a twentieth of its size (the same every
time): its accesses are unevenly those of its subjects, and each is made on a share of the days, a third on average.
Then ask what reads usage over all days, in turn in four stores, five times:

  days      the tables as they are, a row a day
  subject   the same, with the accesses of a subject beside each other in the order of the tables
  months    a row a month of ingestion, as a rollup without days would have that forgets month by month
  none      one row, as one would have that forgets nothing

The answers have to be the same. What is printed is the time and CPU of one question, and the rows it read.`,
		RunE: func(c *cobra.Command, _ []string) error {
			if b.accesses < 1000 || b.others < 0 || len(b.days) == 0 || !slices.IsSorted(b.days) || b.days[0] < 1 {
				return cli.ExitWith(cli.ExitUsage, errors.New("invalid --accesses, --others or --days: want at least 1000, at least 0, "+
					"and rising numbers"))
			}
			b.log = s.Err
			return measure(c, s, output, b.run)
		},
	}
	c.Args = cli.NoArgs
	c.Flags().IntVar(&b.accesses, "accesses", 20_000, "accesses of the cluster")
	c.Flags().IntVar(&b.others, "others", 50, "other clusters")
	c.Flags().IntSliceVar(&b.days, "days", []int{30, 100, 400}, "ask when there is usage of so many days")
	cli.AddOutput(c, &output, "table", "json")
	return c
}

// daysBench is one run of the benchmark.
type daysBench struct {
	accesses, others int
	days             []int
	log              io.Writer

	besides
}

// daysIn are the databases of the stores.
var daysIn = [...]string{"days", "subject", "months", "none"} //nolint:gochecknoglobals // constant table

// The subjects of a cluster, and what its usage is asked about: the subject with most accesses, and one of the middle.
const (
	daysSubjects = 500
	daysLargest  = 0
	daysMiddling = 250
)

// daysResult is what `bench days -o json` prints.
type daysResult struct {
	Accesses int        `json:"accesses"` // of the cluster asked about
	Others   int        `json:"others"`   // clusters
	After    []daysCost `json:"after"`
}

// daysCost is what questions cost with so many days stored, and what the tables are like.
type daysCost struct {
	Days      int                                  `json:"days"`
	Usage     [len(daysIn)]tableSize               `json:"access_usage"`
	Grants    [len(daysIn)]tableSize               `json:"grant_usage"`
	Questions map[string][len(daysIn)]questionCost `json:"questions"`
	names     []string
}

// tableSize is how large a table is.
type tableSize struct{ Rows, Bytes int64 }

func (b *daysBench) run(ctx context.Context) (r *daysResult, err error) {
	stores, done, err := openBesides(ctx, daysIn[:])
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	b.besides = stores
	for _, database := range daysIn {
		if err := b.accessesOf(ctx, database); err != nil {
			return nil, err
		}
	}
	r = &daysResult{Accesses: b.accesses, Others: b.others}
	had := 0
	for _, days := range b.days {
		began := time.Now()
		if err := b.grow(ctx, had, days); err != nil {
			return nil, err
		}
		had = days
		fmt.Fprintf(b.log, "%d days after %.0f s; asking\n", days, time.Since(began).Seconds())
		cost, err := b.ask(ctx, days)
		if err != nil {
			return nil, err
		}
		r.After = append(r.After, *cost)
	}
	return r, nil
}

// Of the access i of the cluster k: the number and the name of who makes it, and on which share of the days.
const (
	daysSubject = "toUInt64(500 * pow(cityHash64(i, 1) / 18446744073709551616., 3))"
	daysShare   = "pow(cityHash64(i, 2) / 18446744073709551616., 2)"
	daysName    = "concat('system:serviceaccount:team-', toString(s % 40), ':app-', toString(s))"
)

// all are all accesses of all clusters, in blocks that stay small when each is multiplied by days.
func (b *daysBench) all() string {
	return fmt.Sprintf("(SELECT if(number < %[1]d, 0, 1 + intDiv(number - %[1]d, %[2]d)) AS k, if(number < %[1]d, number, "+
		"(number - %[1]d) %% %[2]d) AS i, if(k = 0, '%[3]s', concat('%[3]s-', toString(k))) AS cluster, %[4]s AS s FROM numbers(%[5]d))",
		b.accesses, b.accesses/20, benchCluster, daysSubject, b.accesses+b.others*(b.accesses/20))
}

const daysSettings = " SETTINGS max_threads = 2, max_block_size = 1024, max_partitions_per_insert_block = 0, insert_deduplicate = 0, " +
	"optimize_on_insert = 0, min_insert_block_size_rows = 1048576, min_insert_block_size_bytes = 0"

// accessesOf names the accesses, the groups and the bindings of a store.
func (b *daysBench) accessesOf(ctx context.Context, database string) error {
	for _, sql := range []string{
		"INSERT INTO {database}.accesses SELECT cluster, {access} AS access, " + daysName + " AS subject, s AS group_set, " +
			"['get', 'list', 'watch', 'create', 'update', 'patch', 'delete'][1 + i % 7] AS verb, '' AS api_group, " +
			"['pods', 'secrets', 'configmaps', 'services', 'events'][1 + i % 5] AS resource, '' AS subresource, " +
			"concat('team-', toString(i % 40)) AS namespace, concat('name-', toString(i % 3000)) AS name, '' AS path, today() AS seen " +
			"FROM {all}" + daysSettings,
		"INSERT INTO {database}.group_sets SELECT s AS group_set, ['system:authenticated', concat('team-', toString(s % 40))], today() " +
			"FROM (SELECT DISTINCT s FROM {all})" + daysSettings,
		"INSERT INTO {database}.policy_objects (cluster, resource, name, uid, resource_version, observation, observed) SELECT DISTINCT " +
			"cluster, 'clusterrolebindings.rbac.authorization.k8s.io', concat(kind, '-', toString(s)) AS name, name, '1', '{}', now64(6) " +
			"FROM {all} AS named ARRAY JOIN ['binding', 'unused'] AS kind" + daysSettings,
	} {
		if err := b.insert(ctx, database, sql); err != nil {
			return err
		}
	}
	return nil
}

// insert runs a statement on a store: {all} are all accesses, {access} is the number of one.
func (b *daysBench) insert(ctx context.Context, database, sql string) error {
	number := "cityHash64(k, i)"
	if database == "subject" {
		number = "(s * 4294967296 + i)" // in the order of subjects
	}
	_, err := rawRows(ctx, b.engine, strings.NewReplacer("{database}", database, "{all}", b.all(), "{access}", number).Replace(sql))
	return err
}

// grow adds the usage of the days before the newest ones that there are, and sums it up without days again.
func (b *daysBench) grow(ctx context.Context, had, days int) error {
	const seen = "toDateTime64(day, 6, 'UTC') + toIntervalSecond(cityHash64(k, i, d) % 43200)"
	used := fmt.Sprintf("(SELECT *, toDate('2026-11-20') - d AS day, %s AS first_seen, first_seen + toIntervalHour(3) AS last_seen, "+
		"toInt64(1 + cityHash64(d, i) %% 30) AS count FROM %s ARRAY JOIN range(%d, %d) AS d "+
		"WHERE cityHash64(k, i, d) / 18446744073709551616. < %s)", seen, b.all(), had, days, daysShare)
	const granted = `concat('["ClusterRoleBinding","","binding-', toString(s), '","ClusterRole","role-', toString(s % 50), ` +
		`'","ServiceAccount","team-', toString(s % 40), '","app-', toString(s), '",', toString(i % 10), ']')`
	for _, database := range daysIn[:2] {
		for _, sql := range []string{
			"INSERT INTO {database}.access_usage (cluster, day, access, recorded, replayed, outcome, class, kpart, ingest_day, count, " +
				"first_seen, last_seen) SELECT cluster, day, {access}, if(i % 10 = 0, 'forbid', 'allow') AS recorded, recorded, 'match', " +
				"'', 0, day, count, first_seen, last_seen FROM " + used + daysSettings,
			"INSERT INTO {database}.grant_usage (cluster, day, granted, access, kpart, ingest_day, count, first_seen, last_seen) " +
				"SELECT cluster, day, " + granted + ", {access}, 0, day, count, first_seen, last_seen FROM " + used +
				" WHERE i % 10 != 0" + daysSettings,
		} {
			if err := b.insert(ctx, database, sql); err != nil {
				return err
			}
		}
	}
	for database, day := range map[string]string{"months": "toLastDayOfMonth(usage.ingest_day)", "none": "toDate('2026-11-20')"} {
		for table, keys := range map[string]string{"access_usage": "cluster, access, recorded, replayed, outcome, class, kpart",
			"grant_usage": "cluster, granted, access, kpart"} {
			for _, sql := range []string{
				"TRUNCATE TABLE %[1]s.%[2]s",
				"INSERT INTO %[1]s.%[2]s (%[3]s, day, ingest_day, count, first_seen, last_seen) SELECT %[3]s, %[4]s AS last_day, " +
					"last_day, sum(count), min(first_seen), max(last_seen) FROM days.%[2]s AS usage GROUP BY %[3]s, last_day" +
					daysSettings,
			} {
				if _, err := rawRows(ctx, b.engine, fmt.Sprintf(sql, database, table, keys, day)); err != nil {
					return err
				}
			}
		}
	}
	for _, database := range daysIn {
		for _, table := range []string{"accesses", "group_sets", "access_usage", "grant_usage", "policy_objects"} {
			if _, err := rawRows(ctx, b.engine, "OPTIMIZE TABLE "+database+"."+table+" FINAL"); err != nil {
				return err
			}
		}
	}
	return nil
}

// questions returns what is asked.
func (b *daysBench) questions(ctx context.Context) []asked {
	var out []asked
	for _, q := range queries.Questions() {
		if !slices.Contains([]string{"denials", "first-seen", "grants-never-used", "role-usage", "secrets-read", "top-users", "top-verbs"},
			q.Name) {
			continue
		}
		values := map[string]string{}
		if q.Name == "role-usage" {
			values["role"] = "role-0"
		}
		out = append(out, askedByName(ctx, q.Name, values))
	}
	var none time.Time
	for _, who := range []struct {
		name   string
		number int
	}{{"the largest", daysLargest}, {"a middling", daysMiddling}} {
		subject := usesSubject(who.number)
		out = append(out,
			asked{"(" + who.name + " subject)", func(s *storage.Store) (any, error) {
				return s.SubjectUsage(ctx, benchCluster, subject, none, none, 1000)
			}},
			asked{"(" + who.name + " subject's groups)", func(s *storage.Store) (any, error) {
				groups, last, _, err := s.LastGroups(ctx, benchCluster, subject, none)
				return fmt.Sprint(groups, last), err
			}})
	}
	return append(out, asked{"(names like one)", func(s *storage.Store) (any, error) {
		return s.NearSubjects(ctx, benchCluster, "system:serviceaccount:team-1:app-1x", 5)
	}})
}

// ask asks every question in all stores, in turn.
func (b *daysBench) ask(ctx context.Context, days int) (*daysCost, error) {
	out := &daysCost{Days: days, Questions: map[string][len(daysIn)]questionCost{}}
	for i, database := range daysIn {
		for table, size := range map[string]*tableSize{"access_usage": &out.Usage[i], "grant_usage": &out.Grants[i]} {
			rows, err := rawRows(ctx, b.engine, "SELECT sum(rows), sum(bytes_on_disk) FROM system.parts WHERE active AND database = '"+
				database+"' AND table = '"+table+"'")
			if err != nil {
				return nil, err
			}
			size.Rows, size.Bytes = int64(numeric(rows[0][0])), int64(numeric(rows[0][1]))
		}
	}
	for _, q := range b.questions(ctx) {
		costs, answers, err := b.inTurn(ctx, q)
		if err != nil {
			return nil, err
		}
		for i, answer := range answers {
			if answer != answers[0] && q.name != "first-seen" { // ties are in the order of numbers
				return nil, fmt.Errorf("%s: the answer of %s is not that of %s: %.300s, and %.300s", q.name, daysIn[i], daysIn[0], answer,
					answers[0])
			}
		}
		out.Questions[q.name], out.names = [len(daysIn)]questionCost(costs), append(out.names, q.name)
	}
	return out, nil
}

func (r *daysResult) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	for i := range r.After {
		a := &r.After[i]
		fmt.Fprintf(w, "%d days\t%s\n", a.Days, strings.Join(daysIn[:], "\t"))
		for _, t := range []struct {
			name  string
			sizes [len(daysIn)]tableSize
		}{{"access_usage", a.Usage}, {"grant_usage", a.Grants}} {
			fmt.Fprint(w, t.name)
			for _, size := range t.sizes {
				fmt.Fprintf(w, "\t%d rows, %.1f MB", size.Rows, float64(size.Bytes)/1e6)
			}
			fmt.Fprintln(w)
		}
		for _, name := range a.names {
			fmt.Fprint(w, name)
			for _, c := range a.Questions[name] {
				fmt.Fprintf(w, "\t%.0f ms, %.0f ms CPU, %d rows", 1e3*c.Seconds, 1e3*c.CPU, c.Rows)
			}
			fmt.Fprintln(w)
		}
		fmt.Fprintln(w)
	}
	return w.Flush()
}
