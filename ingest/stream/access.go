package stream

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"go.uber.org/zap"
)

// right is something a broker lets a client do, or refuses; the zero value is to connect at
// all: TLS and SASL.
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

// access remembers what a client was allowed to do. What was never allowed needs somebody to
// give a right or a password, and is ErrAuth: it ends what was begun. What was allowed before
// and is refused now is tried again for as long as anything transient: a broker that has just
// started takes connections for a while before it knows all users and their rights, and who
// changes a password under a process that runs would not have it end for that.
type access struct {
	mu      sync.Mutex
	granted map[right]bool
	told    map[right]told
}

// told is the refusal of a right as it was last logged.
type told struct {
	why  string
	seen time.Time // when it was last met
}

// What is refused, as metrics label it.
const (
	ofConnection = "connection"
	ofRights     = "rights"
)

// tellAgain is how long a refusal must have been gone to be told again in the same words.
const tellAgain = time.Minute

// refusal is the error for what was allowed before. It matches ErrTransient and not ErrAuth;
// metrics count it as what it is.
type refusal struct {
	right right
	why   string
	err   error
}

func (r *refusal) Error() string {
	return fmt.Sprintf("kafka refuses access that it granted before: to %s: %s (a broker that starts may not know its users and their rights yet; or they were changed): %v", r.right, r.why, r.err)
}

func (r *refusal) Unwrap() error { return r.err }

// Is makes errors.Is(err, ErrTransient) true.
func (r *refusal) Is(target error) bool { return target == ErrTransient }

// refused reports whether err is a refusal of what was allowed before. It has been logged.
func refused(err error) bool {
	_, ok := errors.AsType[*refusal](err)
	return ok
}

// answered takes note of a broker's answer to the use of a right: of one that is good as of
// one that is not, which is returned explained.
func (c *Client) answered(r right, err error) error {
	if err != nil {
		return c.explain(r, err)
	}
	a := &c.access
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.granted == nil {
		a.granted, a.told = make(map[right]bool), make(map[right]told)
	}
	a.granted[connecting], a.granted[r] = true, true
	return nil
}

// denied returns the error for a broker's refusal, which why explains: ErrAuth, unless the
// right was granted before. Every refusal passes here.
func (c *Client) denied(r right, why string, err error) error {
	a, now := &c.access, time.Now()
	a.mu.Lock()
	granted, before := a.granted[r], a.told[r]
	if granted {
		a.told[r] = told{why, now}
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
	if before.why != why || now.Sub(before.seen) > tellAgain {
		c.log.Warn("kafka refuses what it granted before, trying on", zap.Error(err))
	}
	return err
}
