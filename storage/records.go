package storage

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/native"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// SavePolicy stores observations of policy objects. It is all or nothing per call. An
// observation that is there already only moves to its new position, so that neither a retry
// nor events delivered again make the history longer.
func (s *Store) SavePolicy(ctx context.Context, versions []verdict.PolicyVersion) error {
	if len(versions) == 0 {
		return nil
	}
	var cluster, resource, namespace native.LowCard
	var name, uid, rv, observation native.TextColumn
	var deleted proto.ColUInt8
	var observed, koffset proto.ColInt64
	var epoch proto.ColUInt32
	var kpart, idx proto.ColInt32
	for i := range versions {
		v := &versions[i]
		cluster.Append(v.Cluster)
		resource.Append(v.Resource)
		namespace.Append(v.Namespace)
		name.Append(v.Name)
		uid.Append(v.UID)
		rv.Append(v.ResourceVersion)
		deleted.Append(codec.Bit(v.Deleted))
		observation.AppendBytes(v.Observation)
		observed.Append(v.Observed.UnixMicro())
		epoch.Append(v.Position.Epoch)
		kpart.Append(v.Position.Partition)
		koffset.Append(v.Position.Offset)
		idx.Append(v.Index)
	}
	err := s.insertColumns(ctx, "policy_objects", []proto.InputColumn{
		{Name: "cluster", Data: &cluster}, {Name: "resource", Data: &resource}, {Name: "namespace", Data: &namespace},
		{Name: "name", Data: &name}, {Name: "uid", Data: &uid}, {Name: "resource_version", Data: &rv},
		{Name: "deleted", Data: &deleted}, {Name: "observation", Data: &observation}, {Name: "observed", Data: native.Micros{ColInt64: &observed}},
		{Name: "epoch", Data: &epoch}, {Name: "kpart", Data: &kpart}, {Name: "koffset", Data: &koffset}, {Name: "idx", Data: &idx},
	}, len(versions))
	if err != nil {
		return fmt.Errorf("save %d policy versions: %w", len(versions), err)
	}
	return nil
}

