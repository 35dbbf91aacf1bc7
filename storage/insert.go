package storage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/native"
	"github.com/retrial-io/retrial/verdict"
)

// pendingBlock is a block with its encoded form, reused from insert to insert.
type pendingBlock struct {
	block *codec.Block
	data  native.Payload
}

// reset empties both.
func (p *pendingBlock) reset() {
	p.data.Reset()
	p.block.Reset()
}

// encode encodes the block.
func (p *pendingBlock) encode() error { return p.data.Encode(p.block.Columns, p.block.Rows) }

// keptBlocks is how many blocks a store keeps for the next inserts: partitions take turns, one filling a block while another is sent.
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

// putBlock empties a block and keeps it for reuse. An idle block must not retain the memory of its rows' strings.
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

// Inserted returns how many blocks this Store has inserted or tried to insert: while the number stays the same, it has added no row.
func (s *Store) Inserted() uint64 { return s.inserted.Load() }

// Changed has an element when Inserted has grown since it was last taken: it is for one reader.
func (s *Store) Changed() <-chan struct{} { return s.changed }

// noteInsert makes Inserted grow.
func (s *Store) noteInsert() {
	s.inserted.Add(1)
	select {
	case s.changed <- struct{}{}:
	default:
	}
}

// Insert adds rows of one Kafka partition's owner to events under a deduplication token; every rollup is fed by the same block. Sending the
// same rows under the same token again adds nothing while the store remembers the token (1,000 inserts); after that Known finds them, and
// they must not be sent. After an error the outcome is unknown until Recover and Known have been asked.
//
// An insert costs as much for a hundred rows as for some thousand, so the rows of partitions that
// are sent at the same time share one where nobody but this process can write (docs/adr/0086). Its
// token is of no partition alone: what is sent again, after an error or without, is looked up first.
//
// The store remembers a token before it has the data: after a crash between the two it would take the resent block for a duplicate and drop
// it. The first inserts into a partition after a start, an error or a recovery are therefore looked up, and sent again under another token
// if their rows are missing.
func (s *Store) Insert(ctx context.Context, token string, rows []verdict.Row) error {
	if len(rows) == 0 {
		return nil
	}
	if token == "" {
		return fmt.Errorf("insert %d rows: no deduplication token", len(rows))
	}
	number := rows[0].Position.Partition
	part := s.partition(number)
	part.Lock()
	defer part.Unlock()
	defer s.noteInsert()
	s.recent.note(rows)
	if err := s.insert(ctx, part, token, rows); err != nil {
		part.checked = 0
		return fmt.Errorf("insert %d rows of partition %d: %w", len(rows), number, err)
	}
	return nil
}

// insert is Insert with the partition locked.
func (s *Store) insert(ctx context.Context, part *partition, token string, rows []verdict.Row) error {
	if err := s.begin(ctx, rows); err != nil {
		return err
	}
	missing, again := rows, part.sent.has(token)
	if again {
		var err error
		if missing, err = s.missing(ctx, rows); err != nil {
			return err
		}
	}
	m := insertMember{token, missing}
	room := func(before []insertMember) bool { return rowsOf(before)+len(missing) <= mostJoined }
	switch {
	case len(missing) == 0:
	case again || !s.alone():
		if err := s.insertAll(ctx, []insertMember{m}); err != nil {
			return err
		}
	default:
		part.sent.add(token)
		if err := s.inserts.do(ctx, m, room, s.missed, s.insertAll); err != nil {
			return err
		}
	}
	if part.checked < doubted {
		part.checked++
		return s.assure(ctx, token, rows)
	}
	return nil
}

// tokens remembers the last of them.
type tokens struct {
	last [64]string
	n    int
}

func (t *tokens) add(token string)      { t.last[t.n%len(t.last)], t.n = token, t.n+1 }
func (t *tokens) has(token string) bool { return slices.Contains(t.last[:], token) }

// insertMember is what one partition has to insert.
type insertMember struct {
	token string
	rows  []verdict.Row
}

// partition returns whose rows they are.
func (m *insertMember) partition() int32 { return m.rows[0].Position.Partition }

