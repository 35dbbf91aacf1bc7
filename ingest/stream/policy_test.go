package stream

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"
)

func policy(cluster, value string) Record {
	return Record{Topic: TopicPolicy, Kind: KindObservation, Key: []byte(cluster), Value: []byte(value), Cluster: cluster,
		Received: time.Unix(0, 0).UTC()}
}

// log keeps what a policy reader was given, per cluster.
type policyLog struct {
	mu     sync.Mutex
	values map[string][]string
	n      int
}

func (l *policyLog) apply(rs []Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.values == nil {
		l.values = map[string][]string{}
	}
	for _, r := range rs {
		l.values[r.Cluster] = append(l.values[r.Cluster], string(r.Value))
		l.n++
	}
	return nil
}

// Everything acknowledged before HighWatermarks has been applied once WaitFor returns, in
// order per cluster.
func TestPolicyReaderKeepsUp(t *testing.T) {
	w := newWorld(t)
	var l policyLog
	r := w.ReadPolicy(deadline(t), nil, l.apply, nil)
	defer r.Close()
	for round := range 20 {
		var rs []Record
		for c := range 6 {
			rs = append(rs, policy(fmt.Sprint("cluster-", c), fmt.Sprint(2*round)),
				policy(fmt.Sprint("cluster-", c), fmt.Sprint(2*round+1)))
		}
		if err := w.Producer().Produce(deadline(t), rs...); err != nil {
			t.Fatal(err)
		}
		marks, err := w.HighWatermarks(deadline(t), TopicPolicy)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.WaitFor(deadline(t), marks); err != nil {
			t.Fatal(err)
		}
		l.mu.Lock()
		if want := 12 * (round + 1); l.n != want {
			t.Fatalf("%d records applied, want %d", l.n, want)
		}
		for c, values := range l.values {
			for i, v := range values {
				if v != fmt.Sprint(i) {
					t.Fatalf("%s: record %s in place of %d", c, v, i)
				}
			}
		}
		l.mu.Unlock()
	}
	var sum int64
	for _, pos := range r.Positions() {
		sum += pos
	}
	if sum != 240 {
		t.Errorf("positions add up to %d, want 240", sum)
	}
}

func TestPolicyReaderStartsWhereItIsTold(t *testing.T) {
	for _, tc := range []struct {
		name   string
		from   map[int32]int64
		commit int64 // -1: none
		want   int
	}{
		{"nothing known", nil, -1, 10},
		{"table holds four", map[int32]int64{0: 4}, 4, 6},
		{"table holds four of another log", map[int32]int64{0: 4}, -1, 10},
		{"commit behind the table", map[int32]int64{0: 4}, 2, 8},
		{"commit ahead of the table", map[int32]int64{0: 4}, 9, 6},
		{"table ahead of the log", map[int32]int64{0: 400}, -1, 10},
		{"commit ahead of the log", map[int32]int64{0: 400}, 400, 10},
		{"table at the end", map[int32]int64{0: 10}, 10, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			w := newWorld(t, func(c *Config) { c.Partitions, c.Log = 1, nil })
			for i := range 10 {
				if err := w.Producer().Produce(deadline(t), policy("c", fmt.Sprint(i))); err != nil {
					t.Fatal(err)
				}
			}
			if tc.commit >= 0 {
				if err := w.commitPolicy(deadline(t), map[int32]int64{0: tc.commit}, map[int32]uint32{0: 3}); err != nil {
					t.Fatal(err)
				}
			}
			var l policyLog
			r := w.ReadPolicy(deadline(t), tc.from, l.apply, nil)
			defer r.Close()
			if err := r.WaitFor(deadline(t), map[int32]int64{0: 10}); err != nil {
				t.Fatal(err)
			}
			if l.n != tc.want {
				t.Errorf("%d records read, want %d", l.n, tc.want)
			}
		})
	}
}

func TestPolicyReaderEnds(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Partitions = 2 })
	boom := errors.New("cannot apply")
	r := w.ReadPolicy(deadline(t), nil, func([]Record) error { return boom }, nil)
	if err := w.Producer().Produce(deadline(t), policy("c", "x")); err != nil {
		t.Fatal(err)
	}
	wait(t, "the reader to end", r.Done())
	if !errors.Is(r.Err(), boom) {
		t.Errorf("reader ended with %v", r.Err())
	}
	if err := r.WaitFor(deadline(t), map[int32]int64{0: 1, 1: 1}); !errors.Is(err, boom) {
		t.Errorf("wait for a failed reader: %v", err)
	}

	ctx, cancel := context.WithCancel(context.Background())
	r = w.ReadPolicy(ctx, nil, func([]Record) error { return nil }, nil)
	cancel()
	wait(t, "the reader to end", r.Done())
	if r.Err() != nil {
		t.Errorf("reader ended from outside with %v", r.Err())
	}
	if err := r.WaitFor(deadline(t), map[int32]int64{0: 1 << 40}); !errors.Is(err, ErrClosed) {
		t.Errorf("wait for a closed reader: %v", err)
	}
}

// The commit moves with the table, keeps the epoch, and lets the embedded broker delete.
func TestCommitPolicy(t *testing.T) {
	for _, prefix := range []string{"", "other."} {
		t.Run("prefix="+prefix, func(t *testing.T) { testCommitPolicy(t, prefix) })
	}
}

func testCommitPolicy(t *testing.T, prefix string) {
	w := newWorld(t, func(c *Config) { c.Partitions, c.TopicPrefix = 1, c.TopicPrefix+prefix })
	for i := range 10 {
		if err := w.Producer().Produce(deadline(t), policy("c", fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	var mu sync.Mutex
	var epoch uint32
	r := w.ReadPolicy(deadline(t), nil, func(rs []Record) error {
		mu.Lock()
		defer mu.Unlock()
		epoch = rs[0].Position.Epoch
		return nil
	}, nil)
	if err := r.WaitFor(deadline(t), map[int32]int64{0: 10}); err != nil {
		t.Fatal(err)
	}
	r.Close()
	if err := w.CommitPolicy(deadline(t), map[int32]int64{0: 7}); err != nil {
		t.Fatal(err)
	}
	commits, err := w.committed(deadline(t), GroupPolicy, TopicPolicy, 0)
	if err != nil {
		t.Fatal(err)
	}
	if m, err := decodeMetadata(commits[0].metadata); err != nil || m.epoch != epoch || epoch == 0 || commits[0].offset != 7 {
		t.Errorf("commit %+v, epoch %d, records had %d, %v", commits[0], m.epoch, epoch, err)
	}
	if w.broker == nil {
		return
	}
	w.broker.Trim()
	starts, _, err := w.bounds(deadline(t), TopicPolicy, 0)
	if err != nil || starts[0] != 7 {
		t.Errorf("log starts at %d, %v", starts[0], err)
	}
}