// LoadPolicy visits every stored observation, those of one Kafka partition in the order of
// epoch, offset and index, and returns per partition the offset after the last one stored
// of the partition's own newest epoch.
func (s *Store) LoadPolicy(ctx context.Context, visit func(verdict.PolicyVersion) error) (map[int32]int64, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	next := map[int32]int64{} // rows come by epoch: what an older one left is overwritten
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
		err := s.policyRows(ctx, "", func(v verdict.PolicyVersion) error {
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
			v := &batch[i]
			next[v.Position.Partition] = v.Position.Offset + 1
			if err = visit(*v); err != nil {
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
		return nil, fmt.Errorf("load policy: %w", err)
	}
	return next, nil
}

// policyBatch is how many versions are handed over at a time.
const policyBatch = 512

// sparing sorts with little memory, on disk from there on: half a million versions with their
// objects would else be more than a query may use.
const sparing = "\nSETTINGS max_threads = 1, max_block_size = 8192, max_bytes_before_external_sort = 134217728"

// policyRows visits rows of the table in order; where selects them, empty: all. Reading goes on
// while what was read is visited: each is about half of the time it takes to start.
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

// SaveDeadLetters stores dead letters; a position stored before changes nothing, which makes
// a token needless.
func (s *Store) SaveDeadLetters(ctx context.Context, _ string, letters []verdict.StoredDeadLetter) error {
	if len(letters) == 0 {
		return nil
	}
	var cluster, source, reason native.LowCard
	var detail, digest, prefix native.TextColumn
	var size, received, koffset proto.ColInt64
	var ingestDay proto.ColUInt16
	var epoch proto.ColUInt32
	var kpart proto.ColInt32
	for i := range letters {
		l := &letters[i]
		cluster.Append(l.Cluster)
		source.Append(l.Source)
		reason.Append(l.Reason)
		detail.Append(l.Detail)
		digest.Append(l.Digest)
		size.Append(l.Size)
		prefix.AppendBytes(l.Prefix)
		received.Append(l.Received.UnixMicro())
		ingestDay.Append(codec.Day(l.Received))
		epoch.Append(l.Position.Epoch)
		kpart.Append(l.Position.Partition)
		koffset.Append(l.Position.Offset)
	}
	err := s.insertColumns(ctx, "dead_letters", []proto.InputColumn{
		{Name: "cluster", Data: &cluster}, {Name: "source", Data: &source}, {Name: "reason", Data: &reason},
		{Name: "detail", Data: &detail}, {Name: "digest", Data: &digest}, {Name: "size", Data: &size}, {Name: "prefix", Data: &prefix},
		{Name: "received", Data: native.Micros{ColInt64: &received}}, {Name: "ingest_day", Data: native.Dates{ColUInt16: &ingestDay}},
		{Name: "epoch", Data: &epoch}, {Name: "kpart", Data: &kpart}, {Name: "koffset", Data: &koffset},
	}, len(letters))
	if err != nil {
		return fmt.Errorf("save %d dead letters: %w", len(letters), err)
	}
	return nil
}

// insertColumns runs one INSERT into a table whose engine keeps one row per position, so
// that no deduplication is needed: a token that is remembered for a part that was lost
// would do harm.
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
	if len(samples) == 0 {
		return nil
	}
	var cluster, server native.LowCard
	var on proto.ColUInt16
	var taken, earliest, latest, started, events, hook, buffer, log, rejected proto.ColInt64
	for i := range samples {
		a := &samples[i]
		cluster.Append(a.Cluster)
		server.Append(a.APIServer)
		on.Append(codec.Day(a.Taken))
		taken.Append(a.Taken.UnixMicro())
		earliest.Append(a.Earliest.UnixMicro())
		latest.Append(a.Latest.UnixMicro())
		started.Append(a.Started.UnixMicro())
		events.Append(a.Events)
		hook.Append(a.WebhookErrors)
		buffer.Append(a.BufferErrors)
		log.Append(a.LogErrors)
		rejected.Append(a.Rejected)
	}
	err := s.insertColumns(ctx, "audit_samples", []proto.InputColumn{
		{Name: "cluster", Data: &cluster}, {Name: "apiserver", Data: &server}, {Name: "day", Data: native.Dates{ColUInt16: &on}},
		{Name: "taken", Data: native.Micros{ColInt64: &taken}}, {Name: "earliest", Data: native.Micros{ColInt64: &earliest}}, {Name: "latest", Data: native.Micros{ColInt64: &latest}},
		{Name: "started", Data: native.Micros{ColInt64: &started}}, {Name: "events", Data: &events}, {Name: "webhook_errors", Data: &hook},
		{Name: "buffer_errors", Data: &buffer}, {Name: "log_errors", Data: &log}, {Name: "rejected", Data: &rejected},
	}, len(samples))
	if err != nil {
		return fmt.Errorf("save %d readings of apiservers: %w", len(samples), err)
	}
	return nil
}

// longestDetail is how much of a question's detail is kept, in bytes.
const longestDetail = 4096

// SaveAsked adds questions to the query log. It is not idempotent: after an error some may
// be counted, and are counted again when they are saved again.
func (s *Store) SaveAsked(ctx context.Context, asked []queries.Asked) error {
	if len(asked) == 0 {
		return nil
	}
	var minute proto.ColUInt32
	var on proto.ColUInt16
	var door, caller, address, question, status native.LowCard
	var detail native.TextColumn
	var count, bytes, took proto.ColInt64
	for i := range asked {
		a := &asked[i]
		minute.Append(uint32(a.Time.Unix() / 60 * 60))
		on.Append(codec.Day(a.Time))
		door.Append(a.Door)
		caller.Append(a.Caller)
		address.Append(a.Address)
		question.Append(a.Question)
		detail.Append(strings.ToValidUTF8(a.Detail[:min(len(a.Detail), longestDetail)], ""))
		status.Append(a.Status)
		count.Append(a.Count)
		bytes.Append(a.Bytes)
		took.Append(a.Took.Microseconds())
	}
	err := s.insertColumns(ctx, "query_log", []proto.InputColumn{
		{Name: "minute", Data: native.Seconds{ColUInt32: &minute}}, {Name: "day", Data: native.Dates{ColUInt16: &on}}, {Name: "door", Data: &door},
		{Name: "caller", Data: &caller}, {Name: "address", Data: &address}, {Name: "question", Data: &question},
		{Name: "detail", Data: &detail}, {Name: "status", Data: &status}, {Name: "count", Data: &count},
		{Name: "bytes", Data: &bytes}, {Name: "micros", Data: &took},
	}, len(asked))
	if err != nil {
		return fmt.Errorf("save %d questions: %w", len(asked), err)
	}
	return nil
}

// SaveRejudge stores a request to judge again. Saving it twice changes nothing.
func (s *Store) SaveRejudge(ctx context.Context, r verdict.Rejudge) error {
	if err := s.saveRejudge(ctx, r.Cluster, r.ID, queries.NoPartition, 0, r); err != nil {
		return fmt.Errorf("save request to judge %q again: %w", r.Cluster, err)
	}
	return nil
}

// SaveRejudgeProgress stores how far a partition is; the greatest version of it stands.
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
	var name native.LowCard
	var ids, contents native.TextColumn
	name.Append(cluster)
	ids.Append(id)
	contents.AppendBytes(text)
	return s.insertColumns(ctx, "rejudges", []proto.InputColumn{
		{Name: "cluster", Data: &name}, {Name: "id", Data: &ids}, {Name: "kpart", Data: proto.ColInt32{partition}},
		{Name: "version", Data: proto.ColUInt64{version}}, {Name: "content", Data: &contents},
	}, 1)
}

