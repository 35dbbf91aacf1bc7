package queries

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
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

// NoPartition is the kpart of the row that holds a request to judge again.
const NoPartition = -1

const rejudgesQuery = `SELECT id, kpart, content FROM %s.rejudges FINAL ORDER BY cluster, id, kpart`

// Rejudges returns every request to judge again with its progress, by cluster and then in the order they were made.
func (rd *Reader) Rejudges(ctx context.Context) ([]verdict.RejudgeJob, error) {
	type line struct {
		id, content string
		partition   int32
	}
	lines, err := statement.Collect(ctx, rd.at, rejudgesQuery, nil,
		func(l *line) ([]any, func()) { return []any{&l.id, &l.partition, &l.content}, nil })
	if err != nil {
		return nil, fmt.Errorf("read requests to judge again: %w", err)
	}
	var out []verdict.RejudgeJob
	for _, l := range lines {
		if l.partition == NoPartition {
			out = append(out, verdict.RejudgeJob{})
			err = json.Unmarshal([]byte(l.content), &out[len(out)-1].Rejudge)
		} else if n := len(out); n > 0 && out[n-1].ID == l.id {
			var p verdict.RejudgeProgress
			err = json.Unmarshal([]byte(l.content), &p)
			out[n-1].Progress = append(out[n-1].Progress, p)
		}
		if err != nil {
			return nil, fmt.Errorf("read request %s to judge again: %w", l.id, err)
		}
	}
	return out, nil
}
