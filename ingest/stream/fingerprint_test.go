package stream

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/embedded"
)

// relapsing is a broker that can fall back to what its disk held before, as one does whose
// disk lost what it had said was there.
type relapsing struct {
	*world
	t        *testing.T
	dir, was string
}

func newRelapsing(t *testing.T) *relapsing {
	t.Helper()
	onlyEmbedded(t)
	r := &relapsing{world: &world{cfg: Config{Partitions: 1, Log: zap.NewNop(), FetchWait: 20 * time.Millisecond,
		HeartbeatInterval: 100 * time.Millisecond}},
		t: t, dir: filepath.Join(t.TempDir(), "now"), was: filepath.Join(t.TempDir(), "was")}
	r.start()
	r.cfg.Dial = func(ctx context.Context, network, addr string) (net.Conn, error) {
		return r.broker.Dial(ctx, network, addr)
	}
	r.connect(t)
	return r
}

// start starts a broker that leaves commits as they are: whether they fit its log is for the
// reader to find out.
func (r *relapsing) start() {
	r.t.Helper()
	b, err := embedded.Start(embedded.Config{Dir: r.dir, MaxBytes: embedded.DefaultMaxBytes, TrimInterval: time.Hour})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { b.Close() })
	r.broker, r.cfg.Brokers = b, []string{b.Addr()}
}

// remember keeps what the disk holds of partition 0 of a topic.
func (r *relapsing) remember(topic string) {
	r.t.Helper()
	r.stopped(func() error { return os.CopyFS(r.was, os.DirFS(r.partition(topic))) })
}

func (r *relapsing) relapse(topic string) {
	r.t.Helper()
	r.stopped(func() error {
		if err := os.RemoveAll(r.partition(topic)); err != nil {
			return err
		}
		return os.CopyFS(r.partition(topic), os.DirFS(r.was))
	})
}

func (r *relapsing) partition(topic string) string {
	return filepath.Join(r.dir, "log", "partitions", topic+"-0")
}

// stopped does something while no broker runs.
func (r *relapsing) stopped(f func() error) {
	r.t.Helper()
	if err := errors.Join(r.broker.Close(), f()); err != nil {
		r.t.Fatal(err)
	}
	r.start()
}

func (r *relapsing) produce(records ...Record) {
	r.t.Helper()
	if err := r.Producer().Produce(deadline(r.t), records...); err != nil {
		r.t.Fatal(err)
	}
}

// A log that lost records and has grown past a reader since is not the one it was reading,
// which nothing but the records shows.
func TestCursorOnAnotherLog(t *testing.T) {
	for _, tc := range []struct {
		name string
		loss bool
		want error
	}{
		{"restarted", false, nil},
		{"lost records", true, ErrLogReplaced},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRelapsing(t)
			r.produce(recs(0, 3)...)
			r.remember(TopicEvents)
			r.produce(recs(3, 5)...)
			q := newCursor(r.Client, TopicEvents, 0, 1, 0)
			for q.next.Load() < 5 {
				if _, err := q.fetch(deadline(t), 0, 0); err != nil {
					t.Fatal(err)
				}
			}
			if tc.loss {
				r.relapse(TopicEvents)
			} else {
				r.stopped(func() error { return nil })
			}
			r.produce(recs(100, 110)...)
			b, err := q.fetch(deadline(t), 0, 0)
			if !errors.Is(err, tc.want) || err == nil && (len(b.Records) == 0 || string(b.Records[0].Value) != "value-100") {
				t.Errorf("read %d records, %v, want %v", len(b.Records), err, tc.want)
			}
		})
	}
}

