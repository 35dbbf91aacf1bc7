package storage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/native"
	"github.com/retrial-io/retrial/verdict"
)

// pendingBlock is a block and what it is encoded into, reused from insert to insert.
type pendingBlock struct {
	block *codec.Block
	data  native.Payload
}

// reset empties both.
func (p *pendingBlock) reset() {
	p.data.Reset()
	p.block.Reset()
}

// encode makes the data of what the block holds.
func (p *pendingBlock) encode() error { return p.data.Encode(p.block.Columns, p.block.Rows) }

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
	return &pendingBlock{block: codec.NewBlock(s.folds)}
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

// Inserted counts the blocks this Store has inserted or tried to: while it stays the same, no
// row has come from it.
func (s *Store) Inserted() uint64 { return s.inserted.Load() }

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
func (s *Store) Insert(ctx context.Context, token string, rows []verdict.Row) error {
	if len(rows) == 0 {
		return nil
	}
	if token == "" {
		return fmt.Errorf("insert %d rows: no deduplication token", len(rows))
	}
	part := s.partition(rows[0].Position.Partition)
	part.Lock()
	defer part.Unlock()
	defer s.inserted.Add(1)
	began := time.Now()
	if err := s.begin(ctx, rows); err != nil {
		return fmt.Errorf("insert: %w", err)
	}
	p := s.takeBlock()
	for i := range rows {
		if err := p.block.Append(&rows[i]); err != nil {
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
	s.metrics.bytes.Add(float64(p.data.Size()))
	for cause, n := range p.block.FoldedAs {
		s.metrics.folded.WithLabelValues(cause).Add(float64(n))
	}
	s.putBlock(p) // after an error, what was sent may still be being read
	return nil
}

// send runs one INSERT of the encoded block.
func (s *Store) send(ctx context.Context, token string, rows []verdict.Row, b *pendingBlock) error {
	settings := merge(clickhouse.Settings{"insert_deduplication_token": token}, insertSettings)
	if s.cfg.Transport == nil {
		settings["log_comment"] = s.insertComment(rows[0].Position.Partition) // see endInserts
	}
	ctx = clickhouse.Context(withPayload(ctx, &b.data), clickhouse.WithSettings(settings))
	return s.conn.Exec(ctx, "INSERT INTO "+s.table("events")+" ("+columnNames(b.block.Columns)+") FORMAT Native")
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

// payloadKey is the context key of an INSERT's data.
type payloadKey struct{}

// withPayload makes the next statement run under ctx an INSERT of data, encoded in Native
// format. The driver sends the statement as it sends any other (address, authentication,
// settings, errors are its own); the transport below puts the data in. The data must not
// change until the statement has ended; after one that failed it may still be being read.
func withPayload(ctx context.Context, data *native.Payload) context.Context {
	return context.WithValue(ctx, payloadKey{}, data)
}

// payloads is the round tripper between the driver and the store.
type payloads struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t payloads) RoundTrip(req *http.Request) (*http.Response, error) {
	data, ok := req.Context().Value(payloadKey{}).(*native.Payload)
	if !ok || req.Body == nil {
		return t.next.RoundTrip(req)
	}
	query, err := io.ReadAll(req.Body)
	req.Body.Close()
	if err != nil {
		return nil, fmt.Errorf("read statement: %w", err)
	}
	req = req.Clone(req.Context())
	if !bytes.HasPrefix(query, []byte("INSERT")) { // the driver's own question on a new connection
		req.Body = io.NopCloser(bytes.NewReader(query))
		return t.next.RoundTrip(req)
	}
	args := req.URL.Query()
	args.Set("query", string(query))
	args.Set("wait_end_of_query", "1") // the status is then that of the whole insert
	req.URL.RawQuery = args.Encode()
	req.Body = io.NopCloser(data.Reader())
	req.ContentLength = int64(data.Size())
	req.GetBody = nil // never sent twice behind our back
	return t.next.RoundTrip(req)
}
