package queries

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/statement"
)

// Asked is a question somebody asked of the store, and how it ended.
type Asked struct {
	Time     time.Time // when it was answered; kept to the minute
	Door     string    // page, socket, sql, direct
	Caller   string
	Address  string // of the caller, without port
	Question string // route of the API, or sql
	Detail   string // parameters or statement
	Status   string // ok, refused, failed
	Count    int64  // times it was asked in that minute
	Bytes    int64  // of the answers
	Took     time.Duration
}

// QueryLog returns who asked what before a time (zero: ever), newest first.
func (rd *Reader) QueryLog(ctx context.Context, before time.Time, limit int) ([]Asked, error) {
	until := int64(1<<32 - 1)
	if !before.IsZero() {
		until = before.Unix()
	}
	list, err := statement.Collect(ctx, rd.at, `SELECT minute, door, caller, address, question, detail, status, sum(count), sum(bytes), sum(micros)
FROM %s.query_log WHERE minute < fromUnixTimestamp({until:Int64})
GROUP BY ALL ORDER BY minute DESC, door, caller, address, question, detail, status LIMIT {limit:UInt32}`,
		clickhouse.Parameters{"until": fmt.Sprint(until), "limit": fmt.Sprint(limit)}, func(a *Asked) ([]any, func()) {
			var took int64
			return []any{&a.Time, &a.Door, &a.Caller, &a.Address, &a.Question, &a.Detail, &a.Status, &a.Count, &a.Bytes, &took},
				func() { a.Took = time.Duration(took) * time.Microsecond }
		})
	if err != nil {
		return nil, fmt.Errorf("read query log: %w", err)
	}
	return list, nil
}