// rowsOf counts the rows of several partitions.
func rowsOf(members []insertMember) (n int) {
	for i := range members {
		n += len(members[i].rows)
	}
	return n
}

const (
	mostJoined = 50_000                 // rows of an insert that several partitions share
	patience   = 150 * time.Millisecond // how long an insert waits for the other partitions
	regular    = 10 * time.Second       // since its last insert, a partition is waited for
)

// missed returns how long an insert waits for partitions that are not in it: those that have
// inserted lately. One that has many rows is not held up.
func (s *Store) missed(now []insertMember) time.Duration {
	if rowsOf(now) > mostJoined/2 {
		return 0
	}
	in := make(map[int32]bool, len(now))
	for i := range now {
		in[now[i].partition()] = true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for n, at := range s.regulars {
		if !in[n] && time.Since(at) < regular {
			return patience
		}
	}
	return 0
}

// tokenOf returns the token of an insert: of several partitions' none that one of them has alone.
func tokenOf(members []insertMember) string {
	if len(members) == 1 {
		return members[0].token
	}
	hash := xxhash.New()
	for i := range members {
		_, _ = hash.WriteString(members[i].token + "\n")
	}
	return fmt.Sprintf("jo/%d/%016x", len(members), hash.Sum64())
}

// insertAll sends the rows of all members in one INSERT. Rollups are given them by it, or later.
func (s *Store) insertAll(ctx context.Context, members []insertMember) error {
	l := s.later
	if l == nil {
		return s.insertInto(ctx, "events", 0, members)
	}
	corrections := takesBack(members)
	if corrections {
		if err := s.RollUp(ctx); err != nil {
			return err
		}
	}
	select {
	case l.order <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	if corrections {
		defer func() { <-l.order }()
		return s.insertInto(ctx, "corrections", 0, members)
	}
	number := l.begin()
	err := s.insertInto(ctx, "events", number, members)
	waiting := l.end(number, members)
	<-l.order
	if err == nil && waiting > mostLater {
		err = s.RollUp(ctx)
	}
	return err
}

// insertInto sends the rows of all members to a table. number is that of rows that are counted later.
func (s *Store) insertInto(ctx context.Context, table string, number uint64, members []insertMember) error {
	began := time.Now()
	p := s.takeBlock()
	p.block.Batch = number
	for i := range members {
		for j := range members[i].rows {
			if err := p.block.Append(&members[i].rows[j]); err != nil {
				return err
			}
		}
	}
	err := p.encode()
	if err == nil {
		err = s.send(ctx, table, tokenOf(members), members[0].partition(), p)
	}
	s.noted(members)
	s.metrics.seconds.Observe(time.Since(began).Seconds())
	if err != nil {
		s.metrics.inserts.WithLabelValues("error").Inc()
		return err
	}
	s.metrics.inserts.WithLabelValues("ok").Inc()
	s.metrics.rows.Add(float64(rowsOf(members)))
	s.metrics.bytes.Add(float64(p.data.Size()))
	for cause, n := range p.block.FoldedAs {
		s.metrics.folded.WithLabelValues(cause).Add(float64(n))
	}
	s.putBlock(p) // after an error, what was sent may still be being read
	return nil
}

// noted notes that partitions insert.
func (s *Store) noted(members []insertMember) {
	now := time.Now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := range members {
		s.regulars[members[i].partition()] = now
	}
}

// send runs one INSERT of the encoded block.
func (s *Store) send(ctx context.Context, table, token string, partition int32, b *pendingBlock) error {
	settings := merge(clickhouse.Settings{"insert_deduplication_token": token}, insertSettings)
	if s.cfg.Transport == nil {
		settings["log_comment"] = s.insertComment(partition) // see endInserts
	}
	ctx = clickhouse.Context(withPayload(ctx, &b.data), clickhouse.WithSettings(settings))
	return s.conn.Exec(ctx, "INSERT INTO "+s.table(table)+" ("+columnNames(b.block.Columns)+") FORMAT Native")
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

// withPayload returns a context under which the next statement is an INSERT of data in Native format. The driver sends the statement like
// any other, with its own address, authentication, settings and errors; the transport below adds the data. The data must not change until
// the statement has ended; after a failure it may still be in use.
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
