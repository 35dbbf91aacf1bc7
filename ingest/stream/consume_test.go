package stream

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// handlerFunc adapts a function to Handler.
type handlerFunc func(ctx context.Context, a Assignment, p *Partition) error

func (f handlerFunc) Partition(ctx context.Context, a Assignment, p *Partition) error {
	return f(ctx, a, p)
}

// Members come and go while records are produced: every record is read, and in each
// partition only what was not committed is read again.
func TestRebalanceLosesNothing(t *testing.T) {
	w := newWorld(t)
	second, err := NewClient(w.cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { second.Close() })
	const n = 3000
	c := newCollector(n)
	produced := make(chan error, 1)
	half := make(chan struct{})
	go func() {
		for i := 0; i < n; i += 100 {
			if i == n/2 {
				close(half)
			}
			if err := w.Producer().Produce(context.Background(), recs(i, i+100)...); err != nil {
				produced <- err
				return
			}
		}
		produced <- nil
	}()
	telling := func() (h Handler, owns chan struct{}) {
		owns = make(chan struct{})
		var once sync.Once
		return handlerFunc(func(ctx context.Context, a Assignment, p *Partition) error {
			once.Do(func() { close(owns) })
			return c.Partition(ctx, a, p)
		}), owns
	}
	h, owns := telling()
	one := consumeWith(t, w.Client, h)
	wait(t, "the first member to get a partition", owns)
	wait(t, "half of the records", half)
	// The second member takes over half of the partitions, then the first leaves.
	h, owns = telling()
	two := consumeWith(t, second, h)
	wait(t, "the second member to get a partition", owns)
	one()
	if err := <-produced; err != nil {
		t.Fatal(err)
	}
	wait(t, "all records", c.full)
	two()
	if len(c.assign) < DefaultPartitions+2 {
		t.Errorf("only %d assignments: no rebalance took place", len(c.assign))
	}
	epochs := map[int32]uint32{}
	for _, a := range c.assign {
		if e := epochs[a.Partition]; e != 0 && e != a.Epoch {
			t.Errorf("partition %d changed its epoch from %d to %d", a.Partition, e, a.Epoch)
		}
		epochs[a.Partition] = a.Epoch
	}
}

// The announced range, the policy offsets and the epoch reach the next owner.
func TestCommitReachesTheNextOwner(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Partitions = 1 })
	if err := w.Producer().Produce(deadline(t), recs(0, 10)...); err != nil {
		t.Fatal(err)
	}
	want := Pending{First: 3, Last: 6, PolicyOffsets: map[int32]int64{0: 12, 2: 99}}
	first, second := make(chan Assignment, 1), make(chan Assignment, 1)
	fetched := make(chan struct{})
	var read []int64
	stop := w.consume(t, handlerFunc(func(ctx context.Context, a Assignment, p *Partition) error {
		b, err := p.Fetch(ctx, 7, 0)
		if err != nil {
			return err
		}
		if len(b.Records) != 7 || b.HighWatermark != 10 || p.Position() != 7 {
			t.Errorf("%d records, high watermark %d, position %d", len(b.Records), b.HighWatermark, p.Position())
		}
		close(fetched)
		<-ctx.Done() // the commit made after the end is still the owner's
		err = p.Commit(context.WithoutCancel(ctx), 3, want)
		first <- a
		return err
	}))
	wait(t, "the first fetch", fetched)
	stop()
	stop = w.consume(t, handlerFunc(func(ctx context.Context, a Assignment, p *Partition) error {
		for p.Position() <= a.Metadata.Last {
			b, err := p.Fetch(ctx, int(a.Metadata.Last-p.Position()+1), 0)
			if err != nil {
				return err
			}
			for _, r := range b.Records {
				read = append(read, r.Position.Offset)
				if r.Position.Epoch != a.Epoch {
					t.Errorf("record with epoch %d, assignment with %d", r.Position.Epoch, a.Epoch)
				}
			}
		}
		second <- a
		<-ctx.Done()
		return nil
	}))
	a, b := <-first, <-second
	stop()
	if a.Committed != 0 || a.Metadata.Has() || a.Epoch == 0 {
		t.Errorf("first assignment %+v", a)
	}
	if b.Committed != 3 || !reflect.DeepEqual(b.Metadata, want) || b.Epoch != a.Epoch {
		t.Errorf("second assignment %+v, first had epoch %d", b, a.Epoch)
	}
	if !reflect.DeepEqual(read, []int64{3, 4, 5, 6}) {
		t.Errorf("read %v again", read)
	}
}

