package queries

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// Standing visits the complete standing rows of the given known rows, for taking them back.
func (rd *Reader) Standing(ctx context.Context, known []verdict.KnownRow, visit func(verdict.Row) error) error {
	for len(known) > 0 {
		n := min(len(known), 1000)
		want := map[event.Hash128]bool{}
		clusters, requests := map[string]bool{}, statement.NewRequests(n)
		for _, k := range known[:n] {
			want[k.EventKey] = true
			clusters[k.Cluster] = true
			requests.Add(codec.Minute(k.Received), k.Request.Bytes())
		}
		p := clickhouse.Parameters{"clusters": statement.Texts(slices.Collect(maps.Keys(clusters)))}
		err := rd.rows(ctx, "cluster IN {clusters:Array(String)} AND "+requests.Where(p), p, func(r verdict.Row) error {
			if !want[r.EventKey] {
				return nil
			}
			return visit(r)
		})
		if err != nil {
			return fmt.Errorf("read %d standing rows: %w", n, err)
		}
		known = known[n:]
	}
	return nil
}

// Spans bounds the requests of a Kafka partition's rows by cluster, in whole minutes.
func (rd *Reader) Spans(ctx context.Context, partition int32) ([]verdict.Span, error) {
	type minutes struct {
		cluster     string
		first, last uint32
	}
	list, err := statement.Collect(ctx, rd.at,
		"SELECT cluster, toUInt32(min(minute)), toUInt32(max(minute)) FROM %s.events WHERE kpart = {kpart:Int32} GROUP BY cluster",
		clickhouse.Parameters{"kpart": fmt.Sprint(partition)},
		func(m *minutes) ([]any, func()) { return []any{&m.cluster, &m.first, &m.last}, nil })
	if err != nil {
		return nil, fmt.Errorf("read the spans of partition %d: %w", partition, err)
	}
	out := make([]verdict.Span, len(list))
	for i, m := range list {
		out[i] = verdict.Span{Cluster: m.cluster, From: time.Unix(int64(m.first), 0).UTC(), To: time.Unix(int64(m.last)+60, 0).UTC()}
		// What the type of minutes cannot hold was clamped to its ends.
		if m.first == codec.Minute(time.Unix(0, 0)) {
			out[i].From = time.Time{}
		}
		if m.last == codec.Minute(time.Unix(1<<40, 0)) {
			out[i].To = time.Unix(1<<40, 0).UTC()
		}
	}
	return out, nil
}

// Affected visits the standing rows with a verdict that the filter selects, complete with event and verdict, in the order of the table. It
// streams; the snapshot is that of the moment the query began.
func (rd *Reader) Affected(ctx context.Context, f verdict.AffectedFilter, visit func(verdict.Row) error) error {
	where := []string{"cluster = {cluster:String}", "kpart IN {kparts:Array(Int32)}", "outcome != ''",
		"minute >= {from_minute:UInt32}", "toUnixTimestamp64Micro(request_received) >= {from:Int64}"}
	p := clickhouse.Parameters{
		"cluster": statement.Text(f.Cluster), "kparts": statement.Numbers(f.Partitions),
		"from": fmt.Sprint(f.From.UnixMicro()), "from_minute": fmt.Sprint(codec.Minute(f.From)),
	}
	if !f.To.IsZero() {
		where = append(where, "minute <= {to_minute:UInt32}", "toUnixTimestamp64Micro(request_received) <= {to:Int64}")
		p["to"], p["to_minute"] = fmt.Sprint(f.To.UnixMicro()), fmt.Sprint(codec.Minute(f.To))
	}
	if !f.Ended.IsZero() {
		where = append(where, "toUnixTimestamp64Micro(request_received) + greatest(stage_delay, 0) >= {ended:Int64}")
		p["ended"] = fmt.Sprint(f.Ended.UnixMicro())
	}
	var who, reviewed, of []string
	if len(f.Users) > 0 {
		reviewed = append(reviewed, "JSONExtractString(review, 'user') IN {users:Array(String)}")
		who = append(who, "subject IN {users:Array(String)}", "user_name IN {users:Array(String)}")
		p["users"] = statement.Texts(f.Users)
	}
	if len(f.Groups) > 0 {
		reviewed = append(reviewed, "hasAny(JSONExtract(review, 'groups', 'Array(String)'), {groups:Array(String)})")
		who = append(who, "hasAny(user_groups, {groups:Array(LowCardinality(String))})",
			"hasAny(impersonated_groups, {groups:Array(LowCardinality(String))})")
		p["groups"] = statement.Texts(f.Groups)
	}
	if len(who) > 0 {
		of = append(of, "("+strings.Join(who, " OR ")+")")
	}
	if len(f.Namespaces) > 0 {
		// The right to impersonate is asked elsewhere than the request itself.
		of = append(of, "(attr_namespace IN {namespaces:Array(String)} OR impersonated_name != '')")
		p["namespaces"] = statement.Texts(f.Namespaces)
	}
	if len(of) > 0 {
		// A review asks about another subject and another place than its request.
		about := "review != ''"
		if len(reviewed) > 0 {
			about += " AND (" + strings.Join(reviewed, " OR ") + ")"
		}
		where = append(where, "("+strings.Join(of, " AND ")+" OR "+about+")")
	}
	for _, c := range [...]struct {
		name, column string
		list         []string
	}{
		{"credentials", "credential", f.Credentials}, {"verbs", "attr_verb", f.Only.Verbs},
		{"resources", "attr_resource", f.Only.Resources}, {"only_namespaces", "attr_namespace", f.Only.Namespaces},
		{"outcomes", "outcome", f.Only.Outcomes}, {"classes", "class", f.Only.Classes},
	} {
		if len(c.list) > 0 {
			where = append(where, c.column+" IN {"+c.name+":Array(String)}")
			p[c.name] = statement.Texts(c.list)
		}
	}
	if err := rd.rowsBefore(ctx, strings.Join(where, " AND "), p, visit); err != nil {
		return fmt.Errorf("read affected rows of cluster %q: %w", f.Cluster, err)
	}
	return nil
}

