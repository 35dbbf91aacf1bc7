package stream

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/retrial-io/retrial/ingest/embedded"
)

// readAll reads a partition of a topic from its start to its present end.
func (w *world) readAll(t testing.TB, topic string, partition int32) []Record {
	t.Helper()
	starts, ends, err := w.bounds(deadline(t), topic, partition)
	if err != nil {
		t.Fatal(err)
	}
	q := newCursor(w.Client, topic, partition, 1, starts[partition])
	var out []Record
	for q.next.Load() < ends[partition] {
		b, err := q.fetch(deadline(t), 0, 0)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b.Records...)
	}
	return out
}

// Calls of many goroutines share batches; each call's records stay in order and each is
// there once.
func TestConcurrentCallsKeepTheirOrder(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Partitions, c.BatchBytes = 2, 4<<10 })
	const callers, calls, perCall = 8, 20, 7
	var wg sync.WaitGroup
	for k := range callers {
		wg.Go(func() {
			for i := range calls {
				var rs []Record
				for j := range perCall {
					rs = append(rs, rec(fmt.Sprint("caller-", k), fmt.Sprintf("%d %d", k, i*perCall+j)))
				}
				if err := w.Producer().Produce(context.Background(), rs...); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	next := map[int]int{}
	total := 0
	for p := range int32(2) {
		for _, r := range w.readAll(t, TopicEvents, p) {
			var k, i int
			if _, err := fmt.Sscan(string(r.Value), &k, &i); err != nil {
				t.Fatal(err)
			}
			if i != next[k] {
				t.Fatalf("caller %d: record %d came when %d was due", k, i, next[k])
			}
			next[k]++
			total++
		}
	}
	if total != callers*calls*perCall {
		t.Errorf("%d records, want %d", total, callers*calls*perCall)
	}
}

func TestTooLargeNamesTheRecordAndSendsNothing(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.MaxRecordBytes = 2000 })
	err := w.Producer().Produce(deadline(t), rec("a", "fits"), rec("b", "fits"), rec("c", string(make([]byte, 2000))))
	var tooLarge *TooLargeError
	if !errors.As(err, &tooLarge) || !errors.Is(err, ErrTooLarge) {
		t.Fatalf("error %v", err)
	}
	if tooLarge.Index != 2 || tooLarge.Topic != TopicEvents || tooLarge.Limit != 2000 || tooLarge.Size <= 2000 {
		t.Errorf("%+v", *tooLarge)
	}
	marks, err := w.HighWatermarks(deadline(t), TopicEvents)
	if err != nil {
		t.Fatal(err)
	}
	for p, m := range marks {
		if m != 0 {
			t.Errorf("partition %d has %d records", p, m)
		}
	}
}

func TestLargestRecordPasses(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Partitions = 1 })
	big := rec("k", "")
	rng := rand.NewChaCha8([32]byte{1})
	big.Value = make([]byte, DefaultMaxRecordBytes-RecordSize(&big))
	if _, err := rng.Read(big.Value); err != nil { // does not compress
		t.Fatal(err)
	}
	if err := w.Producer().Produce(deadline(t), rec("k", "before"), big, rec("k", "after")); err != nil {
		t.Fatal(err)
	}
	got := w.readAll(t, TopicEvents, 0)
	if len(got) != 3 || !bytes.Equal(got[1].Value, big.Value) || string(got[2].Value) != "after" {
		t.Errorf("%d records came back", len(got))
	}
}

