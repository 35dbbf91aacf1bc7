package storage

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// countedQuery has what is counted of a day: whose, what, and whether it is a kind.
const countedQuery = `SELECT access, any(subject) AS subject, toUInt8(any(name) = '` + codec.Other + `') AS kind
FROM %[1]s.accesses
WHERE access IN (SELECT access FROM %[1]s.access_usage WHERE cluster = {cluster:String} AND toUInt16(day) = {day:UInt16}) AND path != '` + codec.Other + `'
GROUP BY access LIMIT {limit:UInt32}`

// setsQuery has the subjects of a day that are counted by themselves, with their sets of groups.
const setsQuery = `SELECT subject, group_set
FROM %[1]s.accesses
WHERE access IN (SELECT access FROM %[1]s.access_usage WHERE cluster = {cluster:String} AND toUInt16(day) = {day:UInt16}) AND group_set != {nobody:UInt64}
GROUP BY subject, group_set LIMIT {limit:UInt32}`

// agentsQuery has the user agents of a day that are counted by themselves, and whose they are.
const agentsQuery = `SELECT subject, user_agent
FROM %[1]s.activity
WHERE cluster = {cluster:String} AND toUInt16(toDate(slot)) = {day:UInt16} AND user_agent != '` + codec.Other + `'
GROUP BY subject, user_agent LIMIT {limit:UInt32}`

// firstsQuery has the keys of first-seen rules of a day that are kept by themselves.
const firstsQuery = `SELECT rule, key
FROM %[1]s.detections
WHERE cluster = {cluster:String} AND toUInt16(toDate(slot)) = {day:UInt16} AND key > 1
GROUP BY rule, key LIMIT {limit:UInt32}`

// begin reads what the store has of the days of rows that are not remembered.
func (s *Store) begin(ctx context.Context, rows []verdict.Row) error {
	return s.folds.Begin(rows, func(cluster string, day uint16, limits codec.FoldLimits) (c codec.Counted, err error) {
		accesses, agents, sets, firsts := limits.Most()
		p := clickhouse.Parameters{"cluster": statement.Text(cluster), "day": fmt.Sprint(day), "limit": fmt.Sprint(accesses), "nobody": fmt.Sprint(codec.OtherSubject)}
		var kind uint8
		if c.Accesses, err = statement.Collect(ctx, s.at(), countedQuery, p, func(k *codec.CountedAccess) ([]any, func()) {
			return []any{&k.Access, &k.Subject, &kind}, func() { k.Kind = kind != 0 }
		}); err != nil {
			return c, fmt.Errorf("read the accesses of a day: %w", err)
		}
		p["limit"] = fmt.Sprint(sets)
		if c.Sets, err = statement.Collect(ctx, s.at(), setsQuery, p, func(g *codec.CountedSet) ([]any, func()) { return []any{&g.Subject, &g.Groups}, nil }); err != nil {
			return c, fmt.Errorf("read the groups of a day: %w", err)
		}
		p["limit"] = fmt.Sprint(firsts)
		if c.Firsts, err = statement.Collect(ctx, s.at(), firstsQuery, p, func(k *codec.CountedFirst) ([]any, func()) { return []any{&k.Rule, &k.Key}, nil }); err != nil {
			return c, fmt.Errorf("read the first-seen keys of a day: %w", err)
		}
		p["limit"] = fmt.Sprint(agents)
		if c.Agents, err = statement.Collect(ctx, s.at(), agentsQuery, p, func(a *codec.CountedAgent) ([]any, func()) { return []any{&a.Subject, &a.Agent}, nil }); err != nil {
			return c, fmt.Errorf("read the user agents of a day: %w", err)
		}
		return c, nil
	})
}
