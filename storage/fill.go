package storage

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// filledKey is the prefix of the entries of meta that name the rollups into which older events have been counted.
const filledKey = "rollup filled "

// late are the rollups that were added when stores existed already, and that are queried without waiting for a recovery.
var late = []string{"activity"} //nolint:gochecknoglobals // constant table

// fill counts stored events into rollups that are new to the store, once. Like Recover it goes by state, so it may be interrupted and
// repeated. Days whose events are gone cannot be counted.
func (s *Store) fill(ctx context.Context) error {
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
		partitions, err := statement.Collect(ctx, s.at(), "SELECT DISTINCT kpart FROM %s.events", nil,
			func(p *int32) ([]any, func()) { return []any{p}, nil })
		if err != nil {
			return fmt.Errorf("fill %s: %w", table, err)
		}
		for _, partition := range partitions {
			s.cfg.Log.Info("counting stored events in a new rollup", zap.String("table", table), zap.Int32("partition", partition))
			if err := s.fillPartition(ctx, table, partition); err != nil {
				return fmt.Errorf("fill %s with partition %d: %w", table, partition, err)
			}
		}
		if err := s.remember(ctx, filledKey+table, ""); err != nil {
			return fmt.Errorf("note that %s is filled: %w", table, err)
		}
	}
	return nil
}

func (s *Store) fillPartition(ctx context.Context, table string, partition int32) error {
	p, err := s.recoverParams(ctx, partition, nil)
	if err != nil {
		return err
	}
	for i := range rollups {
		if rollups[i].table == table {
			if _, err := s.mend(ctx, &rollups[i], p); err != nil {
				return err
			}
		}
	}
	return nil
}

// countedQuery lists the accesses counted on a day: whose, of what, and whether it is a kind.
const countedQuery = `SELECT access, any(subject) AS subject, toUInt8(any(name) = '` + codec.Other + `') AS kind
FROM %[1]s.accesses
WHERE access IN (SELECT access FROM %[1]s.access_usage WHERE cluster = {cluster:String} AND toUInt16(day) = {day:UInt16}) AND path != '` + codec.Other + `'
GROUP BY access LIMIT {limit:UInt32}`

// setsQuery lists the subjects counted individually on a day, with their sets of groups.
const setsQuery = `SELECT subject, group_set
FROM %[1]s.accesses
WHERE access IN (SELECT access FROM %[1]s.access_usage WHERE cluster = {cluster:String} AND toUInt16(day) = {day:UInt16}) AND group_set != {nobody:UInt64}
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
