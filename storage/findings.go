package storage

import (
	"context"
	"fmt"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/native"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

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
