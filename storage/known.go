package storage

import (
	"context"
	"fmt"
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

// lookUp answers all members.
func (s *Store) lookUp(ctx context.Context, members []*lookup) error {
	began := time.Now()
	type asked struct {
		rows []*verdict.Row
		by   map[event.Hash128]uint64 // members, a bit each
	}
	clusters := map[string]*asked{}
	for n, m := range members {
		for i := range m.rows {
			r := &m.rows[i]
			c := clusters[r.Cluster]
			if c == nil {
				c = &asked{by: make(map[event.Hash128]uint64, len(m.rows))}
				clusters[r.Cluster] = c
			}
			who := c.by[r.Request]
			if who == 0 {
				c.rows = append(c.rows, r)
			}
			c.by[r.Request] = who | 1<<n
		}
	}
	for cluster, c := range clusters {
		for rows := range slices.Chunk(c.rows, knownChunk) {
			err := s.knownChunk(ctx, cluster, rows, func(k verdict.KnownRow) {
				for who := c.by[k.Request]; who != 0; who &= who - 1 {
					m := members[bits.TrailingZeros64(who)]
					m.known = append(m.known, k)
				}
			})
			if err != nil {
				return fmt.Errorf("look up %d requests of cluster %q: %w", len(rows), cluster, err)
			}
		}
	}
	s.metrics.known.Observe(time.Since(began).Seconds())
	return nil
}

// knownQuery finds standing rows of requests.
const knownQuery = `SELECT request_key, stage, toUnixTimestamp64Micro(request_received) AS received, stage_delay,
    epoch, kpart, koffset, content, size, outcome != '' AS judged, row_revision
FROM %s
PREWHERE cluster = {cluster:String} AND %s
GROUP BY ALL
HAVING sum(sign) > 0`

// knownChunk visits the standing rows of distinct requests of a cluster.
func (s *Store) knownChunk(ctx context.Context, cluster string, rows []*verdict.Row, visit func(verdict.KnownRow)) error {
	requests := statement.NewRequests(len(rows))
	for _, r := range rows {
		requests.Add(codec.Minute(r.Event.RequestReceivedTimestamp), r.Request.Bytes())
	}
	p := clickhouse.Parameters{"cluster": statement.Text(cluster)}
	where := requests.Where(p)
	res, err := s.conn.Query(statement.Params(ctx, p), fmt.Sprintf(knownQuery, s.table("events"), where))
	if err != nil {
		return err
	}
	defer res.Close()
	for res.Next() {
		var request, content, stage string
		var received, delay int64
		var size uint32
		var judged uint8
		k := verdict.KnownRow{Cluster: cluster}
		if err := res.Scan(&request, &stage, &received, &delay, &k.Position.Epoch, &k.Position.Partition, &k.Position.Offset, &content,
			&size, &judged, &k.Revision); err != nil {
			return err
		}
		if len(request) != 16 || len(content) != 16 {
			return fmt.Errorf("a stored key has %d bytes, its content hash %d", len(request), len(content))
		}
		k.Request, k.Content = event.HashFromBytes([16]byte([]byte(request))), codec.KnownContent(content)
		k.Received, k.Size, k.HasVerdict = codec.FromMicro(received), int(size), judged != 0
		k.EventKey = event.EventKey(k.Request,
			&event.Event{Stage: event.Stage(strings.Clone(stage)), StageTimestamp: codec.FromMicro(received + delay)})
		visit(k)
	}
	return res.Err()
}