func TestCommitOfAnOldGenerationIsRefused(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Partitions = 1 })
	got := make(chan error, 1)
	stop := w.consume(t, handlerFunc(func(ctx context.Context, a Assignment, p *Partition) error {
		old := *p
		old.generation--
		got <- old.Commit(ctx, 0, NoPending(nil))
		<-ctx.Done()
		return nil
	}))
	if err := <-got; !errors.Is(err, ErrRevoked) {
		t.Errorf("error %v, want ErrRevoked", err)
	}
	stop()
}

// An error has the partition assigned again, from its commit; ErrStop ends the consumer.
func TestHandlerErrors(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Partitions = 1 })
	if err := w.Producer().Produce(deadline(t), recs(0, 5)...); err != nil {
		t.Fatal(err)
	}
	var begun []int64
	err := w.ConsumeEvents(deadline(t), GroupReplay, handlerFunc(func(ctx context.Context, a Assignment, p *Partition) error {
		begun = append(begun, a.Committed)
		switch len(begun) {
		case 1:
			if err := p.Commit(ctx, 2, NoPending(nil)); err != nil {
				return err
			}
			return errors.New("machinery failed")
		case 2:
			return nil // too early: as good as an error
		}
		return fmt.Errorf("enough: %w", ErrStop)
	}))
	if !errors.Is(err, ErrStop) {
		t.Errorf("consume: %v, want ErrStop", err)
	}
	if !reflect.DeepEqual(begun, []int64{0, 2, 2}) {
		t.Errorf("assigned at %v", begun)
	}
	if n := metricValue(w.metrics.failures.WithLabelValues(TopicEvents)); n != 2 {
		t.Errorf("%v failures counted", n)
	}
}

// A commit that points past the log, or speaks of other records than it has, starts over, with
// an epoch never used before.
func TestCommitThatDoesNotFit(t *testing.T) {
	for _, tc := range []struct {
		name     string
		offset   int64
		metadata string
		epoch    uint32
		reset    bool
	}{
		{"committed past the end", 1000, "r1;e=4294967290", 4294967291, true},
		{"announced past the end", 2, "r1;e=4294967290;p=2-5", 4294967291, true},
		{"committed record is another", 3, "r1;e=4294967290;r=abc-0", 4294967291, true},
		{"announced record is another", 2, "r1;e=4294967290;p=2-3;r=0-abc", 4294967291, true},
		{"announced up to the end", 2, "r1;e=7;p=2-4", 7, false},
		{"committed the end", 5, "r1;e=7", 7, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Partitions, c.Log = 1, nil })
			if err := w.Producer().Produce(deadline(t), recs(0, 5)...); err != nil {
				t.Fatal(err)
			}
			err := w.commit(deadline(t), commitRequest{group: GroupReplay, generation: -1, topic: TopicEvents,
				offsets: map[int32]int64{0: tc.offset}, metadata: func(int32) string { return tc.metadata }})
			if err != nil {
				t.Fatal(err)
			}
			var a Assignment
			err = w.ConsumeEvents(deadline(t), GroupReplay, handlerFunc(func(ctx context.Context, as Assignment, p *Partition) error {
				a = as
				return ErrStop
			}))
			if !errors.Is(err, ErrStop) {
				t.Fatal(err)
			}
			if a.Epoch != tc.epoch || tc.reset != (a.Committed == 0 && !a.Metadata.Has()) {
				t.Errorf("assignment %+v", a)
			}
			// The new epoch is on record before anything can be stored with it.
			commits, err := w.committed(deadline(t), GroupReplay, TopicEvents, 0)
			if err != nil {
				t.Fatal(err)
			}
			if m, err := decodeMetadata(commits[0].metadata); err != nil || m.epoch != tc.epoch {
				t.Errorf("commit holds epoch %d, %v", m.epoch, err)
			}
		})
	}
}

