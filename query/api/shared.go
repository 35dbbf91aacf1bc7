package api

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/retrial-io/retrial/internal/params"
)

// sharedFor is how old a question under way may be for another to wait for its answer: no answer is older than its question by more.
const sharedFor = time.Second

// shared are the questions of pages under way. Many users open the same page at once, and the store is asked once for all of them: who
// waits for an answer that is being made holds no place.
type shared struct {
	mu   sync.Mutex
	made map[string]*making
}

// making is an answer that is being made.
type making struct {
	began   time.Time
	waiting int // who wants it
	stop    context.CancelFunc
	done    chan struct{} // closed when there is the answer, or the error
	v       any
	err     error
}

func newShared() *shared { return &shared{made: map[string]*making{}} }

// asked returns the key of a question with its parameters.
func asked(name string, request any) string { return name + "?" + params.Write(request).Encode() }

// join returns an answer under way to the same question, which the caller then waits for, or nil.
func (s *shared) join(key string) *making {
	s.mu.Lock()
	defer s.mu.Unlock()
	m := s.made[key]
	if m == nil || time.Since(m.began) >= sharedFor {
		return nil
	}
	m.waiting++
	return m
}

// left says that somebody does not wait any more; nobody's answer is not made to its end.
func (s *shared) left(key string, m *making) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if m.waiting--; m.waiting == 0 {
		s.forget(key, m)
		m.stop()
	}
}

func (s *shared) forget(key string, m *making) {
	if s.made[key] == m {
		delete(s.made, key)
	}
}

// wait returns the answer when it is made.
func (s *shared) wait(ctx context.Context, key string, m *making) (any, error) {
	select {
	case <-m.done:
		return m.v, m.err
	case <-ctx.Done():
		s.left(key, m)
		return nil, ctx.Err()
	}
}

// begin makes an answer for whoever joins. It is made to its end while anybody wants it, though its first caller went away.
func (s *shared) begin(ctx context.Context, key string, longest time.Duration, answer func(context.Context) (any, error)) (any, error) {
	during, stop := context.WithTimeoutCause(context.WithoutCancel(ctx), longest, errTooLong)
	defer stop()
	m := &making{began: time.Now(), waiting: 1, stop: stop, done: make(chan struct{}), err: errors.New("the answer was not made")}
	s.mu.Lock()
	s.made[key] = m
	s.mu.Unlock()
	defer context.AfterFunc(ctx, func() { s.left(key, m) })()
	defer func() {
		s.mu.Lock()
		s.forget(key, m)
		s.mu.Unlock()
		close(m.done)
	}()
	v, err := answer(during)
	if err != nil && errors.Is(context.Cause(during), errTooLong) {
		err = errTooLong
	}
	m.v, m.err = v, err
	return v, err
}

// forAll returns an answer for all who ask the same: the one under way when a question comes, or else when its turn comes.
func (s *shared) forAll(name string, longest time.Duration, answer answering, inTurn func(answering) answering) answering {
	own := inTurn(func(ctx context.Context, who asker, request any) (any, error) {
		key := asked(name, request)
		if m := s.join(key); m != nil {
			return s.wait(ctx, key, m)
		}
		return s.begin(ctx, key, longest, func(ctx context.Context) (any, error) { return answer(ctx, who, request) })
	})
	return func(ctx context.Context, who asker, request any) (any, error) {
		key := asked(name, request)
		if m := s.join(key); m != nil {
			return s.wait(ctx, key, m)
		}
		return own(ctx, who, request)
	}
}
