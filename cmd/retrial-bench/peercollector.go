package main

import (
	"bufio"
	"context"
	_ "embed" // the collector's settings
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"text/template"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/retrial-io/retrial/internal/atomicfile"
	"github.com/retrial-io/retrial/test/kafkatest"
)

// peerPartitions is how many partitions the topic has on either side: the same, and one, with which
// one process does best.
const peerPartitions = 1

//go:embed peercollector.yaml
var collectorConfig string

// brokers returns the addresses of the Kafka that withkafka started, empty if there is none.
func brokers() string {
	access, _ := kafkatest.FromEnviron()
	return strings.Join(access.Brokers, ",")
}

// topicName returns a name that nobody else has on this Kafka.
func topicName(dir string) string {
	return strings.ReplaceAll(filepath.Base(filepath.Dir(dir))+"-"+filepath.Base(dir), "_", "-")
}

// peerEngine is a store of its own for one run: test/chserver, the embedded engine over HTTP.
type peerEngine struct {
	*child
	url string // http://127.0.0.1:port
}

const peerUser, peerPassword = "retrial", "secret"

// dsn returns the engine's address with its user.
func (e *peerEngine) dsn() string {
	return strings.Replace(e.url, "://", "://"+peerUser+":"+peerPassword+"@", 1)
}

// RoundTrip sends a statement.
func (e *peerEngine) RoundTrip(req *http.Request) (*http.Response, error) {
	at, err := url.Parse(e.url)
	if err != nil {
		return nil, err
	}
	req.URL.Host = at.Host
	req.SetBasicAuth(peerUser, peerPassword)
	return http.DefaultTransport.RoundTrip(req)
}

func (b *peersBench) startEngine(ctx context.Context, folder string) (*peerEngine, error) {
	cmd := exec.CommandContext(ctx, filepath.Join(b.programs, "chserver"), "--path", folder, "--listen", "127.0.0.1:0", "--user",
		peerUser+":"+peerPassword)
	out, in, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout = in
	c, err := startChild(cmd, b.log)
	if err := errors.Join(err, in.Close()); err != nil {
		return nil, err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return nil, fmt.Errorf("chserver did not start: %w", err)
	}
	return &peerEngine{c, strings.TrimSpace(line)}, nil
}

// startCollector starts a collector of the name's set-up, with an engine and a topic of its own.
func (b *peersBench) startCollector(ctx context.Context, name, dir string) (*peer, error) {
	tuned, raw, lean := strings.Contains(name, "-tuned"), strings.Contains(name, "-raw"), strings.Contains(name, "-lean")
	folder := filepath.Join(dir, "engine")
	store, err := b.startEngine(ctx, folder)
	if err != nil {
		return nil, err
	}
	if lean {
		for _, sql := range []string{"CREATE DATABASE otel", leanTable} {
			if _, err := rawRows(ctx, store, sql); err != nil {
				return nil, err
			}
		}
	}
	topic := topicName(dir)
	if err := makeTopic(ctx, topic); err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	ca, cert, key, err := certificatesIn(dir)
	if err != nil {
		return nil, err
	}
	processors := "transform"
	if raw {
		processors = ""
	}
	var settings strings.Builder
	if err := template.Must(template.New("").Parse(collectorConfig)).Execute(&settings, map[string]any{
		"Listen": address, "Cert": cert, "Key": key, "CA": ca, "Brokers": brokers(), "Topic": topic, "Store": store.url, "User": peerUser,
		"Password": peerPassword, "Create": !lean, "Tuned": tuned, "Processors": processors,
	}); err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "collector.yaml")
	if err := atomicfile.Write(file, []byte(settings.String()), 0o600); err != nil {
		return nil, err
	}
	c, err := startChild(exec.CommandContext(ctx, filepath.Join(b.programs, "collector"), "--config", "file:"+file), b.log)
	if err != nil {
		return nil, err
	}
	c.beside = []int{store.cmd.Process.Pid}
	p := &peer{child: c, url: "https://" + address + "/v1/logs", kind: "application/x-protobuf", folder: folder, encode: encodeOTLP,
		stored: func(ctx context.Context) (rows, different int64, err error) {
			found, err := rawRows(ctx, store, "SELECT count(), uniqExact(Body) FROM otel.otel_logs")
			if err != nil {
				return 0, 0, err
			}
			return int64(numeric(found[0][0])), int64(numeric(found[0][1])), nil
		},
		end: func() error { return errors.Join(c.stop(), store.stop()) },
	}
	return p, c.answers(ctx, func() error {
		_, _, err := p.stored(ctx) // there is a table as soon as it is ready
		return err
	})
}

