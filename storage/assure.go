package storage

import (
	"context"
	"fmt"
	"slices"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// doubted is how many inserts into a partition are looked up once it is doubtful what the store has: more than can have been under way when
// the doubt arose.
const doubted = 8

// SameVerdict calls codec.SameVerdict.
func (*Store) SameVerdict(a, b *verdict.Verdict) bool { return codec.SameVerdict(a, b) }

// assure makes sure that the rows of a block that was inserted without an error are there.
func (s *Store) assure(ctx context.Context, token string, rows []verdict.Row) error {
	doubtful := rows
	if f, others, ok := freshOf(rows); ok {
		there, err := s.counted(ctx, rows[0].Position.Partition, f)
		if err != nil {
			return err
		}
		if there {
			doubtful = others
		}
	}
	missing, err := s.missing(ctx, doubtful)
	if err != nil || len(missing) == 0 {
		return err
	}
	// All of the block, or what one of its ingest days brought: each is a part of its own.
	s.metrics.reinserts.Inc()
	s.cfg.Log.Warn("store remembers a block it does not have, sending it again",
		zap.String("token", token), zap.Int("rows", len(rows)), zap.Int("missing", len(missing)))
	return s.insertAll(ctx, []insertMember{{fmt.Sprintf("%s+%d", token, len(missing)), missing}})
}

// missing returns the rows of a block (all of one Kafka partition) that the store does not have.
func (s *Store) missing(ctx context.Context, rows []verdict.Row) ([]verdict.Row, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	have, err := s.stored(ctx, rows)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(slices.Clone(rows), func(r verdict.Row) bool { return have[r.EventKey] }), nil
}

// fresh are rows of events that are stored for the first time, of one epoch and without a gap between their offsets, as nearly all of
// nearly every block are: whether they are there is a matter of counting.
type fresh struct {
	epoch       uint32
	first, last int64  // offsets
	from, to    uint32 // minutes
}

// freshOf divides a block; ok is false if it has no fresh rows that can be counted.
func freshOf(rows []verdict.Row) (f fresh, others []verdict.Row, ok bool) {
	for i := range rows {
		r := &rows[i]
		m := codec.Minute(r.Event.RequestReceivedTimestamp)
		switch {
		case r.Sign < 0 || r.Revision != 1 || ok && r.Position.Epoch != f.epoch:
			others = append(others, *r)
		case !ok:
			f, ok = fresh{r.Position.Epoch, r.Position.Offset, r.Position.Offset, m, m}, true
		case r.Position.Offset != f.last+1:
			return fresh{}, nil, false
		default:
			f.last, f.from, f.to = r.Position.Offset, min(f.from, m), max(f.to, m)
		}
	}
	return f, others, ok
}

// counted reports whether all fresh rows are stored.
func (s *Store) counted(ctx context.Context, partition int32, f fresh) (bool, error) {
	n, err := statement.Collect(ctx, s.at(),
		"SELECT uniqExact(koffset) FROM %s.events WHERE sign = 1 AND row_revision = 1 AND kpart = {kpart:Int32} AND epoch = {epoch:UInt32}"+
			" AND minute BETWEEN {from:UInt32} AND {to:UInt32} AND koffset BETWEEN {first:Int64} AND {last:Int64}", clickhouse.Parameters{
			"kpart": fmt.Sprint(partition), "epoch": fmt.Sprint(f.epoch), "from": fmt.Sprint(f.from), "to": fmt.Sprint(f.to),
			"first": fmt.Sprint(f.first), "last": fmt.Sprint(f.last),
		}, func(n *uint64) ([]any, func()) { return []any{n}, nil })
	if err != nil {
		return false, fmt.Errorf("count stored rows: %w", err)
	}
	return len(n) == 1 && n[0] == uint64(f.last-f.first)+1, nil
}

// place says where to look for a standing row.
type place struct {
	epoch    uint32
	offset   int64
	revision uint64
}

// stored returns the events of a block (all of one Kafka partition) that are in the store as the block leaves them. It looks for rows with
// sign +1 only: a merge may have removed a −1 together with the row it takes back, and a −1 is stored if the +1 beside it is, since both
// are in one part. A −1 without a +1 cannot be looked up and counts as stored.
func (s *Store) stored(ctx context.Context, rows []verdict.Row) (map[event.Hash128]bool, error) {
	have := make(map[event.Hash128]bool, len(rows))
	want := make(map[place]event.Hash128, len(rows))
	offsets := make([]int64, 0, len(rows))
	from, to := ^uint32(0), uint32(0)
	for i := range rows {
		r := &rows[i]
		if r.Sign < 0 {
			if _, paired := have[r.EventKey]; !paired {
				have[r.EventKey] = true
			}
			continue
		}
		have[r.EventKey] = false
		want[place{r.Position.Epoch, r.Position.Offset, r.Revision}] = r.EventKey
		offsets = append(offsets, r.Position.Offset)
		m := codec.Minute(r.Event.RequestReceivedTimestamp)
		from, to = min(from, m), max(to, m)
	}
	if len(offsets) == 0 {
		return have, nil
	}
	res, err := s.conn.Query(statement.Params(ctx, clickhouse.Parameters{
		"kpart": fmt.Sprint(rows[0].Position.Partition), "from": fmt.Sprint(from), "to": fmt.Sprint(to),
	}), "SELECT epoch, koffset, row_revision FROM "+s.table("events")+`
WHERE sign = 1 AND kpart = {kpart:Int32} AND minute BETWEEN {from:UInt32} AND {to:UInt32}
AND koffset IN (SELECT arrayJoin(CAST('`+statement.Numbers(offsets)+`', 'Array(Int64)')))`)
	if err != nil {
		return nil, fmt.Errorf("check stored rows: %w", err)
	}
	defer res.Close()
	for res.Next() {
		var p place
		if err := res.Scan(&p.epoch, &p.offset, &p.revision); err != nil {
			return nil, fmt.Errorf("check stored rows: %w", err)
		}
		if key, ok := want[p]; ok {
			have[key] = true
		}
	}
	if err := res.Err(); err != nil {
		return nil, fmt.Errorf("check stored rows: %w", err)
	}
	return have, nil
}