// StoredKey is the identity of one standing row.
type StoredKey struct {
	Request, Event event.Hash128
}

// EventKeys visits the keys of every standing row of a cluster, for comparing what was sent
// with what is stored. It reads what they are made of.
func (rd *Reader) EventKeys(ctx context.Context, cluster string, visit func(StoredKey) error) error {
	p := clickhouse.Parameters{"cluster": statement.Text(cluster)}
	err := rd.standing(ctx, keyColumn, "WHERE sign = 1 AND cluster = {cluster:String}", p,
		func(r verdict.Row) error { return visit(StoredKey{Request: r.Request, Event: r.EventKey}) })
	if err != nil {
		return fmt.Errorf("read the keys of cluster %q: %w", cluster, err)
	}
	return nil
}

// keyColumn tells which columns a row's keys are made of.
func keyColumn(sql string) bool {
	for _, name := range []string{"request_key", "stage", "request_received", "stage_delay"} {
		if sql == name || strings.HasSuffix(sql, "("+name+")") {
			return true
		}
	}
	return false
}

// VisitRows visits every standing row of a cluster, complete, in the order of the table. visit
// ends the reading by returning an error, which errors.Is finds in the result.
func (rd *Reader) VisitRows(ctx context.Context, cluster string, visit func(verdict.Row) error) error {
	if err := rd.rows(ctx, "cluster = {cluster:String}", clickhouse.Parameters{"cluster": statement.Text(cluster)}, visit); err != nil {
		return fmt.Errorf("read the rows of cluster %q: %w", cluster, err)
	}
	return nil
}

// rows visits the standing rows that a condition selects.
func (rd *Reader) rows(ctx context.Context, where string, p clickhouse.Parameters, visit func(verdict.Row) error) error {
	return rd.standing(ctx, codec.EveryColumn, "WHERE sign = 1 AND "+where, p, visit)
}

// rowsBefore is rows with a condition that is applied before pairs are taken out, which spares most of the work when it selects few. A row
// and the one that takes it back must both meet it, or neither: they agree in all columns but the sign.
func (rd *Reader) rowsBefore(ctx context.Context, condition string, p clickhouse.Parameters, visit func(verdict.Row) error) error {
	return rd.standing(ctx, codec.EveryColumn, "PREWHERE "+condition+" WHERE sign = 1", p, visit)
}

// standing visits standing rows with the columns that are wanted.
func (rd *Reader) standing(ctx context.Context, want func(sql string) bool, where string, p clickhouse.Parameters,
	visit func(verdict.Row) error) error {
	ctx, cancel := context.WithCancel(statement.Params(ctx, p))
	defer cancel()
	r := codec.NewStored()
	list, to := r.Reads(want)
	res, err := rd.at.Conn.Query(ctx, "SELECT "+strings.Join(list, ", ")+" FROM "+rd.at.Table("events")+" FINAL "+where)
	if err != nil {
		return err
	}
	defer res.Close()
	for res.Next() {
		r.Reset()
		if err := res.Scan(to...); err != nil {
			return err
		}
		row, err := r.Row()
		if err != nil {
			return err
		}
		if err := visit(row); err != nil {
			return err
		}
	}
	return res.Err()
}
