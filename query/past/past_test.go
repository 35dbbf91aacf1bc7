package past_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/retrial-io/retrial/query/past"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/queries"
)

// rows count how often they are read, by cluster.
type rows struct {
	read     map[string]int
	requests int64
	fails    bool
}

func (r *rows) Recording(_ context.Context, cluster string, _, _ time.Time) (queries.Recording, error) {
	if r.fails {
		return queries.Recording{}, errors.New("the store is away")
	}
	r.read[cluster]++
	return queries.Recording{Requests: r.requests}, nil
}

func (r *rows) History(context.Context, string, time.Time, time.Time, []string, func(codec.Alike) error) error {
	return nil
}

func (r *rows) NewestPolicy(context.Context, string, []string, func([]byte) error) error { return nil }

// TestKeeper: what was read is kept for a while, of some clusters; neither nothing nor an error is.
func TestKeeper(t *testing.T) {
	var k past.Keeper
	now, ctx := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), context.Background()
	r := &rows{read: map[string]int{}}
	ask := func(cluster string, at time.Time, want int) {
		t.Helper()
		p, err := k.Past(ctx, r, cluster, nil, at)
		if err != nil || p.Read.After(at) || at.Sub(p.Read) > past.Fresh {
			t.Fatalf("%s at %s: read at %v, %v", cluster, at, p, err)
		}
		if r.read[cluster] != want {
			t.Errorf("%s at %s: read %d times, want %d", cluster, at, r.read[cluster], want)
		}
	}
	ask("a", now, 1)
	ask("a", now, 2) // nothing was recorded yet
	r.requests = 1
	ask("a", now, 3)
	ask("a", now.Add(past.Fresh-1), 3)
	ask("a", now.Add(past.Fresh), 4)
	r.fails = true
	if _, err := k.Past(ctx, r, "a", nil, now.Add(3*past.Fresh)); err == nil {
		t.Error("an error is not told")
	}
	r.fails = false
	ask("a", now.Add(3*past.Fresh), 5)
	for i := range 20 {
		ask(fmt.Sprint("other-", i), now.Add(3*past.Fresh), 1)
	}
	ask("other-19", now.Add(3*past.Fresh), 1)
	ask("a", now.Add(3*past.Fresh), 6)       // it made room for others
	for i, want := range []int{1, 2, 3, 3} { // of somebody alone it is read each time, until that of all is kept
		var who []string
		if who = []string{"ann"}; i == 2 {
			who = nil
		}
		if _, err := k.Past(ctx, r, "new", who, now); err != nil || r.read["new"] != want {
			t.Errorf("question %d: read %d times, %v, want %d", i, r.read["new"], err, want)
		}
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := k.Past(gone, r, "a", nil, now.Add(9*past.Fresh)); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("%v of somebody who went away", err)
	}
}

// TestAnswer: an answer is made once while the policy stays the same.
func TestAnswer(t *testing.T) {
	p, err := past.Read(context.Background(), &rows{read: map[string]int{}}, "a", time.Time{}, time.Time{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	one, err := rbacindex.New()
	if err != nil {
		t.Fatal(err)
	}
	two, err := rbacindex.New()
	if err != nil {
		t.Fatal(err)
	}
	made := 0
	ask := func(key string, policy *rbacindex.Snapshot, want int) {
		t.Helper()
		if got, err := p.Answer(key, policy, func() (any, error) { made++; return made, nil }); err != nil || got != want {
			t.Errorf("%v, %v, want answer %d", got, err, want)
		}
	}
	ask("all", one, 1)
	ask("all", one, 1)
	ask("strict", one, 2)
	ask("all", two, 3)
	if _, err := p.Answer("new", two, func() (any, error) { return nil, errors.New("too much") }); err == nil {
		t.Error("an error is not told")
	}
	ask("new", two, 4)
}
