package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/native"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// SavePolicy stores observations of policy objects, all or none. One that is stored already only moves to its new position: neither a retry
// nor redelivered events lengthen the history.
func (s *Store) SavePolicy(ctx context.Context, versions []verdict.PolicyVersion) error {
	var r tableRows
	for i := range versions {
		r.begin()
		v := &versions[i]
		r.word("cluster", v.Cluster)
		r.word("resource", v.Resource)
		r.word("namespace", v.Namespace)
		r.text("name", v.Name)
		r.text("uid", v.UID)
		r.text("resource_version", v.ResourceVersion)
		add[proto.ColUInt8](&r, "deleted").Append(codec.Bit(v.Deleted))
		r.bytes("observation", v.Observation)
		r.time("observed", v.Observed)
		r.position(v.Position)
		add[proto.ColInt32](&r, "idx").Append(v.Index)
	}
	return s.insertRows(ctx, "policy_objects", "policy versions", &r)
}

// LoadPolicy visits every stored observation of some clusters, those of one Kafka partition in the order of
// epoch, offset and index.
func (s *Store) LoadPolicy(ctx context.Context, clusters []string, visit func(verdict.PolicyVersion) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches := make(chan []verdict.PolicyVersion, 4)
	read := make(chan error, 1)
	go func() {
		defer close(batches)
		batch := make([]verdict.PolicyVersion, 0, policyBatch)
		send := func() error {
			select {
			case batches <- batch:
				batch = make([]verdict.PolicyVersion, 0, policyBatch)
				return nil
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		of := statement.Params(ctx, clickhouse.Parameters{"clusters": statement.Texts(clusters)})
		err := s.policyRows(of, " WHERE cluster IN {clusters:Array(String)}", func(v verdict.PolicyVersion) error {
			if batch = append(batch, v); len(batch) < policyBatch {
				return nil
			}
			return send()
		})
		if err == nil {
			err = send()
		}
		read <- err
	}()
	var err error
	for batch := range batches {
		for i := range batch {
			if err = visit(batch[i]); err != nil {
				break
			}
		}
		if err != nil {
			cancel()
			break
		}
	}
	for range batches { // until the reader has noticed
	}
	if failed := <-read; err == nil {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("load policy: %w", err)
	}
	return nil
}

// PolicyEnds returns, by Kafka partition, the newest epoch of which observations are stored, and the offset after the last of them.
func (s *Store) PolicyEnds(ctx context.Context) (map[int32]event.Position, error) {
	const query = "SELECT kpart, epoch, max(koffset) + 1 FROM %s.policy_objects GROUP BY kpart, epoch ORDER BY epoch"
	list, err := statement.Collect(ctx, s.at(), query, nil, func(p *event.Position) ([]any, func()) {
		return []any{&p.Partition, &p.Epoch, &p.Offset}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("read where policy ends: %w", err)
	}
	ends := make(map[int32]event.Position, len(list))
	for _, p := range list {
		ends[p.Partition] = p
	}
	return ends, nil
}

// PolicyClusters returns, sorted, the clusters of which observations are stored.
func (s *Store) PolicyClusters(ctx context.Context) ([]string, error) {
	list, err := statement.Collect(ctx, s.at(), "SELECT DISTINCT toString(cluster) AS name FROM %s.policy_objects ORDER BY name", nil,
		func(name *string) ([]any, func()) { return []any{name}, nil })
	if err != nil {
		return nil, fmt.Errorf("list clusters with a policy: %w", err)
	}
	return list, nil
}

// policyBatch is how many versions are handed over at a time.
const policyBatch = 512

// sparing sorts in little memory and spills to disk: half a million versions with their objects would otherwise exceed a query's limit.
const sparing = "\nSETTINGS max_threads = 1, max_block_size = 8192, max_bytes_before_external_sort = 134217728"

// policyRows visits the rows that where selects, all if it is empty, in order. It reads ahead while it visits: each takes about half of a
// start's time.
func (s *Store) policyRows(ctx context.Context, where string, visit func(verdict.PolicyVersion) error) error {
	res, err := s.conn.Query(ctx, `SELECT cluster, resource, namespace, name, uid, resource_version, deleted, observation,
    toUnixTimestamp64Micro(observed), epoch, kpart, koffset, idx
FROM `+s.table("policy_objects")+` FINAL`+where+` ORDER BY epoch, kpart, koffset, idx`+sparing)
	if err != nil {
		return err
	}
	defer res.Close()
	for res.Next() {
		var v verdict.PolicyVersion
		var deleted uint8
		var observed int64
		if err := res.Scan(&v.Cluster, &v.Resource, &v.Namespace, &v.Name, &v.UID, &v.ResourceVersion, &deleted, &v.Observation,
			&observed, &v.Position.Epoch, &v.Position.Partition, &v.Position.Offset, &v.Index); err != nil {
			return err
		}
		v.Deleted, v.Observed = deleted != 0, codec.FromMicro(observed)
		if err := visit(v); err != nil {
			return err
		}
	}
	return res.Err()
}

// SaveDeadLetters stores dead letters; a position stored before changes nothing, so no token is needed.
func (s *Store) SaveDeadLetters(ctx context.Context, _ string, letters []verdict.StoredDeadLetter) error {
	var r tableRows
	for i := range letters {
		r.begin()
		l := &letters[i]
		r.word("cluster", l.Cluster)
		r.word("source", l.Source)
		r.word("reason", l.Reason)
		r.text("detail", l.Detail)
		r.text("digest", l.Digest)
		r.number("size", l.Size)
		r.bytes("prefix", l.Prefix)
		r.time("received", l.Received)
		r.day("ingest_day", l.Received)
		r.position(l.Position)
	}
	return s.insertRows(ctx, "dead_letters", "dead letters", &r)
}

// tableRows are rows of a table. Each row has the same columns, whose values are added in one order.
type tableRows struct {
	columns  []proto.InputColumn
	at, rows int // the column that comes next
}

// begin begins a row.
func (r *tableRows) begin() { r.at, r.rows = 0, r.rows+1 }

// next returns the column that comes next, which the first row makes.
func next[C proto.ColInput](r *tableRows, name string, empty func() C) C {
	if r.at == len(r.columns) {
		r.columns = append(r.columns, proto.InputColumn{Name: name, Data: empty()})
	}
	r.at++
	return r.columns[r.at-1].Data.(C)
}

// add is next for a column that its zero value is.
func add[T any, C interface {
	*T
	proto.ColInput
}](r *tableRows, name string) C {
	return next(r, name, func() C { return new(T) })
}

func (r *tableRows) word(name, value string) { add[native.LowCard](r, name).Append(value) }
func (r *tableRows) text(name, value string) { add[native.TextColumn](r, name).Append(value) }
func (r *tableRows) bytes(name string, value []byte) {
	add[native.TextColumn](r, name).AppendBytes(value)
}

func (r *tableRows) number(name string, n int64) { add[proto.ColInt64](r, name).Append(n) }

func (r *tableRows) position(at event.Position) {
	add[proto.ColUInt32](r, "epoch").Append(at.Epoch)
	add[proto.ColInt32](r, "kpart").Append(at.Partition)
	r.number("koffset", at.Offset)
}

func (r *tableRows) time(name string, t time.Time) {
	next(r, name, func() native.Micros { return native.Micros{ColInt64: new(proto.ColInt64)} }).Append(t.UnixMicro())
}

func (r *tableRows) day(name string, t time.Time) {
	next(r, name, func() native.Dates { return native.Dates{ColUInt16: new(proto.ColUInt16)} }).Append(codec.Day(t))
}

func (r *tableRows) seconds(name string, n uint32) {
	next(r, name, func() native.Seconds { return native.Seconds{ColUInt32: new(proto.ColUInt32)} }).Append(n)
}

// insertRows is insertColumns of rows, if there are any; what names them in an error.
func (s *Store) insertRows(ctx context.Context, table, what string, r *tableRows) error {
	if r.rows == 0 {
		return nil
	}
	if err := s.insertColumns(ctx, table, r.columns, r.rows); err != nil {
		return fmt.Errorf("save %d %s: %w", r.rows, what, err)
	}
	return nil
}

// insertColumns runs one INSERT into a table whose engine keeps one row per position, so that no deduplication is needed: a token that is
// remembered for a part that was lost would do harm.
func (s *Store) insertColumns(ctx context.Context, table string, columns []proto.InputColumn, rows int) error {
	var data native.Payload
	if err := data.Encode(columns, rows); err != nil {
		return fmt.Errorf("encode: %w", err)
	}
	settings := merge(clickhouse.Settings{}, insertSettings)
	settings["insert_deduplicate"] = 0
	ctx = clickhouse.Context(withPayload(ctx, &data), clickhouse.WithSettings(settings))
	return s.conn.Exec(ctx, "INSERT INTO "+s.table(table)+" ("+columnNames(columns)+") FORMAT Native")
}

// SaveAuditSamples adds readings. Saving one twice changes nothing.
func (s *Store) SaveAuditSamples(ctx context.Context, samples []queries.AuditSample) error {
	var r tableRows
	for i := range samples {
		r.begin()
		a := &samples[i]
		r.word("cluster", a.Cluster)
		r.word("apiserver", a.APIServer)
		r.day("day", a.Taken)
		r.time("taken", a.Taken)
		r.time("earliest", a.Earliest)
		r.time("latest", a.Latest)
		r.time("started", a.Started)
		r.number("events", a.Events)
		r.number("webhook_errors", a.WebhookErrors)
		r.number("buffer_errors", a.BufferErrors)
		r.number("log_errors", a.LogErrors)
		r.number("rejected", a.Rejected)
	}
	return s.insertRows(ctx, "audit_samples", "readings of apiservers", &r)
}

// longestDetail is how much of a question's detail is kept, in bytes.
const longestDetail = 4096

// SaveAsked adds questions to the query log. It is not idempotent: questions saved again after an error may count twice.
func (s *Store) SaveAsked(ctx context.Context, asked []queries.Asked) error {
	var r tableRows
	for i := range asked {
		r.begin()
		a := &asked[i]
		r.seconds("minute", uint32(a.Time.Unix()/60*60))
		r.day("day", a.Time)
		r.word("door", a.Door)
		r.word("caller", a.Caller)
		r.word("address", a.Address)
		r.word("question", a.Question)
		r.text("detail", strings.ToValidUTF8(a.Detail[:min(len(a.Detail), longestDetail)], ""))
		r.word("status", a.Status)
		r.number("count", a.Count)
		r.number("bytes", a.Bytes)
		r.number("micros", a.Took.Microseconds())
	}
	return s.insertRows(ctx, "query_log", "questions", &r)
}

// SaveRejudge stores a request to judge again. Saving it twice changes nothing.
func (s *Store) SaveRejudge(ctx context.Context, r verdict.Rejudge) error {
	if err := s.saveRejudge(ctx, r.Cluster, r.ID, queries.NoPartition, 0, r); err != nil {
		return fmt.Errorf("save request to judge %q again: %w", r.Cluster, err)
	}
	return nil
}

// SaveRejudgeProgress stores how far a partition is; its greatest version stands.
func (s *Store) SaveRejudgeProgress(ctx context.Context, cluster, id string, p verdict.RejudgeProgress) error {
	if err := s.saveRejudge(ctx, cluster, id, p.Partition, p.Version, p); err != nil {
		return fmt.Errorf("save progress of judging %q again: %w", cluster, err)
	}
	return nil
}

func (s *Store) saveRejudge(ctx context.Context, cluster, id string, partition int32, version uint64, content any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	var r tableRows
	r.begin()
	r.word("cluster", cluster)
	r.text("id", id)
	add[proto.ColInt32](&r, "kpart").Append(partition)
	add[proto.ColUInt64](&r, "version").Append(version)
	r.bytes("content", text)
	return s.insertColumns(ctx, "rejudges", r.columns, r.rows)
}

// SaveFindings stores findings; of each, the version with the newest Updated stands. Saving one again changes nothing.
func (s *Store) SaveFindings(ctx context.Context, list []verdict.StoredFinding) error {
	var r tableRows
	for i := range list {
		r.begin()
		f := &list[i]
		r.word("cluster", f.Cluster)
		r.word("finding", f.Rule)
		r.text("key", f.ID)
		r.word("severity", f.Severity)
		r.text("subject", f.Subject)
		r.text("audit_id", f.AuditID)
		r.time("first_seen", f.First)
		r.time("last_seen", f.Last)
		r.bytes("detail", f.Body)
		r.time("updated", f.Updated)
		r.number("requests", f.Count)
		r.seconds("span", statement.ClampSeconds(f.Span))
		add[proto.ColUInt8](&r, "withdrawn").Append(codec.Bit(f.Withdrawn))
	}
	return s.insertRows(ctx, "findings", "findings", &r)
}

// SaveSpansDone stores from which marks findings were worked out; the newest entry stands.
func (s *Store) SaveSpansDone(ctx context.Context, list []verdict.SpanDone) error {
	var r tableRows
	for i := range list {
		r.begin()
		r.word("cluster", list[i].Cluster)
		r.word("rule", list[i].Rule)
		r.seconds("span", statement.ClampSeconds(list[i].Span))
		r.number("digest", list[i].Digest)
		r.time("updated", list[i].Updated)
	}
	return s.insertRows(ctx, "detections_done", "spans of detections", &r)
}
