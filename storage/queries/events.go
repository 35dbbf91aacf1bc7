package queries

import (
	"context"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/native"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// located is where a listed event is found again.
type located struct {
	minute   uint32
	request  [16]byte
	received int64
	stage    string
}

// cursor is the place of the event in a list.
func (l *located) cursor() Cursor {
	return Cursor{Received: l.received, Key: hex.EncodeToString(l.request[:]) + l.stage}
}

// Events lists events, newest first, with their verdicts: of each what codec.InLine reads. It reads whole minutes from the newest back, in
// ever longer stretches until the page is full, so that a page of a busy cluster does not read its whole history: first the filter's
// columns alone, then the others of the rows of the page. Only the second looks whether a row was taken back; if one was, more are located.
func (rd *Reader) Events(ctx context.Context, f EventFilter) (out []verdict.Row, err error) {
	return rd.newest(ctx, f, codec.InLine)
}

// newest is Events of the columns that are wanted.
func (rd *Reader) newest(ctx context.Context, f EventFilter, want func(sql string) bool) (out []verdict.Row, err error) {
	if f.Limit <= 0 {
		f.Limit = 50
	}
	f.Limit = min(f.Limit, 1000)
	newest, oldest, err := rd.span(ctx, f)
	if err != nil {
		return nil, err
	}
	var found []located
	for end, step := newest, int64(60); end >= oldest && len(out) < f.Limit; {
		begin, most := max(end-step+60, oldest), f.Limit-len(out)-len(found)
		more, err := rd.locate(ctx, f, begin, end, most)
		if err != nil {
			return nil, fmt.Errorf("list events of cluster %q: %w", f.Cluster, err)
		}
		found = append(found, more...)
		full := len(more) == most
		if !full {
			end, step = begin-60, step*8
			if end >= oldest {
				continue
			}
		}
		rows, err := rd.listed(ctx, f, want, found)
		if err != nil {
			return nil, fmt.Errorf("list events of cluster %q: %w", f.Cluster, err)
		}
		if full { // behind the last, rows are only of a request that was not located whole
			f.Before = found[len(found)-1].cursor()
			rows = slices.DeleteFunc(rows, func(r verdict.Row) bool { return CursorOf(&r).behind(f.Before) })
		}
		out, found = append(out, rows...), nil
	}
	return out[:min(len(out), f.Limit)], nil
}

// span returns the newest and the oldest minute a list can touch.
func (rd *Reader) span(ctx context.Context, f EventFilter) (newest, oldest int64, err error) {
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
	err = rd.at.Conn.QueryRow(statement.Params(ctx, clickhouse.Parameters{"cluster": statement.Text(f.Cluster), "from": from, "to": to}),
		`SELECT count(), toInt64(toUnixTimestamp(max(minute))), toInt64(toUnixTimestamp(min(minute)))
FROM `+rd.at.Table("volume")+` WHERE cluster = {cluster:String} AND minute >= {from:UInt32} AND minute <= {to:UInt32}`).Scan(&n, &newest,
		&oldest)
	if err != nil {
		return 0, 0, fmt.Errorf("span of cluster %q: %w", f.Cluster, err)
	}
	if n == 0 {
		return 0, 1, nil
	}
	return newest, oldest, nil
}

// newestFirst is the order of a list.
const newestFirst = " ORDER BY request_received DESC, concat(lower(hex(request_key)), stage) DESC LIMIT {limit:UInt32}"

// conditions returns a filter's conditions except for the cluster, which is a parameter too. A row and the one that takes it back both meet
// them, or neither does.
func (f EventFilter) conditions() (all []string, p clickhouse.Parameters, err error) {
	p = clickhouse.Parameters{"cluster": statement.Text(f.Cluster)}
	if !f.From.IsZero() {
		all = append(all, "toUnixTimestamp64Micro(request_received) >= {from:Int64}")
		p["from"] = fmt.Sprint(f.From.UnixMicro())
	}
	if !f.To.IsZero() {
		all = append(all, "toUnixTimestamp64Micro(request_received) < {to:Int64}")
		p["to"] = fmt.Sprint(f.To.UnixMicro())
	}
	for _, c := range [...]struct{ name, column, value string }{
		{"subject", "subject", f.Subject}, {"recorded", "recorded", f.Recorded}, {"outcome", "outcome", f.Outcome},
		{"class", "class", f.Class}, {"verb", "verb", f.Verb}, {"resource", "object_resource", f.Resource},
	} {
		if c.value != "" {
			all = append(all, c.column+" = {"+c.name+":String}")
			p[c.name] = statement.Text(c.value)
		}
	}
	if f.Judged {
		all = append(all, "outcome != ''")
	}
	if f.also != "" {
		all = append(all, f.also)
	}
	more, err := where(f.Where, p)
	if err != nil {
		return nil, nil, err
	}
	all = append(all, more...)
	if f.Before.Key != "" {
		all = append(all,
			"(toUnixTimestamp64Micro(request_received), concat(lower(hex(request_key)), stage)) < ({at:Int64}, {key:String})")
		p["at"], p["key"] = fmt.Sprint(f.Before.Received), statement.Text(f.Before.Key)
	}
	return all, p, nil
}

// locate finds so many of the newest events of some minutes that a filter selects, those that were taken back included.
func (rd *Reader) locate(ctx context.Context, f EventFilter, begin, end int64, limit int) ([]located, error) {
	conditions, p, err := f.conditions()
	if err != nil {
		return nil, err
	}
	p["limit"] = fmt.Sprint(limit)
	conditions = append([]string{"cluster = {cluster:String}", "minute >= {begin:UInt32}", "minute <= {end:UInt32}"}, conditions...)
	p["begin"], p["end"] = fmt.Sprint(begin), fmt.Sprint(end)
	var request string
	return statement.Collect(ctx, rd.at, "SELECT toUInt32(minute), request_key, toUnixTimestamp64Micro(request_received), stage "+
		"FROM %s.events PREWHERE "+strings.Join(conditions, " AND ")+" WHERE sign = 1"+newestFirst, p,
		func(l *located) ([]any, func()) {
			return []any{&l.minute, &request, &l.received, &l.stage}, func() { copy(l.request[:], request) }
		})
}

// listed reads the events a filter selected.
func (rd *Reader) listed(ctx context.Context, f EventFilter, want func(sql string) bool, found []located) ([]verdict.Row, error) {
	if len(found) == 0 {
		return nil, nil
	}
	conditions, p, err := f.conditions()
	if err != nil {
		return nil, err
	}
	requests := statement.NewRequests(len(found))
	for i := range found {
		requests.Add(found[i].minute, found[i].request)
	}
	p["limit"] = fmt.Sprint(f.Limit)
	conditions = append([]string{"cluster = {cluster:String}", requests.Where(p)}, conditions...)
	return rd.list(ctx, want, strings.Join(conditions, " AND "), p)
}

// list reads the columns that are wanted of the events that a condition selects. A row and the one that takes it back both meet the
// condition, or neither does.
func (rd *Reader) list(ctx context.Context, want func(sql string) bool, where string, p clickhouse.Parameters) (out []verdict.Row,
	err error) {
	err = rd.standing(ctx, want, "PREWHERE "+where+" WHERE sign = 1"+newestFirst, p, func(r verdict.Row) error {
		out = append(out, r)
		return nil
	})
	return out, err
}

// ofAuditID returns the condition for rows of an audit ID: it first finds their minutes, by one index after the other, then reads those.
// With both columns in one condition, or with FINAL, the engine skips next to nothing of the table.
func (rd *Reader) ofAuditID(clusters, id string) (where string, p clickhouse.Parameters) {
	p = clickhouse.Parameters{"id": statement.Text(id)}
	minutes := "SELECT cluster, minute FROM " + rd.at.Table("events") + " WHERE " + clusters + " AND "
	var b [16]byte
	if !native.ParseUUID(&b, id) {
		return clusters + " AND (cluster, minute) IN (" + minutes + "audit_text = {id:String}) AND audit_text = {id:String}", p
	}
	// Rows from before have the text.
	return clusters + " AND (cluster, minute) IN (" + minutes + "audit_uuid = {id:UUID} UNION DISTINCT " + minutes +
		"audit_text = {id:String}) AND (audit_uuid = {id:UUID} OR audit_text = {id:String})", p
}

// VisitWhy visits every standing row of an audit ID, all stages, oldest first, one request after the other; of several requests when the ID
// was used again, of every cluster when cluster is empty. At most 1,000 rows: an ID is the client's to repeat. visit ends the reading by
// returning an error, which errors.Is finds in the result.
func (rd *Reader) VisitWhy(ctx context.Context, cluster, auditID string, visit func(verdict.Row) error) error {
	clusters := "true"
	if cluster != "" {
		clusters = "cluster = {cluster:String}"
	}
	where, p := rd.ofAuditID(clusters, auditID)
	p["cluster"] = statement.Text(cluster)
	if err := rd.standing(ctx, codec.EveryColumn, "PREWHERE "+where+
		" WHERE sign = 1 ORDER BY cluster, request_received, request_key, stage_delay, stage LIMIT 1000", p, visit); err != nil {
		return fmt.Errorf("find audit ID: %w", err)
	}
	return nil
}

// AuditIDs returns audit IDs that begin with a prefix, sorted, at most limit; of every cluster when cluster is empty. It
// reads the IDs of all events: those that are UUIDs as bytes, between the least and the greatest that begin so.
func (rd *Reader) AuditIDs(ctx context.Context, cluster, prefix string, limit int) ([]string, error) {
	p := clickhouse.Parameters{"cluster": statement.Text(cluster), "limit": fmt.Sprint(limit)}
	where := "(" + idBegins(prefix, binding(p)) + ")"
	if cluster != "" {
		where += " AND cluster = {cluster:String}"
	}
	sql := "SELECT DISTINCT audit_id FROM %s.events WHERE " + where + " ORDER BY audit_id LIMIT {limit:UInt32}"
	out, err := statement.Collect(ctx, rd.at, sql, p,
		func(id *string) ([]any, func()) { return []any{id}, nil })
	if err != nil {
		return nil, fmt.Errorf("audit IDs like %q: %w", prefix, err)
	}
	return out, nil
}

// Written is a stretch of time in which an object was written, bounds included.
type Written struct {
	Resource, Group, Namespace, Name string
	From, To                         time.Time
}

// writeVerbs are those of requests that change objects.
var writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection"} //nolint:gochecknoglobals // constant table

// IsWrite reports whether requests of a verb change objects.
func IsWrite(verb string) bool { return slices.Contains(writeVerbs, verb) }

// By reports whether an event can be the end of the request that wrote the object: a request of the
// object, or of the collection it is in, that began and ended within that time.
func (w *Written) By(e *event.Event) bool {
	ref := e.ObjectRef
	return ref != nil && e.Stage == event.StageResponseComplete && slices.Contains(writeVerbs, e.Verb) &&
		ref.Resource == w.Resource && ref.APIGroup == w.Group && (ref.Namespace == w.Namespace || ref.Namespace == "") &&
		(ref.Name == w.Name || ref.Name == "") &&
		!e.RequestReceivedTimestamp.Before(w.From) && !e.RequestReceivedTimestamp.After(w.To) && !e.StageTimestamp.After(w.To)
}

// mostWrites bounds the rows that Writes returns.
const mostWrites = 2000

// mostMinutes is how many minutes are named where requests of a few short windows are looked for: the primary key has them.
const mostMinutes = 2000

// writtenOne is the condition that a request may have written one of some objects when that was written.
const writtenOne = "arrayExists((r, s, n, f, t) -> object_resource = r AND (object_namespace = '' OR object_namespace = s) AND " +
	"(object_name = '' OR object_name = n) AND toUnixTimestamp64Micro(request_received) BETWEEN f AND t, {resources:Array(String)}, " +
	"{namespaces:Array(String)}, {names:Array(String)}, {from:Array(Int64)}, {to:Array(Int64)})"

// Writes returns the ends of the requests that may have written objects, newest first, by one query for all: of each what codec.Listed
// reads.
func (rd *Reader) Writes(ctx context.Context, cluster string, of []Written) ([]verdict.Row, error) {
	if len(of) == 0 {
		return nil, nil
	}
	p := clickhouse.Parameters{"cluster": statement.Text(cluster), "verbs": statement.Texts(slices.Clone(writeVerbs)),
		"stage": statement.Text(string(event.StageResponseComplete))}
	first, last := codec.Minute(of[0].From), codec.Minute(of[0].To)
	var minutes []uint32 // of all of them, unless they are many
	var resources, namespaces, names []string
	var from, to []int64
	for i := range of {
		w := &of[i]
		resources, namespaces, names = append(resources, w.Resource), append(namespaces, w.Namespace), append(names, w.Name)
		from, to = append(from, w.From.UnixMicro()), append(to, w.To.UnixMicro())
		begin, end := codec.Minute(w.From), codec.Minute(w.To)
		first, last = min(first, begin), max(last, end)
		for m := begin; m <= end && len(minutes) <= mostMinutes; m += 60 {
			minutes = append(minutes, m)
		}
	}
	p["first_minute"], p["last_minute"], p["limit"] = fmt.Sprint(first), fmt.Sprint(last), fmt.Sprint(mostWrites)
	p["resources"], p["namespaces"], p["names"] = statement.Texts(resources), statement.Texts(namespaces), statement.Texts(names)
	p["from"], p["to"] = statement.Numbers(from), statement.Numbers(to)
	// The resource first: few rows have one, and the rest is worked out for these alone.
	where := "cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND stage = {stage:String} " +
		"AND verb IN {verbs:Array(String)} AND object_resource IN {resources:Array(String)} AND " + writtenOne
	if len(minutes) <= mostMinutes {
		where = "minute IN {minutes:Array(UInt32)} AND " + where
		slices.Sort(minutes)
		p["minutes"] = statement.Numbers(slices.Compact(minutes))
	}
	out, err := rd.list(ctx, codec.Listed, where, p)
	if err != nil {
		return nil, fmt.Errorf("find writes in cluster %q: %w", cluster, err)
	}
	return out, nil
}
