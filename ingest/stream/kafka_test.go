package stream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/retrial-io/retrial/test/kafkatest"
)

// TestRealKafka starts brokers of its own, to stop them, to deny rights, or to have several:
// what the embedded broker has no like of. make test-kafka runs it, on every version, beside
// the suite above on brokers that only serve.
func TestRealKafka(t *testing.T) {
	if !kafkatest.All() {
		t.Skip("takes a minute for each version of Kafka: make test-kafka")
	}
	for _, version := range kafkatest.Versions {
		t.Run(version, func(t *testing.T) {
			t.Run("refusals", func(t *testing.T) {
				k := kafkatest.Run(t, kafkatest.Config{Version: version})
				t.Run("connections", func(t *testing.T) { refusedConnections(t, k) })
				t.Run("rights", func(t *testing.T) { neededRights(t, k) })
				t.Run("topics", func(t *testing.T) { topicsOfOthers(t, k) })
				t.Run("recreated", func(t *testing.T) { recreated(t, k) })
			})
			t.Run("restarts", func(t *testing.T) {
				k := kafkatest.Run(t, kafkatest.Config{Version: version})
				node := k.Nodes[0]
				outage(t, k.SASL("SCRAM-SHA-512"), func() { node.Kill(); node.Restart(t) }, func() { node.Restart(t) })
			})
			t.Run("three brokers", func(t *testing.T) {
				k := kafkatest.Run(t, kafkatest.Config{Version: version, Brokers: 3})
				outage(t, k.Plaintext(), func() { k.Nodes[1].Kill() }, func() { k.Nodes[1].Restart(t); k.Nodes[2].Restart(t) })
			})
		})
	}
}

// realConfig returns a client's configuration for a cluster.
func realConfig(t *testing.T, a kafkatest.Access) Config {
	t.Helper()
	cfg := Config{Partitions: 6, FetchWait: 20 * time.Millisecond, HeartbeatInterval: 100 * time.Millisecond,
		SessionTimeout: 6 * time.Second, ProduceTimeout: time.Minute}
	cfg.access(t, a)
	return cfg
}

func realClient(t *testing.T, cfg Config) *Client {
	t.Helper()
	c, err := NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// admin returns a client that may do everything.
func admin(t *testing.T, k *kafkatest.Cluster) *kafka.Client {
	t.Helper()
	transport := &kafka.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &kafka.Client{Addr: kafka.TCP(k.Plaintext().Brokers...), Transport: transport}
}

// refusedConnections: each way to configure a connection wrong is told apart.
func refusedConnections(t *testing.T, k *kafkatest.Cluster) {
	plain, scram := k.Plaintext(), k.SASL("SCRAM-SHA-256")
	wrong := filepath.Join(t.TempDir(), "wrong")
	if err := os.WriteFile(wrong, []byte("another-password"), 0o600); err != nil {
		t.Fatal(err)
	}
	with := func(a kafkatest.Access, change func(*kafkatest.Access)) kafkatest.Access {
		change(&a)
		return a
	}
	for _, tc := range []struct {
		name string
		a    kafkatest.Access
		kind error
		says string
	}{
		{"wrong password, SCRAM", with(scram, func(a *kafkatest.Access) { a.PasswordFile = wrong }), ErrAuth,
			`wrong user name or password: user "retrial", mechanism SCRAM-SHA-256`},
		{"wrong password, PLAIN", with(k.SASL("PLAIN"), func(a *kafkatest.Access) { a.PasswordFile = wrong }), ErrAuth,
			`wrong user name or password: user "retrial", mechanism PLAIN`},
		{"unknown user", with(scram, func(a *kafkatest.Access) { a.User = "unheard-of" }), ErrAuth,
			`wrong user name or password: user "unheard-of"`},
		{"no SASL", with(scram, func(a *kafkatest.Access) { a.Mechanism = "" }), ErrTransient, "does this listener require SASL,"},
		{"no TLS", with(scram, func(a *kafkatest.Access) { a.CAFile = "" }), ErrTransient, "does this listener require TLS,"},
		{"neither", kafkatest.Access{Brokers: scram.Brokers}, ErrTransient, "does this listener require TLS or SASL,"},
		{"TLS to a plain listener", with(plain, func(a *kafkatest.Access) { a.CAFile = scram.CAFile }), ErrTransient, "at the TLS " +
			"handshake: does this listener use TLS?"},
		{"nobody there", kafkatest.Access{Brokers: []string{"127.0.0.1:1"}}, ErrTransient, "connection refused"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := realConfig(t, tc.a)
			err := realClient(t, cfg).EnsureTopics(deadline(t))
			if err == nil {
				t.Fatal("no error")
			}
			if !errors.Is(err, tc.kind) || !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), tc.a.Brokers[0]) {
				t.Errorf("error %v, want one that says %q", err, tc.says)
			}
			if strings.Contains(err.Error(), "another-password") {
				t.Errorf("the error holds the password: %v", err)
			}
		})
	}
	t.Run("unknown authority", func(t *testing.T) {
		cfg := realConfig(t, scram)
		cfg.TLS.RootCAs = nil
		err := realClient(t, cfg).Ping(deadline(t))
		if !errors.Is(err, ErrAuth) || !strings.Contains(err.Error(), "does not trust the broker's certificate") {
			t.Errorf("error %v", err)
		}
	})
	// A password that is changed while the client runs: every request says so, in good time.
	t.Run("while it runs", func(t *testing.T) {
		cfg := realConfig(t, scram)
		cfg.SASL.Password = "another-password"
		c := realClient(t, cfg)
		_, err := c.HighWatermarks(deadline(t), TopicEvents)
		if !errors.Is(err, ErrAuth) || !strings.Contains(err.Error(), "wrong user name or password") {
			t.Errorf("high watermarks: %v", err)
		}
		err = c.ConsumeEvents(deadline(t), GroupReplay, newCollector(1))
		if !errors.Is(err, ErrAuth) || !strings.Contains(err.Error(), "wrong user name or password") {
			t.Errorf("consume: %v", err)
		}
		if err := c.Producer().Produce(deadline(t), recs(0, 1)...); !errors.Is(err, ErrAuth) {
			t.Errorf("produce: %v", err)
		}
	})
}

