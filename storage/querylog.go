package storage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/native"
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

// longestDetail is how much of a question's detail is kept, in bytes.
const longestDetail = 4096

// SaveAsked adds questions to the query log. It is not idempotent: after an error some may
// be counted, and are counted again when they are saved again.
func (s *Store) SaveAsked(ctx context.Context, asked []Asked) error {
	if len(asked) == 0 {
		return nil
	}
	var minute proto.ColUInt32
	var on proto.ColUInt16
	var door, caller, address, question, status native.LowCard
	var detail native.TextColumn
	var count, bytes, took proto.ColInt64
	for i := range asked {
		a := &asked[i]
		minute.Append(uint32(a.Time.Unix() / 60 * 60))
		on.Append(codec.Day(a.Time))
		door.Append(a.Door)
		caller.Append(a.Caller)
		address.Append(a.Address)
		question.Append(a.Question)
		detail.Append(strings.ToValidUTF8(a.Detail[:min(len(a.Detail), longestDetail)], ""))
		status.Append(a.Status)
		count.Append(a.Count)
		bytes.Append(a.Bytes)
		took.Append(a.Took.Microseconds())
	}
	err := s.insertColumns(ctx, "query_log", []proto.InputColumn{
		{Name: "minute", Data: native.Seconds{ColUInt32: &minute}}, {Name: "day", Data: native.Dates{ColUInt16: &on}}, {Name: "door", Data: &door},
		{Name: "caller", Data: &caller}, {Name: "address", Data: &address}, {Name: "question", Data: &question},
		{Name: "detail", Data: &detail}, {Name: "status", Data: &status}, {Name: "count", Data: &count},
		{Name: "bytes", Data: &bytes}, {Name: "micros", Data: &took},
	}, len(asked))
	if err != nil {
		return fmt.Errorf("save %d questions: %w", len(asked), err)
	}
	return nil
}

// QueryLog returns who asked what before a time (zero: ever), newest first.
func (s *Store) QueryLog(ctx context.Context, before time.Time, limit int) ([]Asked, error) {
	until := int64(1<<32 - 1)
	if !before.IsZero() {
		until = before.Unix()
	}
	list, err := collect(ctx, s, `SELECT minute, door, caller, address, question, detail, status, sum(count), sum(bytes), sum(micros)
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