// What a commit says of a log holds for no other log. Only what was never announced can have
// been lost without a trace elsewhere: its offsets are given again in the same epoch.
func TestCommitOfAnotherLog(t *testing.T) {
	for _, tc := range []struct {
		name      string
		kept      int // records that survive
		committed int64
		pending   Pending
		reset     bool
	}{
		{"the committed record is another", 2, 3, NoPending(nil), true},
		{"the end of the announced range is another", 4, 3, Pending{First: 3, Last: 4}, true},
		{"what was read ahead is another", 4, 3, NoPending(nil), false},
		{"nothing is", 5, 3, Pending{First: 3, Last: 4}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRelapsing(t)
			r.produce(recs(0, tc.kept)...)
			r.remember(TopicEvents)
			r.produce(append(recs(tc.kept, 5), recs(50, 51)...)...)
			var assigned []Assignment
			var again []string
			read, replaced := make(chan struct{}), make(chan struct{})
			done := make(chan error, 1)
			go func() {
				done <- r.ConsumeEvents(deadline(t), GroupReplay, handlerFunc(func(ctx context.Context, a Assignment, p *Partition) error {
					if assigned = append(assigned, a); len(assigned) == 1 {
						for p.Position() < 6 {
							if _, err := p.Fetch(ctx, 0, 0); err != nil {
								return err
							}
						}
						if err := p.Commit(ctx, tc.committed, tc.pending); err != nil {
							return err
						}
						close(read)
						<-replaced // busy, while the log changes
						_, err := p.Fetch(ctx, 0, 0)
						return err
					}
					for p.Position() < 8 {
						b, err := p.Fetch(ctx, 0, 0)
						if err != nil {
							return err
						}
						for _, rec := range b.Records {
							again = append(again, string(rec.Value))
						}
					}
					return ErrStop
				}))
			}()
			wait(t, "the first assignment to have read", read)
			r.relapse(TopicEvents)
			r.produce(recs(100, 110)...)
			close(replaced)
			if err := <-done; !errors.Is(err, ErrStop) {
				t.Fatal(err)
			}
			a, b := assigned[0], assigned[len(assigned)-1]
			from := tc.committed
			if tc.reset {
				from = 0
			}
			if b.Committed != from || tc.reset != (b.Epoch > a.Epoch) || b.Metadata.Has() != (tc.pending.Has() && !tc.reset) {
				t.Errorf("assigned %+v, then %+v", a, b)
			}
			var want []string
			for _, rec := range append(recs(0, tc.kept), recs(100, 110)...)[from:] {
				want = append(want, string(rec.Value))
			}
			if !reflect.DeepEqual(again, want) {
				t.Errorf("read %v, want %v", again, want)
			}
		})
	}
}

// A policy log that is not the one that was read is read from its start: by the next reader, whom
// one at work leaves it to.
func TestPolicyOnAnotherLog(t *testing.T) {
	for _, tc := range []struct {
		name   string
		reads  bool // while the log changes
		ending error
	}{
		{"under its reader", true, ErrLogReplaced},
		{"while none reads", false, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := newRelapsing(t)
			r.produce(policy("c", "0"))
			r.remember(TopicPolicy)
			r.produce(policy("c", "1"), policy("c", "2"))
			busy, applied := make(chan struct{}), make(chan struct{})
			reader := r.ReadPolicy(deadline(t), nil, func(rs []Record) error {
				last := rs[len(rs)-1].Position.Offset
				if err := r.CommitPolicy(deadline(t), map[int32]int64{0: last + 1}); err != nil {
					return err
				}
				if last == 2 {
					close(applied)
					<-busy
				}
				return nil
			}, nil)
			wait(t, "the policy to be read", applied)
			if !tc.reads {
				close(busy)
				reader.Close()
			}
			r.relapse(TopicPolicy)
			for _, value := range []string{"a", "b", "c", "d"} {
				r.produce(policy("c", value))
			}
			if tc.reads {
				close(busy)
			}
			wait(t, "the reader to end", reader.Done())
			if err := reader.Err(); !errors.Is(err, tc.ending) {
				t.Fatalf("reader ended with %v, want %v", err, tc.ending)
			}
			var values []string
			all := make(chan struct{})
			again := r.ReadPolicy(deadline(t), map[int32]int64{0: 3}, func(rs []Record) error {
				for _, rec := range rs {
					if values = append(values, string(rec.Value)); len(values) == 5 {
						close(all)
					}
				}
				return nil
			}, nil)
			wait(t, "all policy to be read again", all)
			again.Close()
			if want := []string{"0", "a", "b", "c", "d"}; !reflect.DeepEqual(values, want) {
				t.Errorf("read %v, want %v", values, want)
			}
		})
	}
}

func TestFingerprints(t *testing.T) {
	var p fingerprints
	for i := int64(10); i < 20; i++ {
		p.add(i, fingerprint(i))
	}
	p.drop(5)
	if p.at(9) != 0 || p.at(10) != 10 || p.at(19) != 19 || p.at(20) != 0 {
		t.Errorf("kept %+v", p)
	}
	p.drop(15)
	if p.at(14) != 0 || p.at(15) != 15 || p.at(19) != 19 {
		t.Errorf("after 15: %+v", p)
	}
	p.add(20, 20)
	p.add(1_000_000, 7)
	if p.at(20) != 0 || p.at(1_000_000) != 7 || len(p.list) != 1 {
		t.Errorf("after a gap: %+v", p)
	}
	p.drop(2_000_000)
	p.add(2_000_000, 8)
	if p.at(2_000_000) != 8 {
		t.Errorf("after all was dropped: %+v", p)
	}
}
