package kafkatest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// What a producer was told is there is there after kill -9 and after an orderly stop, on the
// same ports.
func TestDataOutliveTheProcess(t *testing.T) {
	c := Run(t, Config{})
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	addr := kafka.TCP(c.Plaintext().Brokers...)
	transport := &kafka.Transport{}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: addr, Transport: transport}
	res, err := client.CreateTopics(ctx, &kafka.CreateTopicsRequest{Topics: []kafka.TopicConfig{{Topic: "t", NumPartitions: 1,
		ReplicationFactor: 1}}})
	if err == nil {
		err = res.Errors["t"]
	}
	if err != nil {
		t.Fatal(err)
	}
	w := &kafka.Writer{Addr: addr, Topic: "t", RequiredAcks: kafka.RequireAll, BatchTimeout: time.Millisecond, MaxAttempts: 1000,
		Transport: transport}
	defer w.Close()
	n := c.Nodes[0]
	for i, end := range []func(){n.Kill, func() { n.Restart(t) }} {
		if err := w.WriteMessages(ctx, kafka.Message{Value: []byte{byte(i)}}); err != nil {
			t.Fatal(err)
		}
		end()
		if err := n.Start(ctx); err != nil {
			t.Fatal(err)
		}
	}
	r := kafka.NewReader(kafka.ReaderConfig{Brokers: c.Plaintext().Brokers, Topic: "t", MaxWait: 100 * time.Millisecond})
	defer r.Close()
	for i := range 2 {
		m, err := r.ReadMessage(ctx)
		if err != nil || len(m.Value) != 1 || m.Value[0] != byte(i) {
			t.Fatalf("message %d: %v, %v", i, m.Value, err)
		}
	}
}

func TestWithoutJars(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if _, err := New(Config{Dir: t.TempDir()}); !errors.Is(err, errLacking) || !strings.Contains(err.Error(), "scripts/fetch-kafka.sh "+
		DefaultVersion) {
		t.Errorf("error %v", err)
	}
}

func TestEnvironment(t *testing.T) {
	t.Setenv(envBrokers, "")
	if _, ok := FromEnviron(); ok {
		t.Error("a cluster in an environment that names none")
	}
	want := Access{Brokers: []string{"a:1", "b:2"}, CAFile: "ca", Mechanism: "PLAIN", User: "u", PasswordFile: "p"}
	for _, v := range want.Environ() {
		name, value, _ := strings.Cut(v, "=")
		t.Setenv(name, value)
	}
	got, ok := FromEnviron()
	if !ok || strings.Join(got.Flags(), " ") != strings.Join(want.Flags(), " ") {
		t.Errorf("%v, want %v", got, want)
	}
}
