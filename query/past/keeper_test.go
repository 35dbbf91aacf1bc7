package past_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/retrial-io/retrial/query/past"
)

// TestKeeper: what was made is kept for a while, as many answers as there is room for, and made anew as long as it is asked for; an error
// is not kept.
func TestKeeper(t *testing.T) {
	var k past.Keeper
	now, ctx := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC), context.Background()
	made, fails := map[string]int{}, false
	ask := func(key string, at time.Time, want int) {
		t.Helper()
		got, when, err := k.Answer(ctx, key, at, func(_ context.Context, have any) (any, error) {
			if fails {
				return nil, errors.New("the store is away")
			}
			if have != nil && have != made[key] {
				t.Errorf("%s: have %v, made %d", key, have, made[key])
			}
			made[key]++
			return made[key], nil
		})
		if want == 0 {
			if err == nil {
				t.Errorf("%s: the error is not told", key)
			}
			return
		}
		if err != nil || got != want || when.After(at) || at.Sub(when) >= past.Fresh {
			t.Errorf("%s at %s: got %v of %s, %v, want %d", key, at, got, when, err, want)
		}
	}
	renew := func(at time.Time) {
		t.Helper()
		if err := k.Renew(ctx, at); (err != nil) != fails {
			t.Errorf("renewed: %v", err)
		}
	}
	ask("a", now, 1)
	ask("a", now.Add(past.Fresh-1), 1)
	now = now.Add(past.Fresh)
	ask("a", now, 2)
	renew(now.Add(5 * time.Minute)) // early enough
	ask("a", now.Add(5*time.Minute), 2)
	renew(now.Add(11 * time.Minute)) // somebody looks
	ask("a", now.Add(11*time.Minute), 3)
	now = now.Add(11 * time.Minute)
	for range 20 { // nobody has to wait
		now = now.Add(past.Fresh - 1)
		renew(now)
	}
	ask("a", now, 23)
	fails = true
	renew(now.Add(past.Fresh - 1))
	ask("a", now.Add(past.Fresh-1), 23)
	ask("a", now.Add(past.Fresh), 0)
	fails = false
	ask("a", now.Add(past.Fresh), 24)
	now = now.Add(8 * 24 * time.Hour)
	renew(now) // nobody looks any more
	ask("a", now, 25)
	for i := range 20 {
		ask(fmt.Sprint("other-", i), now, 1)
	}
	ask("other-19", now, 1)
	ask("a", now, 26) // it made room
	gone, cancel := context.WithCancel(ctx)
	cancel()
	block := make(chan struct{})
	entered := make(chan struct{})
	go func() {
		_, _, _ = k.Answer(ctx, "slow", now, func(context.Context, any) (any, error) {
			close(entered)
			<-block
			return 1, nil
		})
	}()
	<-entered
	if _, _, err := k.Answer(gone, "slow", now, nil); !errors.Is(err, context.Canceled) {
		t.Errorf("%v of somebody who went away", err)
	}
	close(block)
}
