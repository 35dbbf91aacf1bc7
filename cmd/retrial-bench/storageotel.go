package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"net/http"

	"github.com/retrial-io/retrial/internal/jsontext"
	"github.com/retrial-io/retrial/verdict"
)

// otelLines is how many events, from the first on, its tables get: bytes per event are the same at
// 200,000 and at a million, and filling them takes as long as filling ours.
const otelLines = 1_000_000

// otelTable is what the OpenTelemetry Collector's ClickHouse exporter makes for logs
// (opentelemetry-collector-contrib, exporter/clickhouseexporter, logs table).
const otelTable = `CREATE TABLE otel.otel_logs (
    Timestamp DateTime64(9) CODEC(Delta(8), ZSTD(1)),
    TimestampTime DateTime DEFAULT toDateTime(Timestamp),
    TraceId String CODEC(ZSTD(1)),
    SpanId String CODEC(ZSTD(1)),
    TraceFlags UInt8,
    SeverityText LowCardinality(String) CODEC(ZSTD(1)),
    SeverityNumber UInt8,
    ServiceName LowCardinality(String) CODEC(ZSTD(1)),
    Body String CODEC(ZSTD(1)),
    ResourceSchemaUrl LowCardinality(String) CODEC(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    ScopeSchemaUrl LowCardinality(String) CODEC(ZSTD(1)),
    ScopeName String CODEC(ZSTD(1)),
    ScopeVersion LowCardinality(String) CODEC(ZSTD(1)),
    ScopeAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    LogAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    INDEX idx_trace_id TraceId TYPE bloom_filter(0.001) GRANULARITY 1,
    INDEX idx_res_attr_key mapKeys(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_res_attr_value mapValues(ResourceAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_scope_attr_key mapKeys(ScopeAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_scope_attr_value mapValues(ScopeAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_log_attr_key mapKeys(LogAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_log_attr_value mapValues(LogAttributes) TYPE bloom_filter(0.01) GRANULARITY 1,
    INDEX idx_body Body TYPE tokenbf_v1(32768, 3, 0) GRANULARITY 8
) ENGINE = MergeTree
PARTITION BY toDate(TimestampTime)
PRIMARY KEY (ServiceName, TimestampTime)
ORDER BY (ServiceName, TimestampTime, Timestamp)
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1`

// otelLogs fills two tables of OpenTelemetry's with the lines: otel_logs as the Collector does with
// a JSON parser, which makes user and verb queryable (the members of the event are attributes,
// objects as JSON), and otel_plain as it does without a parser, with the line only.
type otelLogs struct {
	engine http.RoundTripper
	buf    []byte
}

func newOtelLogs(ctx context.Context, engine http.RoundTripper) (*otelLogs, error) {
	for _, sql := range []string{"CREATE DATABASE otel", otelTable, "CREATE TABLE otel.otel_plain AS otel.otel_logs"} {
		if _, err := rawRows(ctx, engine, sql); err != nil {
			return nil, err
		}
	}
	return &otelLogs{engine: engine}, nil
}

// insert adds the lines as records of the webhook event receiver: the line is the body, what
// is known of the sender is in the resource.
func (o *otelLogs) insert(ctx context.Context, rows []verdict.Row, lines [][]byte) error {
	for _, t := range []struct {
		table  string
		parsed bool
	}{{"otel_logs", true}, {"otel_plain", false}} {
		o.buf = o.buf[:0]
		for i := range rows {
			o.row(&rows[i], lines[i], t.parsed)
		}
		body, err := rawQuery(ctx, o.engine, "INSERT INTO otel."+t.table+" (Timestamp, ServiceName, Body, ResourceAttributes, ScopeName, "+
			"LogAttributes) FORMAT RowBinary", nil, bytes.NewReader(o.buf))
		if err != nil {
			return err
		}
		if err := body.Close(); err != nil {
			return err
		}
	}
	return nil
}

func (o *otelLogs) text(s []byte) { o.buf = append(binary.AppendUvarint(o.buf, uint64(len(s))), s...) }

func (o *otelLogs) row(r *verdict.Row, line []byte, parsed bool) {
	o.buf = binary.LittleEndian.AppendUint64(o.buf, uint64(r.Received.UnixNano()))
	o.text([]byte("kubernetes-audit"))
	o.text(line)
	o.buf = binary.AppendUvarint(o.buf, 2)
	o.text([]byte("service.name"))
	o.text([]byte("kubernetes-audit"))
	o.text([]byte("k8s.cluster.name"))
	o.text([]byte(r.Cluster))
	o.text([]byte("otlp/receiver/webhookevent"))
	if !parsed {
		o.buf = binary.AppendUvarint(o.buf, 0)
		return
	}
	n := 0
	jsontext.Members(line, func(string, []byte) bool { n++; return true })
	o.buf = binary.AppendUvarint(o.buf, uint64(n))
	jsontext.Members(line, func(name string, value []byte) bool {
		o.text([]byte(name))
		var s string
		if value[0] == '"' && json.Unmarshal(value, &s) == nil {
			value = []byte(s)
		}
		o.text(value)
		return true
	})
}
