package past

import (
	"context"
	"errors"
	"sync"
	"time"
)

// Bounds of what is kept.
const (
	Fresh    = time.Hour // how old a kept answer may be
	mostKept = 16        // answers
)

// How old Renew lets an answer become, by how long ago it was asked for.
const (
	watched, watchedAge = time.Hour, 10 * time.Minute          // somebody looks at it
	wanted, wantedAge   = 7 * 24 * time.Hour, 50 * time.Minute // somebody will, after a weekend
)

// Keeper keeps answers that take long, for pages. The zero value keeps nothing until it is asked.
type Keeper struct {
	mu   sync.Mutex
	kept map[string]*keeping
	asks int
}

// Make makes an answer; have is the one that is kept, nil for none, and may be returned if it still holds.
type Make func(ctx context.Context, have any) (any, error)

// keeping is one answer, which one at a time makes.
type keeping struct {
	turn  chan struct{} // has an element while nobody makes it
	make  Make
	value any // nil: it was not made yet
	made  time.Time
	asked time.Time
	order int // of the last question
}

// Answer returns what a key stands for, made within Fresh before now, and when. It is shared, and must not be changed. Who comes while it
// is made waits for that. Errors are not kept. make must give the same whoever asks.
func (k *Keeper) Answer(ctx context.Context, key string, now time.Time, make Make) (any, time.Time, error) {
	of, value, made := k.of(key, now, make)
	if value != nil && now.Sub(made) < Fresh {
		return value, made, nil
	}
	select {
	case <-of.turn:
		defer func() { of.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, made, ctx.Err() //nolint:wrapcheck // it says what happened
	}
	if value, made = k.value(of); value != nil && now.Sub(made) < Fresh {
		return value, made, nil // somebody else's
	}
	value, err := k.again(ctx, of, now)
	return value, now, err
}

// Renew makes anew the answers that were asked for within a week, before they are too old to be kept, and sooner while somebody looks.
func (k *Keeper) Renew(ctx context.Context, now time.Time) error {
	var errs []error
	for _, of := range k.due(now) {
		select {
		case <-of.turn:
		default:
			continue // it is being made
		}
		_, err := k.again(ctx, of, now)
		of.turn <- struct{}{}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// due returns the answers to renew.
func (k *Keeper) due(now time.Time) (out []*keeping) {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, of := range k.kept {
		age, ago := now.Sub(of.made), now.Sub(of.asked)
		if of.value != nil && (ago < watched && age >= watchedAge || ago < wanted && age >= wantedAge) {
			out = append(out, of)
		}
	}
	return out
}

// again makes an answer; it is its caller's turn.
func (k *Keeper) again(ctx context.Context, of *keeping, now time.Time) (any, error) {
	have, _ := k.value(of)
	value, err := of.make(ctx, have)
	if err != nil {
		return nil, err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	of.value, of.made = value, now
	return value, nil
}

func (k *Keeper) value(of *keeping) (any, time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	return of.value, of.made
}

// of returns the place of an answer; the one that was not asked for for longest makes room.
func (k *Keeper) of(key string, now time.Time, make Make) (of *keeping, value any, made time.Time) {
	k.mu.Lock()
	defer k.mu.Unlock()
	of, ok := k.kept[key]
	if !ok {
		if k.kept == nil {
			k.kept = map[string]*keeping{}
		}
		if len(k.kept) >= mostKept {
			oldest := ""
			for name, other := range k.kept {
				if oldest == "" || other.order < k.kept[oldest].order {
					oldest = name
				}
			}
			delete(k.kept, oldest)
		}
		of = &keeping{turn: newTurn(), make: make}
		k.kept[key] = of
	}
	k.asks++
	of.asked, of.order = now, k.asks
	return of, of.value, of.made
}

func newTurn() chan struct{} {
	turn := make(chan struct{}, 1)
	turn <- struct{}{}
	return turn
}