func TestCursorPastTheEnd(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Partitions = 1 })
	if err := w.Producer().Produce(deadline(t), recs(0, 5)...); err != nil {
		t.Fatal(err)
	}
	q := newCursor(w.Client, TopicEvents, 0, 1, 6)
	if _, err := q.fetch(deadline(t), 0, 0); !errors.Is(err, ErrLogReplaced) {
		t.Errorf("error %v, want ErrLogReplaced", err)
	}
}

// What was deleted unread is counted, and reading goes on behind it.
func TestGapsAreCounted(t *testing.T) {
	onlyEmbedded(t)
	w := newWorld(t, func(c *Config) { c.Partitions, c.Log = 1, nil })
	for i := range 10 { // ten batches
		if err := w.Producer().Produce(deadline(t), recs(10*i, 10*i+10)...); err != nil {
			t.Fatal(err)
		}
	}
	q := newCursor(w.Client, TopicEvents, 0, 1, 0)
	if b, err := q.fetch(deadline(t), 4, 0); err != nil || len(b.Records) != 4 || b.Missing != 0 {
		t.Fatalf("first fetch: %+v, %v", b, err)
	}
	err := w.commit(deadline(t), commitRequest{group: GroupReplay, generation: -1, topic: TopicEvents,
		offsets: map[int32]int64{0: 37}, metadata: func(int32) string { return "r1;e=1" }})
	if err != nil {
		t.Fatal(err)
	}
	w.broker.Trim()
	q = newCursor(w.Client, TopicEvents, 0, 1, 4)
	b, err := q.fetch(deadline(t), 0, 0)
	if err != nil || b.Missing != 33 || len(b.Records) != 63 || b.Records[0].Position.Offset != 37 {
		t.Errorf("missing %d, %d records, %v", b.Missing, len(b.Records), err)
	}
	if b, err := q.fetch(deadline(t), 0, 0); err != nil || b.Missing != 0 {
		t.Errorf("the gap is reported again: %+v, %v", b, err)
	}
	if n := metricValue(w.metrics.gaps.WithLabelValues(TopicEvents)); n != 33 {
		t.Errorf("%v missing records counted", n)
	}
}

func TestFetchKeepsToItsLimits(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Partitions = 1 })
	var rs []Record
	for range 10 {
		rs = append(rs, rec("key", string(make([]byte, 97)))) // 100 bytes each
	}
	if err := w.Producer().Produce(deadline(t), rs...); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct{ records, bytes, want int }{{3, 0, 3}, {0, 350, 3}, {0, 50, 1}, {2, 1000, 2}, {0, 0, 10},
		{100, 1 << 20, 10}} {
		q := newCursor(w.Client, TopicEvents, 0, 1, 0)
		var offsets []int64
		for len(offsets) < 10 {
			b, err := q.fetch(deadline(t), tc.records, tc.bytes)
			if err != nil {
				t.Fatal(err)
			}
			if len(offsets) == 0 && len(b.Records) != tc.want {
				t.Errorf("limits %d, %d: %d records, want %d", tc.records, tc.bytes, len(b.Records), tc.want)
			}
			for _, r := range b.Records {
				if r.Position.Offset != int64(len(offsets)) {
					t.Fatalf("offset %d, want %d", r.Position.Offset, len(offsets))
				}
				offsets = append(offsets, r.Position.Offset)
			}
		}
		if b, err := q.fetch(deadline(t), tc.records, tc.bytes); err != nil || len(b.Records) != 0 {
			t.Errorf("at the end: %d records, %v", len(b.Records), err)
		}
	}
}

