package main

import (
	"cmp"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"text/template"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// partitions of the topic on either side: the same, and one, with which one process does best.
const partitions = 1

//go:embed collector.yaml
var collectorConfig string

// runPeer posts the events to a collector and waits until its table holds them all.
func runPeer(ctx context.Context, o options, form string) (f figure, err error) {
	store, err := startEngine(ctx, o, "peer-"+form)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, store.end()) }()
	db, err := openStore(store)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if o.lean {
		if err := leanTable(ctx, db); err != nil {
			return f, err
		}
	}
	topic := fmt.Sprintf("peer-%s-%d", form, os.Getpid())
	if err := makeTopic(ctx, o.brokers, topic); err != nil {
		return f, err
	}
	certs, err := makeCertificates(o.dir)
	if err != nil {
		return f, err
	}
	address, err := freeAddress()
	if err != nil {
		return f, err
	}
	collector, err := startCollector(ctx, o, form, store, certs, topic, address)
	if err != nil {
		return f, err
	}
	defer func() { err = errors.Join(err, collector.end()) }()
	load, err := prepare(o)
	if err != nil {
		return f, err
	}
	if err := waitTable(ctx, db, collector); err != nil {
		return f, err
	}
	spent := func() (process, engine time.Duration, err error) {
		process, err = cpuOf(collector.Process.Pid)
		engine, e := cpuOf(store.Process.Pid)
		return process, engine, errors.Join(err, e)
	}
	process, engine, err := spent()
	if err != nil {
		return f, err
	}
	fmt.Fprintf(os.Stderr, "posting %d events\n", load.events)
	began := time.Now()
	if err := load.post(ctx, certs.client(), "https://"+address+"/v1/logs", o.connections); err != nil {
		return f, err
	}
	for f.stored < load.events {
		select {
		case <-ctx.Done():
			return f, ctx.Err()
		case <-time.After(250 * time.Millisecond):
		}
		if f.stored, err = count(ctx, db, "count()"); err != nil {
			return f, err
		}
		if time.Since(began) > 30*time.Minute {
			return f, fmt.Errorf("only %d of %d events are stored", f.stored, load.events)
		}
	}
	f.wall = time.Since(began)
	if err := idle(ctx, collector.Process.Pid, store.Process.Pid); err != nil {
		return f, err
	}
	processAfter, engineAfter, err := spent()
	if err != nil {
		return f, err
	}
	f.events, f.cpu, f.engine = load.events, processAfter-process, engineAfter-engine
	different, err := count(ctx, db, "uniqExact(Body)")
	if err != nil {
		return f, err
	}
	var indexes string
	if err := db.QueryRow(ctx, "SELECT arrayStringConcat(arraySort(groupArray(name || ' ' || type)), ', ') FROM "+
		"system.data_skipping_indices WHERE table = 'otel_logs'").Scan(&indexes); err != nil {
		return f, err
	}
	f.rows = fmt.Sprintf("%d different bodies, indexes: %s", different, cmp.Or(indexes, "none"))
	if f.stored != load.events || different != load.events {
		return f, fmt.Errorf("%d rows, %d different bodies of %d events", f.stored, different, load.events)
	}
	return f, nil
}

func startCollector(ctx context.Context, o options, form string, store *engine, certs certificates,
	topic, address string) (*process, error) {
	processors := ""
	if form == formParsed {
		processors = "transform"
	}
	file := filepath.Join(o.dir, "collector.yaml")
	w, err := os.Create(file)
	if err != nil {
		return nil, err
	}
	err = template.Must(template.New("").Parse(collectorConfig)).Execute(w, map[string]any{
		"Listen": address, "Cert": certs.cert, "Key": certs.key, "CA": certs.ca, "Brokers": o.brokers, "Topic": topic,
		"Store": store.url, "User": storeUser, "Password": storePassword, "Create": !o.lean, "Tuned": o.tuned, "Processors": processors,
	})
	if err := errors.Join(err, w.Close()); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, o.collector, "--config", "file:"+file)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	return start(cmd)
}

func openStore(store *engine) (driver.Conn, error) {
	opt, err := clickhouse.ParseDSN(store.dsn())
	if err != nil {
		return nil, err
	}
	return clickhouse.Open(opt)
}

// waitTable waits until the collector has made its table, or found ours.
func waitTable(ctx context.Context, db driver.Conn, collector *process) error {
	for range 600 {
		n, err := count(ctx, db, "count()")
		if err == nil && n == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-collector.ended:
			return fmt.Errorf("it ended before it had a table: %w", collector.err)
		case <-time.After(200 * time.Millisecond):
		}
	}
	return errors.New("it made no table")
}

func count(ctx context.Context, db driver.Conn, what string) (int64, error) {
	var n uint64
	err := db.QueryRow(ctx, "SELECT "+what+" FROM otel.otel_logs").Scan(&n)
	return int64(n), err
}

// leanTable makes the exporter's table with its columns, codecs and order, without any index
// over text or attributes: less than it makes by itself.
func leanTable(ctx context.Context, db driver.Conn) error {
	for _, sql := range []string{"CREATE DATABASE otel", leanSQL} {
		if err := db.Exec(ctx, sql); err != nil {
			return err
		}
	}
	return nil
}

const leanSQL = `CREATE TABLE otel.otel_logs (
    Timestamp DateTime64(9) CODEC(Delta(8), ZSTD(1)), TraceId String CODEC(ZSTD(1)), SpanId String CODEC(ZSTD(1)), TraceFlags UInt8,
    SeverityText LowCardinality(String) CODEC(ZSTD(1)), SeverityNumber UInt8, ServiceName LowCardinality(String) CODEC(ZSTD(1)), Body String CODEC(ZSTD(1)),
    ResourceSchemaUrl LowCardinality(String) CODEC(ZSTD(1)), ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    ScopeSchemaUrl LowCardinality(String) CODEC(ZSTD(1)), ScopeName String CODEC(ZSTD(1)), ScopeVersion LowCardinality(String) CODEC(ZSTD(1)),
    ScopeAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)), LogAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)), EventName String CODEC(ZSTD(1))
) ENGINE = MergeTree PARTITION BY toDate(Timestamp) ORDER BY (toStartOfFiveMinutes(Timestamp), ServiceName, Timestamp)
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1`

// makeTopic makes the peer's topic with room for a post in one message.
func makeTopic(ctx context.Context, brokers, topic string) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers))
	if err != nil {
		return err
	}
	defer client.Close()
	t := kmsg.NewCreateTopicsRequestTopic()
	t.Topic, t.NumPartitions, t.ReplicationFactor = topic, partitions, 1
	limit := "10485760"
	t.Configs = []kmsg.CreateTopicsRequestTopicConfig{{Name: "max.message.bytes", Value: &limit}}
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics, req.TimeoutMillis = append(req.Topics, t), 30_000
	res, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	for _, made := range res.Topics {
		if made.ErrorCode != 0 {
			return fmt.Errorf("create topic %s: error %d", topic, made.ErrorCode)
		}
	}
	return nil
}

func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
