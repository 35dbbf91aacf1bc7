package storage

import (
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/native"
	"github.com/retrial-io/retrial/storage/queries"
)

// longestDetail is how much of a question's detail is kept, in bytes.
const longestDetail = 4096

// SaveAsked adds questions to the query log. It is not idempotent: after an error some may
// be counted, and are counted again when they are saved again.
func (s *Store) SaveAsked(ctx context.Context, asked []queries.Asked) error {
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