// A broker whose fetches come back empty although there are records: the watchdog ends the
// generation, and the next one reads them.
func TestWatchdog(t *testing.T) {
	onlyEmbedded(t)
	broker, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(broker.Close)
	w := &world{cfg: Config{Brokers: broker.ListenAddrs(), Partitions: 1, FetchWait: time.Millisecond,
		HeartbeatInterval: 50 * time.Millisecond, StallTimeout: 100 * time.Millisecond}}
	w.connect(t)
	if err := w.Producer().Produce(deadline(t), recs(0, 5)...); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	stalled := true
	broker.ControlKey(int16(kmsg.Fetch), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		broker.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		if !stalled {
			return nil, nil, false
		}
		req := kreq.(*kmsg.FetchRequest)
		resp := req.ResponseKind().(*kmsg.FetchResponse)
		for _, rt := range req.Topics {
			t := kmsg.NewFetchResponseTopic()
			t.Topic, t.TopicID = rt.Topic, rt.TopicID
			p := kmsg.NewFetchResponseTopicPartition()
			p.Partition, p.RecordBatches = rt.Partitions[0].Partition, []byte{}
			t.Partitions = append(t.Partitions, p)
			resp.Topics = append(resp.Topics, t)
		}
		return resp, nil, true
	})
	c := newCollector(5)
	begun := 0
	stop := w.consume(t, handlerFunc(func(ctx context.Context, a Assignment, p *Partition) error {
		if begun++; begun == 2 {
			mu.Lock()
			stalled = false
			mu.Unlock()
		}
		return c.Partition(ctx, a, p)
	}))
	wait(t, "the records behind the stall", c.full)
	stop()
	if n := metricValue(w.metrics.restarts.WithLabelValues(TopicEvents)); n != 1 {
		t.Errorf("%v restarts counted", n)
	}
}

func TestDeadLettersAreConsumed(t *testing.T) {
	w := newWorld(t)
	r := Record{Topic: TopicDeadLetter, Kind: KindDeadLetter, Key: []byte("sha256:1"), Value: []byte(`{"reason":"poison"}`),
		Received: time.Unix(0, 0).UTC()}
	if err := w.Producer().Produce(deadline(t), r); err != nil {
		t.Fatal(err)
	}
	err := w.ConsumeDeadLetters(deadline(t), GroupDeadLetter, handlerFunc(func(ctx context.Context, a Assignment, p *Partition) error {
		b, err := p.Fetch(ctx, 0, 0)
		if err != nil || len(b.Records) == 0 {
			return fmt.Errorf("%d records, %w", len(b.Records), err)
		}
		d, err := DecodeDeadLetter(&b.Records[0])
		if err != nil || d.Reason != "poison" || b.Records[0].Err != nil {
			t.Errorf("%+v, %v, %v", d, err, b.Records[0].Err)
		}
		return ErrStop
	}))
	if !errors.Is(err, ErrStop) {
		t.Errorf("consume: %v", err)
	}
}

// A record of another codec is handed out with an error, not dropped, and does not stop
// the partition.
func TestForeignRecordIsHandedOut(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Partitions = 1 })
	ours := rec("k", "ours")
	if err := w.Producer().Produce(deadline(t), Record{Topic: TopicEvents, Value: []byte("foreign"), Received: time.Unix(0, 0)},
		ours); err != nil {
		t.Fatal(err)
	}
	got := w.readAll(t, TopicEvents, 0)
	if len(got) != 2 || !errors.Is(got[0].Err, ErrMalformed) || string(got[0].Value) != "foreign" || got[1].Err != nil {
		t.Errorf("records %+v", got)
	}
	if n := metricValue(w.metrics.undecodable.WithLabelValues(TopicEvents)); n != 1 {
		t.Errorf("%v undecodable records counted", n)
	}
}

func TestLagMetric(t *testing.T) {
	reg := prometheus.NewRegistry()
	w := newWorld(t, func(c *Config) { c.Partitions, c.Registerer = 1, reg })
	if err := w.Producer().Produce(deadline(t), recs(0, 10)...); err != nil {
		t.Fatal(err)
	}
	lag := func() float64 { return metricValue(w.metrics.lag.WithLabelValues(TopicEvents)) }
	err := w.ConsumeEvents(deadline(t), GroupReplay, handlerFunc(func(ctx context.Context, a Assignment, p *Partition) error {
		if _, err := p.Fetch(ctx, 4, 0); err != nil {
			return err
		}
		if lag() != 6 {
			t.Errorf("lag %v, want 6", lag())
		}
		return ErrStop
	}))
	if !errors.Is(err, ErrStop) {
		t.Fatal(err)
	}
	if lag() != 0 {
		t.Errorf("lag %v of a partition that is not ours any more", lag())
	}
	if _, err := NewClient(Config{Brokers: []string{"x:1"}, Registerer: reg}); err == nil {
		t.Error("two clients register the same metrics")
	}
}