// SaveFindings stores findings. Of each the one with the newest Updated stands; saving one
// again changes nothing.
func (s *Store) SaveFindings(ctx context.Context, list []verdict.StoredFinding) error {
	if len(list) == 0 {
		return nil
	}
	var cluster, rule, severity native.LowCard
	var id, subject, auditID, body native.TextColumn
	var first, last, updated, requests proto.ColInt64
	var span proto.ColUInt32
	var withdrawn proto.ColUInt8
	for i := range list {
		f := &list[i]
		cluster.Append(f.Cluster)
		rule.Append(f.Rule)
		id.Append(f.ID)
		severity.Append(f.Severity)
		subject.Append(f.Subject)
		auditID.Append(f.AuditID)
		first.Append(f.First.UnixMicro())
		last.Append(f.Last.UnixMicro())
		body.AppendBytes(f.Body)
		updated.Append(f.Updated.UnixMicro())
		requests.Append(f.Count)
		span.Append(statement.ClampSeconds(f.Span))
		withdrawn.Append(codec.Bit(f.Withdrawn))
	}
	err := s.insertColumns(ctx, "findings", []proto.InputColumn{
		{Name: "cluster", Data: &cluster}, {Name: "finding", Data: &rule}, {Name: "key", Data: &id}, {Name: "severity", Data: &severity},
		{Name: "subject", Data: &subject}, {Name: "audit_id", Data: &auditID}, {Name: "first_seen", Data: native.Micros{ColInt64: &first}}, {Name: "last_seen", Data: native.Micros{ColInt64: &last}},
		{Name: "detail", Data: &body}, {Name: "updated", Data: native.Micros{ColInt64: &updated}}, {Name: "requests", Data: &requests},
		{Name: "span", Data: native.Seconds{ColUInt32: &span}}, {Name: "withdrawn", Data: &withdrawn},
	}, len(list))
	if err != nil {
		return fmt.Errorf("save %d findings: %w", len(list), err)
	}
	return nil
}

// SaveSpansDone notes from which marks findings were worked out; the newest stands.
func (s *Store) SaveSpansDone(ctx context.Context, list []verdict.SpanDone) error {
	if len(list) == 0 {
		return nil
	}
	var cluster, rule native.LowCard
	var span proto.ColUInt32
	var digest, updated proto.ColInt64
	for i := range list {
		cluster.Append(list[i].Cluster)
		rule.Append(list[i].Rule)
		span.Append(statement.ClampSeconds(list[i].Span))
		digest.Append(list[i].Digest)
		updated.Append(list[i].Updated.UnixMicro())
	}
	err := s.insertColumns(ctx, "detections_done", []proto.InputColumn{
		{Name: "cluster", Data: &cluster}, {Name: "rule", Data: &rule}, {Name: "span", Data: native.Seconds{ColUInt32: &span}},
		{Name: "digest", Data: &digest}, {Name: "updated", Data: native.Micros{ColInt64: &updated}},
	}, len(list))
	if err != nil {
		return fmt.Errorf("save progress of detections: %w", err)
	}
	return nil
}
