package stream

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// right is something a broker permits a client to do, or refuses; the zero value is the right to
// connect at all: TLS and SASL.
type right struct {
	act  string // "fetch from topic"
	name string // with prefix
}

var connecting right

func (r right) String() string {
	if r == connecting {
		return "connect"
	}
	return strings.TrimSpace(r.act + " " + r.name)
}

// access remembers what a client was allowed to do. What was never allowed needs a person to grant a right or a password, and is ErrAuth:
// it ends what was begun. What was allowed before and is refused now is retried like anything transient: a broker that has just started
// accepts connections for a while before it knows all users and their rights, and changing a password under a running process must not end
// it.
type access struct {
	mu      sync.Mutex
	granted map[right]bool
	told    map[right]loggedRefusal
}

// loggedRefusal is the refusal of a right as it was last logged.
type loggedRefusal struct {
	why  string
	seen time.Time // when it last occurred
}

// What is refused, as metrics label it.
const (
	ofConnection = "connection"
	ofRights     = "rights"
)

// logAgain is how long a refusal must have been gone before the same one is logged again.
const logAgain = time.Minute

// refusal is the error for a right that was granted before. It matches ErrTransient and not
// ErrAuth; metrics count it as a refusal.
type refusal struct {
	right right
	why   string
	err   error
}

func (r *refusal) Error() string {
	return fmt.Sprintf("kafka refuses access that it granted before: to %s: %s "+
		"(the broker may have just started and not know its users and their rights yet, or they were changed): %v", r.right, r.why, r.err)
}

func (r *refusal) Unwrap() error { return r.err }

// Is makes errors.Is(err, ErrTransient) true.
func (r *refusal) Is(target error) bool { return target == ErrTransient }

// refused reports whether err is a refusal of what was allowed before. It has been logged.
func refused(err error) bool {
	_, ok := errors.AsType[*refusal](err)
	return ok
}

// answered records a broker's answer to the use of a right, success or refusal, and returns a
// refusal explained.
func (c *Client) answered(r right, err error) error {
	if err != nil {
		return c.explain(r, err)
	}
	a := &c.access
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.granted == nil {
		a.granted, a.told = make(map[right]bool), make(map[right]loggedRefusal)
	}
	a.granted[connecting], a.granted[r] = true, true
	return nil
}

// denied returns the error for a refusal, which why explains: ErrAuth, unless the right was granted before. Every refusal passes here.
func (c *Client) denied(r right, why string, err error) error {
	a, now := &c.access, time.Now()
	a.mu.Lock()
	granted, before := a.granted[r], a.told[r]
	if granted {
		a.told[r] = loggedRefusal{why, now}
	}
	a.mu.Unlock()
	if !granted {
		return fmt.Errorf("%w: %s: %w", ErrAuth, why, err)
	}
	of := ofRights
	if r == connecting {
		of = ofConnection
	}
	c.metrics.refusals.WithLabelValues(of).Inc()
	err = &refusal{right: r, why: why, err: err}
	if before.why != why || now.Sub(before.seen) > logAgain {
		c.log.Warn("kafka refuses what it granted before, retrying", zap.Error(err))
	}
	return err
}
