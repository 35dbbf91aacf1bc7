package storage

import (
	"context"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// knownChunk bounds the request keys of one lookup: 32 bytes of SQL each.
const knownChunk = 1 << 16

// Known returns, in no particular order, the standing rows with the cluster and request key of any of the given rows: a handful if the rows
// are new, all of them if they are delivered again. It looks at the rows' Cluster, Request and request time only. Callers who ask at the
// same time share a query.
func (s *Store) Known(ctx context.Context, rows []verdict.Row) ([]verdict.KnownRow, error) {
	if len(rows) == 0 {
		return nil, nil
	}
	l := &lookup{rows: rows}
	err := s.lookups.do(ctx, l, func(before []*lookup) bool {
		n := len(rows)
		for _, b := range before {
			n += len(b.rows)
		}
		return n <= knownChunk && len(before) < 64
	}, nil, s.lookUp)
	return l.known, err
}

// lookUp answers all members: a statement for as many requests as one can name, of whichever clusters, as what one costs hardly depends on
// how many there are.
func (s *Store) lookUp(ctx context.Context, members []*lookup) error {
	began := time.Now()
	type request struct {
		cluster string
		key     event.Hash128
	}
	var rows []*verdict.Row
	by := make(map[request]uint64, len(members[0].rows)) // members, a bit each
	for n, m := range members {
		for i := range m.rows {
			r := &m.rows[i]
			of := request{r.Cluster, r.Request}
			who := by[of]
			if who == 0 {
				rows = append(rows, r)
			}
			by[of] = who | 1<<n
		}
	}
	rows, err := s.mayBeStored(ctx, rows)
	if err != nil {
		return err
	}
	if len(rows) == 0 {
		return nil
	}
	for chunk := range slices.Chunk(rows, knownChunk) {
		err := s.knownChunk(ctx, chunk, func(k verdict.KnownRow) {
			for who := by[request{k.Cluster, k.Request}]; who != 0; who &= who - 1 {
				m := members[bits.TrailingZeros64(who)]
				m.known = append(m.known, k)
			}
		})
		if err != nil {
			return fmt.Errorf("look up %d requests: %w", len(chunk), err)
		}
	}
	s.metrics.known.Observe(time.Since(began).Seconds())
	return nil
}

// knownQuery finds standing rows of requests.
const knownQuery = `SELECT cluster, request_key, stage, toUnixTimestamp64Micro(request_received) AS received, stage_delay,
    epoch, kpart, koffset, content, size, outcome != '' AS judged, row_revision
FROM %s
PREWHERE cluster IN {clusters:Array(String)} AND %s
GROUP BY ALL
HAVING sum(sign) > 0`

// knownChunk visits the standing rows of distinct requests.
func (s *Store) knownChunk(ctx context.Context, rows []*verdict.Row, visit func(verdict.KnownRow)) error {
	requests, clusters := statement.NewRequests(len(rows)), map[string]bool{}
	for _, r := range rows {
		clusters[r.Cluster] = true
		requests.Add(codec.Minute(r.Event.RequestReceivedTimestamp), r.Request.Bytes())
	}
	p := clickhouse.Parameters{"clusters": statement.Texts(slices.Sorted(maps.Keys(clusters)))}
	where := requests.Where(p)
	res, err := s.conn.Query(statement.Params(ctx, p), fmt.Sprintf(knownQuery, s.table("events"), where))
	if err != nil {
		return err
	}
	defer res.Close()
	for res.Next() {
		var cluster, request, content, stage string
		var received, delay int64
		var size uint32
		var judged uint8
		var k verdict.KnownRow
		if err := res.Scan(&cluster, &request, &stage, &received, &delay, &k.Position.Epoch, &k.Position.Partition, &k.Position.Offset,
			&content, &size, &judged, &k.Revision); err != nil {
			return err
		}
		if len(request) != 16 || len(content) != 16 {
			return fmt.Errorf("a stored key has %d bytes, its content hash %d", len(request), len(content))
		}
		k.Cluster = strings.Clone(cluster)
		k.Request, k.Content = event.HashFromBytes([16]byte([]byte(request))), codec.KnownContent(content)
		k.Received, k.Size, k.HasVerdict = codec.FromMicro(received), int(size), judged != 0
		k.EventKey = event.EventKey(k.Request,
			&event.Event{Stage: event.Stage(strings.Clone(stage)), StageTimestamp: codec.FromMicro(received + delay)})
		visit(k)
	}
	return res.Err()
}
