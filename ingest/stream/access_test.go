package stream

import (
	"context"
	"crypto/pbkdf2"
	"crypto/sha512"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
	"go.uber.org/zap/zaptest/observer"
)

// line is a network whose connections can be cut, as a broker that restarts cuts them.
type line struct {
	mu    sync.Mutex
	conns []net.Conn
}

func (l *line) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err == nil {
		l.mu.Lock()
		l.conns = append(l.conns, conn)
		l.mu.Unlock()
	}
	return conn, err
}

func (l *line) cut() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.conns {
		c.Close()
	}
	l.conns = nil
}

// guarded is a broker that asks who a client is and what it may do, and somebody who may
// change both.
type guarded struct {
	*kfake.Cluster
	admin *kafka.Client
}

func newGuarded(t *testing.T) guarded {
	t.Helper()
	var acls []kfake.ACL
	for _, op := range []kmsg.ACLOperation{kmsg.ACLOperationRead, kmsg.ACLOperationWrite, kmsg.ACLOperationCreate,
		kmsg.ACLOperationDescribeConfigs} {
		acls = append(acls, kfake.ACL{Resource: kmsg.ACLResourceTypeTopic, Name: "audit.", Pattern: kmsg.ACLResourcePatternTypePrefixed,
			Operation: op, Allow: true})
	}
	acls = append(acls, kfake.ACL{Resource: kmsg.ACLResourceTypeGroup, Name: "retrial-", Pattern: kmsg.ACLResourcePatternTypePrefixed,
		Operation: kmsg.ACLOperationRead, Allow: true})
	broker, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.EnableACLs(), kfake.GroupMinSessionTimeout(time.Second),
		kfake.Superuser("PLAIN", "admin", "admins-word"), kfake.User("SCRAM-SHA-512", "retrial", "secret-word", acls...))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	transport := &kafka.Transport{SASL: plain.Mechanism{Username: "admin", Password: "admins-word"}}
	t.Cleanup(transport.CloseIdleConnections)
	return guarded{broker, &kafka.Client{Addr: kafka.TCP(broker.ListenAddrs()...), Transport: transport}}
}

func (g guarded) forgetUser(t *testing.T) {
	t.Helper()
	g.alterUser(t, &kafka.AlterUserScramCredentialsRequest{Deletions: []kafka.UserScramCredentialsDeletion{{Name: "retrial",
		Mechanism: kafka.ScramMechanismSha512}}})
}

func (g guarded) learnUser(t *testing.T) {
	t.Helper()
	salt := []byte("salt")
	salted, err := pbkdf2.Key(sha512.New, "secret-word", salt, 4096, sha512.Size)
	if err != nil {
		t.Fatal(err)
	}
	g.alterUser(t, &kafka.AlterUserScramCredentialsRequest{Upsertions: []kafka.UserScramCredentialsUpsertion{{
		Name: "retrial", Mechanism: kafka.ScramMechanismSha512, Iterations: 4096, Salt: salt, SaltedPassword: salted}}})
}

func (g guarded) alterUser(t *testing.T, req *kafka.AlterUserScramCredentialsRequest) {
	t.Helper()
	resp, err := g.admin.AlterUserScramCredentials(deadline(t), req)
	if err == nil {
		err = resp.Results[0].Error
	}
	if err != nil {
		t.Fatal(err)
	}
}

// resources are all that the product's user has rights on.
var resources = map[string]kafka.ResourceType{"audit.": kafka.ResourceTypeTopic, "retrial-": kafka.ResourceTypeGroup}

