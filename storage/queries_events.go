package storage

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/native"
	"github.com/retrial-io/retrial/verdict"
)

// Events lists events, newest first, with their verdicts. It looks at whole minutes from
// the newest on and widens the stretch until the page is full, so that a page of a busy
// cluster does not read its whole history.
func (s *Store) Events(ctx context.Context, f EventFilter) ([]verdict.Row, error) {
	if f.Limit <= 0 {
		f.Limit = 50
	}
	f.Limit = min(f.Limit, 1000)
	newest, oldest, err := s.span(ctx, f)
	if err != nil || newest < oldest {
		return nil, err
	}
	var out []verdict.Row
	step := int64(60)
	for end := newest; ; {
		begin := max(end-step+60, oldest)
		out = out[:0]
		// A stretch is read again from its newest end when it was too short: pages stay
		// in one order however the stretches fall.
		if err := s.eventsIn(ctx, f, begin, newest, func(r verdict.Row) error { out = append(out, r); return nil }); err != nil {
			return nil, fmt.Errorf("list events of cluster %q: %w", f.Cluster, err)
		}
		if len(out) >= f.Limit || begin <= oldest {
			return out, nil
		}
		end, step = begin-60, step*8
	}
}

// span returns the newest and the oldest minute a list can touch.
func (s *Store) span(ctx context.Context, f EventFilter) (newest, oldest int64, err error) {
	from, to := "0", fmt.Sprint(uint32(1<<32-1))
	if !f.From.IsZero() {
		from = fmt.Sprint(codec.Minute(f.From))
	}
	if !f.To.IsZero() {
		to = fmt.Sprint(codec.Minute(f.To.Add(-time.Microsecond)))
	}
	if f.Before.Key != "" {
		to = fmt.Sprint(min(codec.Minute(codec.FromMicro(f.Before.Received)), codec.Minute(time.Unix(1<<32-1, 0))))
	}
	var n uint64
	err = s.conn.QueryRow(params(ctx, clickhouse.Parameters{"cluster": text(f.Cluster), "from": from, "to": to}),
		`SELECT count(), toInt64(toUnixTimestamp(max(minute))), toInt64(toUnixTimestamp(min(minute)))
FROM `+s.table("volume")+` WHERE cluster = {cluster:String} AND minute >= {from:UInt32} AND minute <= {to:UInt32}`).Scan(&n, &newest, &oldest)
	if err != nil {
		return 0, 0, fmt.Errorf("span of cluster %q: %w", f.Cluster, err)
	}
	if n == 0 {
		return 0, 1, nil
	}
	return newest, oldest, nil
}

func (s *Store) eventsIn(ctx context.Context, f EventFilter, begin, end int64, visit func(verdict.Row) error) error {
	where := []string{"cluster = {cluster:String}", "minute >= {begin:UInt32}", "minute <= {end:UInt32}"}
	p := clickhouse.Parameters{"cluster": text(f.Cluster), "begin": fmt.Sprint(begin), "end": fmt.Sprint(end), "limit": fmt.Sprint(f.Limit)}
	if !f.From.IsZero() {
		where = append(where, "toUnixTimestamp64Micro(request_received) >= {from:Int64}")
		p["from"] = fmt.Sprint(f.From.UnixMicro())
	}
	if !f.To.IsZero() {
		where = append(where, "toUnixTimestamp64Micro(request_received) < {to:Int64}")
		p["to"] = fmt.Sprint(f.To.UnixMicro())
	}
	for _, c := range [...]struct{ name, column, value string }{
		{"subject", "subject", f.Subject}, {"recorded", "recorded", f.Recorded}, {"outcome", "outcome", f.Outcome}, {"class", "class", f.Class},
		{"verb", "verb", f.Verb}, {"resource", "object_resource", f.Resource},
	} {
		if c.value != "" {
			where = append(where, c.column+" = {"+c.name+":String}")
			p[c.name] = text(c.value)
		}
	}
	if f.Judged {
		where = append(where, "outcome != ''")
	}
	if f.Before.Key != "" {
		where = append(where, "(toUnixTimestamp64Micro(request_received), concat(lower(hex(request_key)), stage)) < ({at:Int64}, {key:String})")
		p["at"], p["key"] = fmt.Sprint(f.Before.Received), text(f.Before.Key)
	}
	return s.rows(ctx, strings.Join(where, " AND ")+
		" ORDER BY request_received DESC, concat(lower(hex(request_key)), stage) DESC LIMIT {limit:UInt32}", p, visit)
}

// ofAuditID is the condition that a row of some clusters has an audit ID: first the minutes are
// looked for in which rows do, by one index after the other, then those are read. Asked for
// both columns at once, or with FINAL, the engine leaves out next to nothing of the table.
func (s *Store) ofAuditID(clusters, id string) (where string, p clickhouse.Parameters) {
	p = clickhouse.Parameters{"id": text(id)}
	minutes := "SELECT cluster, minute FROM " + s.table("events") + " WHERE " + clusters + " AND "
	var b [16]byte
	if !native.ParseUUID(&b, id) {
		return clusters + " AND (cluster, minute) IN (" + minutes + "audit_text = {id:String}) AND audit_text = {id:String}", p
	}
	// Rows from before have the text.
	return clusters + " AND (cluster, minute) IN (" + minutes + "audit_uuid = {id:UUID} UNION DISTINCT " + minutes +
		"audit_text = {id:String}) AND (audit_uuid = {id:UUID} OR audit_text = {id:String})", p
}

// VisitWhy visits every standing row of an audit ID, all stages, oldest first, one request
// after the other; of several requests when the ID was used again, of every cluster when
// cluster is empty. At most 1,000 rows: an ID is the client's to repeat. visit ends the
// reading by returning an error, which errors.Is finds in the result.
func (s *Store) VisitWhy(ctx context.Context, cluster, auditID string, visit func(verdict.Row) error) error {
	clusters := "true"
	if cluster != "" {
		clusters = "cluster = {cluster:String}"
	}
	where, p := s.ofAuditID(clusters, auditID)
	p["cluster"] = text(cluster)
	if err := s.rows(ctx, where+" ORDER BY cluster, request_received, request_key, stage_delay, stage LIMIT 1000", p, visit); err != nil {
		return fmt.Errorf("find audit ID: %w", err)
	}
	return nil
}