// neededRights takes each of the rights away that the documentation asks for: what then does
// not work says what is missing.
func neededRights(t *testing.T, k *kafkatest.Cluster) {
	for i, lacking := range kafkatest.Needed("") {
		t.Run(fmt.Sprintf("without %v on %v", lacking.Operation, lacking.Resource), func(t *testing.T) {
			prefix := fmt.Sprintf("rights-%d.", i)
			for j, r := range kafkatest.Needed(prefix) {
				if j != i {
					if err := k.Grant(deadline(t), r); err != nil {
						t.Fatal(err)
					}
				}
			}
			cfg := realConfig(t, k.SASL("SCRAM-SHA-512"))
			cfg.TopicPrefix = prefix
			c := realClient(t, cfg)
			err := c.EnsureTopics(deadline(t))
			if err == nil {
				err = c.Producer().Produce(deadline(t), recs(0, 3)...)
			}
			if err == nil {
				col := newCollector(3)
				ctx, end := context.WithCancel(deadline(t))
				go func() {
					select {
					case <-col.full:
						end()
					case <-ctx.Done():
					}
				}()
				err = c.ConsumeEvents(ctx, GroupReplay, col)
				end()
			}
			switch lacking.Operation {
			case kafka.ACLOperationTypeDescribeConfigs: // a warning
				if err != nil {
					t.Errorf("error %v", err)
				}
			default:
				if !errors.Is(err, ErrAuth) {
					t.Errorf("error %v, want ErrAuth", err)
				}
			}
		})
	}
}

