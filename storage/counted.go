package storage

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/verdict"
)

// countedQuery has what is counted of a day: whose, what, and whether it is a kind.
const countedQuery = `SELECT access, any(subject) AS subject, toUInt8(any(name) = '` + codec.Other + `') AS kind
FROM %[1]s.accesses
WHERE access IN (SELECT access FROM %[1]s.access_usage WHERE cluster = {cluster:String} AND toUInt16(day) = {day:UInt16}) AND path != '` + codec.Other + `'
GROUP BY access LIMIT {limit:UInt32}`

// agentsQuery has the user agents of a day that are counted by themselves, and whose they are.
const agentsQuery = `SELECT subject, user_agent
FROM %[1]s.activity
WHERE cluster = {cluster:String} AND toUInt16(toDate(slot)) = {day:UInt16} AND user_agent != '` + codec.Other + `'
GROUP BY subject, user_agent LIMIT {limit:UInt32}`

// begin reads what the store has of the days of rows that are not remembered.
func (s *Store) begin(ctx context.Context, rows []verdict.Row) error {
	return s.folds.Begin(rows, func(cluster string, day uint16, accesses, agents int) ([]codec.CountedAccess, []codec.CountedAgent, error) {
		p := clickhouse.Parameters{"cluster": text(cluster), "day": fmt.Sprint(day), "limit": fmt.Sprint(accesses)}
		var kind uint8
		counted, err := collect(ctx, s, countedQuery, p, func(k *codec.CountedAccess) ([]any, func()) {
			return []any{&k.Access, &k.Subject, &kind}, func() { k.Kind = kind != 0 }
		})
		if err != nil {
			return nil, nil, fmt.Errorf("read the accesses of a day: %w", err)
		}
		p["limit"] = fmt.Sprint(agents)
		clients, err := collect(ctx, s, agentsQuery, p, func(c *codec.CountedAgent) ([]any, func()) { return []any{&c.Subject, &c.Agent}, nil })
		if err != nil {
			return nil, nil, fmt.Errorf("read the user agents of a day: %w", err)
		}
		return counted, clients, nil
	})
}
