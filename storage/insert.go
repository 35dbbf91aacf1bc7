package storage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay"
)

// pendingBlock is a block and what it is encoded into, reused from insert to insert.
type pendingBlock struct {
	block *block
	data  payload
}

// reset empties both.
func (p *pendingBlock) reset() {
	p.data.reset()
	p.block.reset()
}

// encode makes the data of what the block holds.
func (p *pendingBlock) encode() error { return p.data.encode(p.block.columns, p.block.rows) }

// keptBlocks is how many blocks a store keeps for the next inserts: one is filled and one sent
// where partitions take turns.
const keptBlocks = 2

// takeBlock returns an empty block.
func (s *Store) takeBlock() *pendingBlock {
	s.mu.Lock()
	defer s.mu.Unlock()
	if n := len(s.blocks); n > 0 {
		p := s.blocks[n-1]
		s.blocks = s.blocks[:n-1]
		return p
	}
	return &pendingBlock{block: newBlock()}
}

// putBlock empties a block and keeps it. A block at rest must not keep the memory its rows'
// strings are of.
func (s *Store) putBlock(p *pendingBlock) {
	p.reset()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.blocks) < keptBlocks {
		s.blocks = append(s.blocks, p)
	}
}

// insertSettings make one INSERT one block and let its rollups share its token.
var insertSettings = clickhouse.Settings{ //nolint:gochecknoglobals // constant table
	"insert_deduplicate": 1,
	"deduplicate_blocks_in_dependent_materialized_views": 1,
	"max_partitions_per_insert_block":                    0,       // corrections reach back many ingest days
	"max_insert_block_size":                              1 << 24, // never split
	"min_insert_block_size_rows":                         1 << 24,
	"min_insert_block_size_bytes":                        1 << 30,
	"parallel_view_processing":                           0,
}

// Insert adds one block of rows to events under a deduplication token; every rollup is
// fed by the same block under the same token. All rows belong to one Kafka partition's
// owner. Sending the same rows under the same token again adds nothing while the store
// remembers the token (1,000 inserts); after that Known finds them, and they must not be
// sent. After an error the outcome is unknown until Recover and Known have been asked.
//
// The store remembers a token before it has the data: after a crash between the two it
// would take the block sent again for a repetition and drop it. The first inserts into a
// partition after the process started, after an error and after a recovery are therefore
// looked up, and sent under another token when their rows are not there.
func (s *Store) Insert(ctx context.Context, token string, rows []replay.Row) error {
	if len(rows) == 0 {
		return nil
	}
	if token == "" {
		return fmt.Errorf("insert %d rows: no deduplication token", len(rows))
	}
	part := s.partition(rows[0].Position.Partition)
	part.Lock()
	defer part.Unlock()
	began := time.Now()
	p := s.takeBlock()
	for i := range rows {
		if err := p.block.append(&rows[i]); err != nil {
			return fmt.Errorf("insert: %w", err)
		}
	}
	if err := p.encode(); err != nil {
		return fmt.Errorf("insert: encode %d rows: %w", len(rows), err)
	}
	err := s.send(ctx, token, rows, p)
	if err == nil && part.checked < doubted {
		err = s.assure(ctx, token, rows, p)
		part.checked++
	}
	s.metrics.seconds.Observe(time.Since(began).Seconds())
	if err != nil {
		part.checked = 0
		s.metrics.inserts.WithLabelValues("error").Inc()
		return fmt.Errorf("insert %d rows of partition %d: %w", len(rows), rows[0].Position.Partition, err)
	}
	s.metrics.inserts.WithLabelValues("ok").Inc()
	s.metrics.rows.Add(float64(len(rows)))
	s.metrics.bytes.Add(float64(p.data.size()))
	s.putBlock(p) // after an error, what was sent may still be being read
	return nil
}

// doubted is how many inserts into a partition are looked up once it is in doubt what the
// store has: more than can have been under way when the doubt arose.
const doubted = 8

// assure makes sure that the rows of a block that was inserted without an error are there.
func (s *Store) assure(ctx context.Context, token string, rows []replay.Row, p *pendingBlock) error {
	have, err := s.stored(ctx, rows)
	if err != nil {
		return err
	}
	p.reset()
	for i := range rows {
		if have[rows[i].EventKey] {
			continue
		}
		if err := p.block.append(&rows[i]); err != nil {
			return err
		}
	}
	if p.block.rows == 0 {
		return nil
	}
	// All of the block, or what one of its ingest days brought: each is a part of its own.
	s.metrics.reinserts.Inc()
	s.cfg.Log.Warn("store remembers a block it does not have, sending it again",
		zap.String("token", token), zap.Int("rows", len(rows)), zap.Int("missing", p.block.rows))
	if err := p.encode(); err != nil {
		return err
	}
	return s.send(ctx, fmt.Sprintf("%s+%d", token, p.block.rows), rows, p)
}

// place is where a row that stands is looked for.
type place struct {
	epoch    uint32
	offset   int64
	revision uint64
}

// stored returns the events of a block (all of one Kafka partition) that are in the store
// as the block leaves them. Only rows with sign +1 are looked for: a −1 may have vanished in
// a merge together with what it takes back, and is in the store when the +1 beside it is,
// for both are in one part. A −1 without a +1 cannot be looked for and passes for stored.
func (s *Store) stored(ctx context.Context, rows []replay.Row) (map[event.Hash128]bool, error) {
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
		m := minute(r.Event.RequestReceivedTimestamp)
		from, to = min(from, m), max(to, m)
	}
	if len(offsets) == 0 {
		return have, nil
	}
	res, err := s.conn.Query(params(ctx, clickhouse.Parameters{
		"kpart": fmt.Sprint(rows[0].Position.Partition), "from": fmt.Sprint(from), "to": fmt.Sprint(to),
	}), "SELECT epoch, koffset, row_revision FROM "+s.table("events")+`
WHERE sign = 1 AND kpart = {kpart:Int32} AND minute BETWEEN {from:UInt32} AND {to:UInt32}
AND koffset IN (SELECT arrayJoin(CAST('`+numbers(offsets)+`', 'Array(Int64)')))`)
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

// send runs one INSERT of the encoded block.
func (s *Store) send(ctx context.Context, token string, rows []replay.Row, b *pendingBlock) error {
	settings := merge(clickhouse.Settings{"insert_deduplication_token": token}, insertSettings)
	if s.cfg.Transport == nil {
		settings["log_comment"] = s.insertComment(rows[0].Position.Partition) // see endInserts
	}
	ctx = clickhouse.Context(withPayload(ctx, &b.data), clickhouse.WithSettings(settings))
	return s.conn.Exec(ctx, "INSERT INTO "+s.table("events")+" ("+columnNames(b.block.columns)+") FORMAT Native")
}

func columnNames(columns []proto.InputColumn) string {
	var b strings.Builder
	for i, c := range columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(c.Name)
	}
	return b.String()
}