// topicsOfOthers: topics that an administrator has made are used by a user that may make none.
func topicsOfOthers(t *testing.T, k *kafkatest.Cluster) {
	for _, tc := range []struct {
		name, limit string
		may         []kafka.ACLOperationType // beside Read and Write
		says        string                   // of the error; empty: it works
	}{
		{"as they must be", "16777216", nil, ""},
		{"as they must be, seen", "16777216", []kafka.ACLOperationType{kafka.ACLOperationTypeDescribeConfigs}, ""},
		{"too small", "1048588", []kafka.ACLOperationType{kafka.ACLOperationTypeDescribeConfigs}, "max.message.bytes"},
		{"too small, to be raised", "1048588", []kafka.ACLOperationType{kafka.ACLOperationTypeDescribeConfigs,
			kafka.ACLOperationTypeAlterConfigs}, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			prefix := strings.NewReplacer(" ", "-", ",", "").Replace(tc.name) + "."
			req := &kafka.CreateTopicsRequest{}
			for _, topic := range topicNames {
				req.Topics = append(req.Topics, kafka.TopicConfig{Topic: prefix + topic, NumPartitions: 3, ReplicationFactor: 1,
					ConfigEntries: []kafka.ConfigEntry{{ConfigName: "max.message.bytes", ConfigValue: tc.limit}}})
			}
			res, err := admin(t, k).CreateTopics(deadline(t), req)
			if err != nil {
				t.Fatal(err)
			}
			for topic, err := range res.Errors {
				if err != nil {
					t.Fatal(topic, err)
				}
			}
			for _, op := range append(tc.may, kafka.ACLOperationTypeRead, kafka.ACLOperationTypeWrite) {
				if err := k.Grant(deadline(t), kafkatest.Right{Resource: kafka.ResourceTypeTopic, Prefix: prefix + "audit.",
					Operation: op}); err != nil {
					t.Fatal(err)
				}
			}
			cfg := realConfig(t, k.SASL("SCRAM-SHA-256"))
			cfg.TopicPrefix = prefix
			c := realClient(t, cfg)
			err = c.EnsureTopics(deadline(t))
			if tc.says != "" {
				if !errors.Is(err, ErrAuth) || !strings.Contains(err.Error(), tc.says) {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if n, err := c.Partitions(deadline(t), TopicEvents); n != 3 || err != nil {
				t.Errorf("%d partitions, %v", n, err)
			}
			if err := c.Producer().Produce(deadline(t), rec("k", noise(7<<20))); err != nil {
				t.Errorf("a large record: %v", err)
			}
		})
	}
}

// recreated: a topic is deleted and made again while a consumer is away. Its offsets are lower
// than what was committed; all of its records are read, under an epoch of their own.
func recreated(t *testing.T, k *kafkatest.Cluster) {
	cfg := realConfig(t, k.Plaintext())
	cfg.Partitions, cfg.TopicPrefix = 1, "recreated."
	w := &world{cfg: cfg}
	w.connect(t)
	read := func(from, to int) Assignment {
		t.Helper()
		if err := w.Producer().Produce(deadline(t), recs(from, to)...); err != nil {
			t.Fatal(err)
		}
		c := newCollector(to - from)
		stop := w.consume(t, c)
		wait(t, "records", c.full)
		stop()
		return c.assign[0]
	}
	first := read(0, 50)
	name := w.topic(TopicEvents)
	res, err := admin(t, k).DeleteTopics(deadline(t), &kafka.DeleteTopicsRequest{Topics: []string{name}})
	if err != nil || res.Errors[name] != nil {
		t.Fatal(err, res.Errors[name])
	}
	w.Client.Close()
	w.connect(t)
	// With the topic Kafka forgets its commits: the next epoch is the time, in seconds.
	for tick := time.Tick(10 * time.Millisecond); time.Now().Unix() <= int64(first.Epoch); {
		<-tick
	}
	second := read(0, 10)
	if second.Committed != 0 || second.Epoch <= first.Epoch {
		t.Errorf("taken up at %+v, before it was %+v", second, first)
	}
}

// outage produces from three goroutines and consumes in two members of a group while brokers
// go and come back: what was acknowledged is read, and in each partition in the order of its
// offsets, without gaps.
func outage(t *testing.T, a kafkatest.Access, disturbances ...func()) {
	cfg := realConfig(t, a)
	w := &world{cfg: cfg}
	w.connect(t)
	second := realClient(t, cfg)
	const producers, perCall = 3, 20
	acknowledged := make(chan int, 1024)
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var group sync.WaitGroup
	for p := range producers {
		group.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				from := (p*1_000_000 + n) * perCall
				if err := w.Producer().Produce(context.Background(), recs(from, from+perCall)...); err != nil {
					t.Errorf("produce: %v", err)
					return
				}
				acknowledged <- from
			}
		})
	}
	c := newCollector(0)
	stops := []func(){consumeWith(t, w.Client, c), consumeWith(t, second, c)}
	var calls []int
	until := func(n int) {
		for target := len(calls) + n; len(calls) < target; {
			select {
			case from := <-acknowledged:
				calls = append(calls, from)
			case <-time.After(2 * time.Minute): // the disturbances take their time
				t.Fatalf("nothing is acknowledged; %d calls were", len(calls))
			}
		}
	}
	for _, disturb := range disturbances {
		until(50)
		disturb()
		until(50)
	}
	end()
	go func() { group.Wait(); close(acknowledged) }()
	for from := range acknowledged {
		calls = append(calls, from)
	}
	marks, err := w.HighWatermarks(deadline(t), TopicEvents)
	if err != nil {
		t.Fatal(err)
	}
	c.reach(t, marks)
	for _, stop := range stops {
		stop()
	}
	missing := 0
	for _, from := range calls {
		for _, r := range recs(from, from+perCall) {
			if c.seen[string(r.Value)] == 0 {
				missing++
			}
		}
	}
	if missing > 0 || c.gap > 0 {
		t.Errorf("%d of %d acknowledged records were never read, %d offsets were missing", missing, len(calls)*perCall, c.gap)
	}
	again := 0
	for p, offsets := range c.parts {
		next := int64(0)
		for _, o := range offsets {
			if o > next {
				t.Fatalf("partition %d: offset %d came when %d was due", p, o, next)
			}
			if o < next {
				again++
			}
			next = max(next, o+1)
		}
	}
	t.Logf("%d records acknowledged, %d offsets read, %d of them again, %d assignments", len(calls)*perCall, len(c.seen), again,
		len(c.assign))
}

// reach waits until the collector has read up to the ends of the partitions.
func (c *collector) reach(t *testing.T, ends map[int32]int64) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	limit := time.After(2 * time.Minute)
	for {
		c.mu.Lock()
		left := int64(0)
		for p, end := range ends {
			if offsets := c.parts[p]; len(offsets) > 0 {
				left += max(0, end-1-offsets[len(offsets)-1])
			} else {
				left += end
			}
		}
		c.mu.Unlock()
		if left == 0 {
			return
		}
		select {
		case <-tick.C:
		case <-limit:
			t.Fatalf("%d records are left to be read", left)
		}
	}
}