func (g guarded) takeRights(t *testing.T) {
	t.Helper()
	req := &kafka.CreateACLsRequest{}
	for prefix, kind := range resources {
		req.ACLs = append(req.ACLs, kafka.ACLEntry{ResourceType: kind, ResourceName: prefix, ResourcePatternType: kafka.PatternTypePrefixed,
			Principal: "User:retrial", Host: "*", Operation: kafka.ACLOperationTypeAll, PermissionType: kafka.ACLPermissionTypeDeny})
	}
	resp, err := g.admin.CreateACLs(deadline(t), req)
	if err == nil {
		err = errors.Join(resp.Errors...)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func (g guarded) giveRights(t *testing.T) {
	t.Helper()
	req := &kafka.DeleteACLsRequest{}
	for prefix, kind := range resources {
		req.Filters = append(req.Filters, kafka.DeleteACLsFilter{ResourceTypeFilter: kind, ResourceNameFilter: prefix,
			ResourcePatternTypeFilter: kafka.PatternTypePrefixed,
			PrincipalFilter:           "User:retrial", HostFilter: "*", Operation: kafka.ACLOperationTypeAll,
			PermissionType: kafka.ACLPermissionTypeDeny})
	}
	if _, err := g.admin.DeleteACLs(deadline(t), req); err != nil {
		t.Fatal(err)
	}
}

// TestAccessThatWasGranted: a broker that restarts does not know its users, or their rights,
// for a while; or somebody takes them away and gives them back. Everything that was going on
// goes on, and each refusal is told once.
func TestAccessThatWasGranted(t *testing.T) {
	for _, tc := range []struct {
		name       string
		take, give func(guarded, *testing.T)
		of         string
		wants      []right // that are refused for certain
	}{
		{"user", guarded.forgetUser, guarded.learnUser, ofConnection, []right{connecting}},
		// Produce and fetch may find the topics gone instead: a client is not told of those it may not see.
		{"rights", guarded.takeRights, guarded.giveRights, ofRights,
			[]right{{"join group", GroupReplay}, {"join group", GroupLease + "work"}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			broker, net := newGuarded(t), new(line)
			core, logs := observer.New(zap.WarnLevel)
			w := &world{cfg: Config{Brokers: broker.ListenAddrs(), Dial: net.dial, Partitions: 1, FetchWait: time.Millisecond,
				HeartbeatInterval: 20 * time.Millisecond, SessionTimeout: time.Second, RebalanceTimeout: time.Second,
				ProduceTimeout: time.Minute, SASL: &SASL{"SCRAM-SHA-512", "retrial", "secret-word"}, Log: zap.New(core)}}
			w.connect(t)
			c := newCollector(10)
			stop := w.consume(t, c)
			var holding atomic.Int32
			h := lease(t, w.Client, &holding)
			reader := w.ReadPolicy(deadline(t), nil, func([]Record) error { return nil }, nil)
			defer reader.Close()
			if err := w.Producer().Produce(deadline(t), recs(0, 5)...); err != nil {
				t.Fatal(err)
			}
			events, err := w.HighWatermarks(deadline(t), TopicEvents)
			if err != nil {
				t.Fatal(err)
			}
			c.reach(t, events)
			wait(t, "lease", h.held)
			// Whoever has not read yet was not granted to read.
			if err := w.Producer().Produce(deadline(t), policy("c1", "first")); err != nil {
				t.Fatal(err)
			}
			marks, err := w.HighWatermarks(deadline(t), TopicPolicy)
			if err == nil {
				err = reader.WaitFor(deadline(t), marks)
			}
			if err != nil {
				t.Fatal(err)
			}

			tc.take(broker, t)
			net.cut()
			produced := make(chan error, 1)
			go func() { produced <- w.Producer().Produce(context.Background(), recs(5, 10)...) }()
			w.untilRefused(t, tc.of, 8, tc.wants)
			tc.give(broker, t)

			if err := <-produced; err != nil {
				t.Errorf("produce: %v", err)
			}
			wait(t, "records", c.full)
			if err := w.Producer().Produce(deadline(t), policy("c1", "later")); err != nil {
				t.Error(err)
			}
			if marks, err = w.HighWatermarks(deadline(t), TopicPolicy); err == nil {
				err = reader.WaitFor(deadline(t), marks)
			}
			if err != nil {
				t.Error(err)
			}
			for holding.Load() == 0 { // it was held when the trouble began, and may be held again
				wait(t, "lease", h.held)
			}
			stop()
			h.stop()
			if err := <-h.done; err != nil {
				t.Errorf("lease: %v", err)
			}

			said := map[string]int{}
			for _, e := range logs.All() {
				if strings.Contains(e.Message, "refuses") {
					said[errorOf(e)]++
				}
			}
			for text, n := range said {
				if n != 1 || !strings.Contains(text, "granted before") {
					t.Errorf("told %d times: %s", n, text)
				}
				if strings.Contains(text, "word") && !strings.Contains(text, "password") {
					t.Errorf("tells the password: %s", text)
				}
			}
			if len(said) < len(tc.wants) {
				t.Errorf("%d refusals are told, want at least %d: %v", len(said), len(tc.wants), said)
			}
		})
	}
}

// TestAccessThatWasNeverGranted: nobody waits for what the user has never had.
func TestAccessThatWasNeverGranted(t *testing.T) {
	broker := newGuarded(t)
	cfg := Config{Brokers: broker.ListenAddrs(), Partitions: 1, FetchWait: time.Millisecond,
		SASL: &SASL{"SCRAM-SHA-512", "retrial", "secret-word"}}
	(&world{cfg: cfg}).connect(t)
	broker.takeRights(t)
	fresh, err := NewClient(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer fresh.Close()
	if err := fresh.Ping(deadline(t)); err != nil { // it may connect
		t.Fatal(err)
	}
	for name, use := range map[string]func() error{
		"make topics":     func() error { return fresh.EnsureTopics(deadline(t)) },
		"list offsets":    func() error { _, err := fresh.offsets(deadline(t), TopicEvents, kafka.LastOffsetOf, 0); return err },
		"read commits":    func() error { _, err := fresh.committed(deadline(t), GroupReplay, TopicEvents, 0); return err },
		"commit a policy": func() error { return fresh.commitPolicy(deadline(t), map[int32]int64{0: 0}, nil) },
	} {
		if err := use(); !errors.Is(err, ErrAuth) || errors.Is(err, ErrTransient) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := metricValue(fresh.metrics.refusals.WithLabelValues(ofRights)); n != 0 {
		t.Errorf("%v refusals of what was granted before, which nothing was", n)
	}
}

// TestRefusalIsToldAgain: in other words at once, in the same ones after a while without it.
func TestRefusalIsToldAgain(t *testing.T) {
	core, logs := observer.New(zap.WarnLevel)
	c, err := NewClient(Config{Brokers: []string{"nobody"}, Log: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	fetch := right{"fetch from topic", "t"}
	if err := c.answered(fetch, nil); err != nil {
		t.Fatal(err)
	}
	refuse := func(why string, told int) {
		t.Helper()
		err := c.denied(fetch, why, kafka.TopicAuthorizationFailed)
		if !errors.Is(err, ErrTransient) || errors.Is(err, ErrAuth) || !errors.Is(err, kafka.TopicAuthorizationFailed) ||
			kindOf(err) != kindAuth {
			t.Errorf("error %v of kind %s", err, kindOf(err))
		}
		if n := logs.Len(); n != told {
			t.Errorf("told %d times, want %d", n, told)
		}
	}
	refuse("one", 1)
	refuse("one", 1)
	refuse("another", 2)
	c.access.told[fetch] = loggedRefusal{"another", time.Now().Add(-2 * logAgain)}
	refuse("another", 3)
	refuse("another", 3)
	if n := metricValue(c.metrics.refusals.WithLabelValues(ofRights)); n != 5 {
		t.Errorf("%v refusals counted", n)
	}
}

// untilRefused waits until each of the rights was refused, and n requests in all.
func (w *world) untilRefused(t *testing.T, of string, n float64, rights []right) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	ctx := deadline(t)
	for {
		var missing []right
		w.access.mu.Lock()
		for _, r := range rights {
			if w.access.told[r].why == "" {
				missing = append(missing, r)
			}
		}
		w.access.mu.Unlock()
		count := metricValue(w.metrics.refusals.WithLabelValues(of))
		if len(missing) == 0 && count >= n {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("%v refusals, none of %v", count, missing)
		}
	}
}

func errorOf(e observer.LoggedEntry) string {
	for _, f := range e.Context {
		if f.Key == "error" && f.Type == zapcore.ErrorType {
			return f.Interface.(error).Error()
		}
	}
	return ""
}
