package storage

import (
	"context"
	"fmt"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/native"
	"github.com/retrial-io/retrial/storage/queries"
)

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
