package storage

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// filledKey is the prefix of the entries of meta that name the rollups into which older events have been counted.
const filledKey = "rollup filled "

// late are the rollups that were added when stores existed already, and that are queried without waiting for a recovery.
var late = []string{"activity", "unmatched", "objects", "arrivals", "halves", "refused"} //nolint:gochecknoglobals // constant table

// fill counts stored events into rollups that are new to the store, once. Like Recover it goes by state, so it may be interrupted and
// repeated. Days whose events are gone cannot be counted.
func (s *Store) fill(ctx context.Context) error {
	if err := s.fillAccesses(ctx); err != nil {
		return fmt.Errorf("fill accesses of each cluster: %w", err)
	}
	filled, err := statement.Collect(ctx, s.at(),
		"SELECT DISTINCT substring(key, length('"+filledKey+"') + 1) FROM %s.meta WHERE startsWith(key, '"+filledKey+"')", nil,
		func(name *string) ([]any, func()) { return []any{name}, nil })
	if err != nil {
		return fmt.Errorf("read filled rollups: %w", err)
	}
	done := map[string]bool{}
	for _, name := range filled {
		done[name] = true
	}
	for _, table := range late {
		if done[table] {
			continue
		}
		if err := s.fillRollup(ctx, table); err != nil {
			return fmt.Errorf("fill %s: %w", table, err)
		}
		if err := s.remember(ctx, filledKey+table, ""); err != nil {
			return fmt.Errorf("note that %s is filled: %w", table, err)
		}
	}
	return nil
}

func (s *Store) fillRollup(ctx context.Context, table string) error {
	p, err := s.recoverParams(ctx, nil)
	if err != nil {
		return err
	}
	days, err := statement.Collect(ctx, s.at(), "SELECT DISTINCT toUInt16(day) FROM %s.events ORDER BY 1", nil,
		func(d *uint16) ([]any, func()) { return []any{d}, nil })
	if err != nil {
		return err
	}
	partitions := []string{""} // all together
	if !s.alone() {
		if partitions, err = statement.Collect(ctx, s.at(), "SELECT DISTINCT toString(kpart) FROM %s.events", nil,
			func(p *string) ([]any, func()) { return []any{p}, nil }); err != nil {
			return err
		}
	}
	for _, partition := range partitions {
		s.cfg.Log.Info("counting stored events in a new rollup", zap.String("table", table),
			zap.String("partition", cmp.Or(partition, "all")))
		if partition != "" {
			p["kpart"] = partition
		}
		for _, day := range days { // a comparison of all of them may have more keys than fit in memory
			p["days"] = statement.Numbers([]uint16{day})
			for i := range rollups {
				if rollups[i].table == table {
					if _, err := s.mend(ctx, &rollups[i], p); err != nil {
						return err
					}
				}
			}
		}
	}
	return nil
}

// accessesBefore is the table of accesses of releases whose accesses were of no cluster.
const accessesBefore = "accesses_before"

// fillAccesses moves the accesses of an earlier release to the clusters that made them, and then takes in those of events that are in
// neither table. Each step adds what is there or not, so all may be repeated, by several processes too.
func (s *Store) fillAccesses(ctx context.Context) error {
	const ranges = 16 // of the keys, so that what is joined fits in memory
	there, err := statement.Collect(ctx, s.at(), "SELECT name FROM system.tables WHERE database = {db:String} AND name = '"+accessesBefore+
		"' AND '%s' != ''", clickhouse.Parameters{"db": statement.Text(s.localDatabase())},
		func(name *string) ([]any, func()) { return []any{name}, nil })
	if err != nil || len(there) == 0 {
		return err
	}
	s.cfg.Log.Info("moving accesses to their clusters; it is done once")
	for i := range uint64(ranges) {
		within := fmt.Sprintf("access BETWEEN %d AND %d", i<<60, i<<60|(1<<60-1))
		columns := strings.TrimPrefix(accessColumns, "cluster, ")
		err := s.exec(ctx, nil, fmt.Sprintf(`INSERT INTO %[1]s.accesses (cluster, %[2]s, seen) SELECT used.cluster, %[2]s, seen
FROM (SELECT * FROM %[3]s WHERE %[4]s) AS named INNER JOIN (SELECT DISTINCT cluster, access FROM %[1]s.access_usage WHERE %[4]s) AS used USING (access)`,
			s.db, columns, s.everywhere(accessesBefore), within))
		if err != nil && code(err) != codeUnknownTable { // another process was quicker
			return err
		}
	}
	for i := range interned {
		if t := &interned[i]; t.table == "accesses" {
			if err := s.exec(ctx, nil, t.add(s.db, s.table("events"), t.lacking(s.db))); err != nil {
				return err
			}
		}
	}
	if err := s.durable(ctx); err != nil {
		return err
	}
	return s.conn.Exec(ctx, "DROP TABLE IF EXISTS "+s.local(accessesBefore)+s.form().OnCluster())
}