// At the cap producers are refused, dead letters still pass, and nothing is deleted until
// it is consumed; once it is, producing goes on.
func TestFullAndBackAgain(t *testing.T) {
	onlyEmbedded(t)
	w := newWorld(t, func(c *Config) { c.Partitions = 2 })
	w.broker.Close()
	dir := t.TempDir()
	b, err := embedded.Start(embedded.Config{Dir: dir, Consumers: Consumers(""), Reserve: []string{TopicDeadLetter},
		Verify: VerifyCommit, MaxBytes: embedded.MinMaxBytes, TrimInterval: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	w.broker, w.cfg.Dial = b, b.Dial
	w.Client.Close()
	w.connect(t)

	var acked []string
	for i := 0; ; i++ {
		if i > 1000 {
			t.Fatal("the cap was never reached")
		}
		r := rec(fmt.Sprint(i), fmt.Sprintf("%07d", i)+noise(100_000))
		err := w.Producer().Produce(deadline(t), r)
		if errors.Is(err, ErrFull) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		acked = append(acked, string(r.Value[:7]))
	}
	if held := b.Held(); held > embedded.MinMaxBytes || held < embedded.MinMaxBytes*9/10 {
		t.Errorf("refused at %d of %d bytes", held, embedded.MinMaxBytes)
	}
	dead := Record{Topic: TopicDeadLetter, Kind: KindDeadLetter, Key: []byte("d"), Value: []byte(noise(150_000)), Received: time.Unix(0, 0)}
	if err := w.Producer().Produce(deadline(t), dead); err != nil {
		t.Errorf("dead letter at the cap: %v", err)
	}
	b.Trim()
	if err := w.Producer().Produce(deadline(t), rec("x", noise(200_000))); !errors.Is(err, ErrFull) {
		t.Errorf("after deleting nothing consumed: %v, want ErrFull", err)
	}

	c := newCollector(len(acked))
	stop := w.consume(t, cut{c, 7})
	wait(t, "all acknowledged records", c.full)
	stop()
	for _, v := range acked {
		if c.seen[v] == 0 {
			t.Fatalf("record %s was acknowledged and is gone", v)
		}
	}
	b.Trim()
	for i := range 100 {
		if err := w.Producer().Produce(deadline(t), rec(fmt.Sprint(i), string(make([]byte, 100_000)))); err != nil {
			t.Fatalf("after everything was consumed: %v", err)
		}
	}
}

// cut is a collector that looks at the beginning of values only.
type cut struct {
	*collector
	n int
}

func (c cut) Partition(ctx context.Context, a Assignment, p *Partition) error {
	for {
		b, err := p.Fetch(ctx, 0, 0)
		if err != nil {
			return err
		}
		c.mu.Lock()
		for _, r := range b.Records {
			if c.seen[string(r.Value[:c.n])]++; len(c.seen) == c.want {
				select {
				case <-c.full:
				default:
					close(c.full)
				}
			}
		}
		c.mu.Unlock()
		if err := p.Commit(context.WithoutCancel(ctx), p.Position(), NoPending(nil)); err != nil {
			return err
		}
	}
}

func TestProduceGivesUpInTime(t *testing.T) {
	onlyEmbedded(t)
	w := newWorld(t, func(c *Config) { c.ProduceTimeout = 300 * time.Millisecond })
	if err := w.Producer().Produce(deadline(t), rec("k", "v")); err != nil {
		t.Fatal(err)
	}
	w.broker.Close()
	err := w.Producer().Produce(context.Background(), rec("k", "v"))
	if !errors.Is(err, ErrTransient) {
		t.Errorf("broker gone: %v, want ErrTransient", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := w.Producer().Produce(ctx, rec("k", "v")); !errors.Is(err, ErrTransient) || !errors.Is(err, context.Canceled) {
		t.Errorf("caller gone: %v, want ErrTransient and context.Canceled", err)
	}
	w.Client.Close()
	if err := w.Producer().Produce(context.Background(), rec("k", "v")); !errors.Is(err, ErrClosed) {
		t.Errorf("closed: %v, want ErrClosed", err)
	}
}

// A request whose answer is lost is sent again: the record may be there twice, never not.
func TestProduceRetriesOverABrokenConnection(t *testing.T) {
	onlyEmbedded(t)
	var mu sync.Mutex
	broken := 0
	w := newWorld(t, func(c *Config) {
		dial := c.Dial
		c.Partitions = 1
		c.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := dial(ctx, network, addr)
			return &flaky{Conn: conn, fail: func() bool {
				mu.Lock()
				defer mu.Unlock()
				broken++
				return broken%3 == 0
			}}, err
		}
	})
	for i := range 20 {
		if err := w.Producer().Produce(deadline(t), rec("k", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	seen, last := map[string]bool{}, -1
	for _, r := range w.readAll(t, TopicEvents, 0) {
		seen[string(r.Value)] = true
		var i int
		if _, err := fmt.Sscan(string(r.Value), &i); err != nil || i < last {
			t.Errorf("record %d after %d", i, last)
		}
		last = i
	}
	if len(seen) != 20 {
		t.Errorf("%d of 20 records are there", len(seen))
	}
	mu.Lock()
	defer mu.Unlock()
	if broken < 6 {
		t.Error("no connection was broken: the test shows nothing")
	}
}

// flaky loses the connection when it is about to read the answer to a produce request.
type flaky struct {
	net.Conn
	fail    func() bool
	produce bool
}

func (f *flaky) Write(p []byte) (int, error) {
	if len(p) >= 8 && p[4] == 0 && p[5] == 0 {
		f.produce = true
	}
	return f.Conn.Write(p)
}

func (f *flaky) Read(p []byte) (int, error) {
	if f.produce {
		f.produce = false
		if f.fail() {
			f.Conn.Close()
			return 0, net.ErrClosed
		}
	}
	return f.Conn.Read(p)
}

func TestUnknownTopicIsRefused(t *testing.T) {
	w := newWorld(t)
	if err := w.Producer().Produce(deadline(t), Record{Topic: "novel"}); err == nil || errors.Is(err, ErrTransient) {
		t.Errorf("error %v", err)
	}
	if err := w.Producer().Produce(deadline(t)); err != nil {
		t.Errorf("nothing to produce: %v", err)
	}
}

func TestClassify(t *testing.T) {
	for _, tc := range []struct {
		err  error
		want error
	}{
		{kafka.ThrottlingQuotaExceeded, ErrFull},
		{kafka.MessageSizeTooLarge, ErrTooLarge},
		{kafka.TopicAuthorizationFailed, ErrAuth},
		{kafka.SASLAuthenticationFailed, ErrAuth},
		{kafka.IllegalGeneration, ErrRevoked},
		{kafka.UnknownMemberId, ErrRevoked},
		{kafka.NotLeaderForPartition, ErrTransient},
		{kafka.Unknown, ErrTransient}, // what the embedded broker answers when the disk is full
		{kafka.BrokerNotAvailable, ErrTransient},
		{net.ErrClosed, ErrTransient},
		{context.DeadlineExceeded, ErrTransient},
		{fmt.Errorf("x: %w", ErrLogReplaced), ErrLogReplaced},
	} {
		if got := new(Client).classify(connecting, fmt.Errorf("wrapped: %w", tc.err)); !errors.Is(got, tc.want) || !errors.Is(got, tc.err) {
			t.Errorf("classify(%v) = %v, want %v", tc.err, got, tc.want)
		}
	}
	for _, err := range []error{context.Canceled, kafka.InvalidTopic, fmt.Errorf("x: %w", ErrLogReplaced)} {
		if got := new(Client).classify(connecting, err); errors.Is(got, ErrTransient) {
			t.Errorf("classify(%v) = %v, which would be retried", err, got)
		}
	}
}
