package storage

import (
	"context"
	"fmt"
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

// Known returns the standing rows that have the same cluster and request key as any of the
// given rows, in no order: a handful when the rows are new, all of them when they are
// delivered again. Only Cluster, Request and the request's time of the rows are looked at.
func (s *Store) Known(ctx context.Context, rows []verdict.Row) ([]verdict.KnownRow, error) {
	began := time.Now()
	byCluster := map[string][]int{}
	for i := range rows {
		byCluster[rows[i].Cluster] = append(byCluster[rows[i].Cluster], i)
	}
	var out []verdict.KnownRow
	for cluster, list := range byCluster {
		for len(list) > 0 {
			n := min(len(list), knownChunk)
			var err error
			if out, err = s.knownChunk(ctx, out, cluster, rows, list[:n]); err != nil {
				return nil, fmt.Errorf("look up %d requests of cluster %q: %w", n, cluster, err)
			}
			list = list[n:]
		}
	}
	s.metrics.known.Observe(time.Since(began).Seconds())
	return out, nil
}

// knownQuery finds standing rows of requests.
const knownQuery = `SELECT request_key, stage, toUnixTimestamp64Micro(request_received) AS received, stage_delay,
    epoch, kpart, koffset, content, size, outcome != '' AS judged, row_revision
FROM %s
PREWHERE cluster = {cluster:String} AND %s
GROUP BY ALL
HAVING sum(sign) > 0`

func (s *Store) knownChunk(ctx context.Context, out []verdict.KnownRow, cluster string, rows []verdict.Row, list []int) ([]verdict.KnownRow, error) {
	seen := make(map[event.Hash128]bool, len(list))
	requests := statement.NewRequests(len(list))
	for _, i := range list {
		r := &rows[i]
		if seen[r.Request] {
			continue
		}
		seen[r.Request] = true
		requests.Add(codec.Minute(r.Event.RequestReceivedTimestamp), r.Request.Bytes())
	}
	p := clickhouse.Parameters{"cluster": statement.Text(cluster)}
	where := requests.Where(p)
	res, err := s.conn.Query(statement.Params(ctx, p), fmt.Sprintf(knownQuery, s.table("events"), where))
	if err != nil {
		return nil, err
	}
	defer res.Close()
	for res.Next() {
		var request, content, stage string
		var received, delay int64
		var size uint32
		var judged uint8
		k := verdict.KnownRow{Cluster: cluster}
		if err := res.Scan(&request, &stage, &received, &delay, &k.Position.Epoch, &k.Position.Partition, &k.Position.Offset, &content, &size, &judged, &k.Revision); err != nil {
			return nil, err
		}
		if len(request) != 16 || len(content) != 16 {
			return nil, fmt.Errorf("a stored key has %d bytes, its content hash %d", len(request), len(content))
		}
		k.Request, k.Content = event.HashFromBytes([16]byte([]byte(request))), codec.KnownContent(content)
		k.Received, k.Size, k.HasVerdict = codec.FromMicro(received), int(size), judged != 0
		k.EventKey = event.EventKey(k.Request, &event.Event{Stage: event.Stage(strings.Clone(stage)), StageTimestamp: codec.FromMicro(received + delay)})
		out = append(out, k)
	}
	return out, res.Err()
}
