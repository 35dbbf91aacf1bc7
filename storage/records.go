package storage

import (
	"context"
	"fmt"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/native"
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