// countedQuery lists the accesses counted on a day: whose, of what, and whether it is a kind.
const countedQuery = `SELECT access, any(subject) AS subject, toUInt8(any(name) = '` + codec.Other + `') AS kind
FROM %[1]s.accesses
WHERE cluster = {cluster:String} AND access IN (SELECT access FROM %[1]s.access_usage WHERE cluster = {cluster:String} AND toUInt16(day) = {day:UInt16}) AND path != '` + codec.Other + `'
GROUP BY access LIMIT {limit:UInt32}`

// setsQuery lists the subjects counted individually on a day, with their sets of groups.
const setsQuery = `SELECT subject, group_set
FROM %[1]s.accesses
WHERE cluster = {cluster:String} AND access IN (SELECT access FROM %[1]s.access_usage WHERE cluster = {cluster:String} AND toUInt16(day) = {day:UInt16}) AND group_set != {nobody:UInt64}
GROUP BY subject, group_set LIMIT {limit:UInt32}`

// agentsQuery lists the user agents counted individually on a day, and whose they are.
const agentsQuery = `SELECT subject, user_agent
FROM %[1]s.activity
WHERE cluster = {cluster:String} AND toUInt16(toDate(slot)) = {day:UInt16} AND user_agent != '` + codec.Other + `'
GROUP BY subject, user_agent LIMIT {limit:UInt32}`

// firstsQuery lists the keys of first-seen rules kept individually on a day.
const firstsQuery = `SELECT rule, key
FROM %[1]s.detections
WHERE cluster = {cluster:String} AND toUInt16(toDate(slot)) = {day:UInt16} AND key > 1
GROUP BY rule, key LIMIT {limit:UInt32}`

// begin reads what the store counts on the days of the rows, unless it is remembered.
func (s *Store) begin(ctx context.Context, rows []verdict.Row) error {
	return s.folds.Begin(rows, func(cluster string, day uint16, limits codec.FoldLimits) (c codec.Counted, err error) {
		if s.later != nil && s.later.has(cluster) { // nothing has to be counted first, as when a cluster's first rows come
			ctx = context.WithValue(ctx, rollingUp{}, true)
		}
		accesses, agents, sets, firsts := limits.Most()
		p := clickhouse.Parameters{"cluster": statement.Text(cluster), "day": fmt.Sprint(day), "limit": fmt.Sprint(accesses),
			"nobody": fmt.Sprint(codec.OtherSubject)}
		var kind uint8
		if c.Accesses, err = statement.Collect(ctx, s.at(), countedQuery, p, func(k *codec.CountedAccess) ([]any, func()) {
			return []any{&k.Access, &k.Subject, &kind}, func() { k.Kind = kind != 0 }
		}); err != nil {
			return c, fmt.Errorf("read the accesses of a day: %w", err)
		}
		p["limit"] = fmt.Sprint(sets)
		if c.Sets, err = statement.Collect(ctx, s.at(), setsQuery, p,
			func(g *codec.CountedSet) ([]any, func()) { return []any{&g.Subject, &g.Groups}, nil }); err != nil {
			return c, fmt.Errorf("read the groups of a day: %w", err)
		}
		p["limit"] = fmt.Sprint(firsts)
		if c.Firsts, err = statement.Collect(ctx, s.at(), firstsQuery, p,
			func(k *codec.CountedFirst) ([]any, func()) { return []any{&k.Rule, &k.Key}, nil }); err != nil {
			return c, fmt.Errorf("read the first-seen keys of a day: %w", err)
		}
		p["limit"] = fmt.Sprint(agents)
		if c.Agents, err = statement.Collect(ctx, s.at(), agentsQuery, p,
			func(a *codec.CountedAgent) ([]any, func()) { return []any{&a.Subject, &a.Agent}, nil }); err != nil {
			return c, fmt.Errorf("read the user agents of a day: %w", err)
		}
		return c, nil
	})
}