// leanTable is the exporter's table with its columns, codecs and order, without any index over text
// or attributes: less than it makes by itself.
const leanTable = `CREATE TABLE otel.otel_logs (
    Timestamp DateTime64(9) CODEC(Delta(8), ZSTD(1)), TraceId String CODEC(ZSTD(1)), SpanId String CODEC(ZSTD(1)), TraceFlags UInt8,
    SeverityText LowCardinality(String) CODEC(ZSTD(1)), SeverityNumber UInt8, ServiceName LowCardinality(String) CODEC(ZSTD(1)),
    Body String CODEC(ZSTD(1)), ResourceSchemaUrl LowCardinality(String) CODEC(ZSTD(1)),
    ResourceAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)), ScopeSchemaUrl LowCardinality(String) CODEC(ZSTD(1)),
    ScopeName String CODEC(ZSTD(1)), ScopeVersion LowCardinality(String) CODEC(ZSTD(1)),
    ScopeAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    LogAttributes Map(LowCardinality(String), String) CODEC(ZSTD(1)), EventName String CODEC(ZSTD(1))
) ENGINE = MergeTree PARTITION BY toDate(Timestamp) ORDER BY (toStartOfFiveMinutes(Timestamp), ServiceName, Timestamp)
SETTINGS index_granularity = 8192, ttl_only_drop_parts = 1`

// makeTopic makes the collector's topic, with room for a post in one message.
func makeTopic(ctx context.Context, topic string) error {
	client := kafka.Client{Addr: kafka.TCP(strings.Split(brokers(), ",")...), Timeout: 30 * time.Second}
	res, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{
		Topic: topic, NumPartitions: peerPartitions, ReplicationFactor: 1,
		ConfigEntries: []kafka.ConfigEntry{{ConfigName: "max.message.bytes", ConfigValue: "10485760"}},
	}}})
	if err != nil {
		return fmt.Errorf("create topic %s: %w", topic, err)
	}
	return res.Errors[topic]
}

// encodeOTLP makes an OTLP request in protobuf, the cheapest form a collector takes: each event is
// one record, its JSON the body.
func encodeOTLP(cluster string, lines [][]byte) ([]byte, error) {
	// Numbers of fields as in opentelemetry/proto/logs/v1/logs.proto and common.proto.
	field := func(to []byte, number uint64, value []byte) []byte {
		to = binary.AppendUvarint(to, number<<3|2)
		return append(binary.AppendUvarint(to, uint64(len(value))), value...)
	}
	text := func(s []byte) []byte { return field(nil, 1, s) } // AnyValue.string_value
	attribute := func(name, value string) []byte {
		return field(field(nil, 1, []byte(name)), 2, text([]byte(value)))
	}
	var records, record []byte
	for _, line := range lines {
		var e struct {
			Received time.Time `json:"requestReceivedTimestamp"`
		}
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, err
		}
		record = binary.LittleEndian.AppendUint64(append(record[:0], 1<<3|1), uint64(e.Received.UnixNano())) // time_unix_nano, fixed64
		record = field(record, 5, text(line))
		records = field(records, 2, record)
	}
	resource := field(field(nil, 1, attribute("service.name", "kube-apiserver")), 1, attribute("k8s.cluster.name", cluster))
	return field(nil, 1, field(field(nil, 1, resource), 2, records)), nil
}
