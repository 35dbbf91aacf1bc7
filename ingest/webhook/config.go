package webhook

import (
	"cmp"
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
)

// Redactor takes secrets out before anything is produced; redact.Redactor is one.
type Redactor interface {
	// Redact replaces secrets in a decoded event.
	Redact(e *event.Event)
	// RedactBytes returns raw without secrets, for bytes that are not an event.
	RedactBytes(raw []byte) []byte
}

// Clusters decides who may post. identity.Registry implements it; its errors say why a
// credential is refused.
type Clusters interface {
	// Certificate returns the cluster of a client certificate that the handshake verified, an error if it is not, or no longer, accepted.
	Certificate(cert *x509.Certificate) (cluster string, err error)
	// Token returns nil when token is one of the cluster's.
	Token(cluster, token string) error
	// Known reports whether the cluster is registered and not revoked.
	Known(cluster string) bool
}

// Config are the limits and modes of one listener's handler. The zero value is usable.
type Config struct {
	// MaxBody is the largest body taken, in bytes; 0 is 128 MiB. Apiservers do not truncate by default: 400 with bodies can be large.
	MaxBody int64
	// MaxEvent is the largest event kept whole, in bytes of its canonical JSON; 0 is
	// 8 MiB less 2 KiB, what the stream takes by default. A larger one loses its bodies, is
	// annotated with size and digest, and goes on.
	MaxEvent int
	// MaxInFlight bounds the bytes of all bodies worked on; 0 is 512 MiB. What is decoded and encoded comes on top: at worst thrice that.
	MaxInFlight int64
	// MaxClusterInFlight bounds the same for one cluster; 0 is half of MaxInFlight, so
	// that no single cluster can starve the others.
	MaxClusterInFlight int64
	// MaxState bounds the body of a state post, in bytes; 0 is 4 GiB. It is streamed.
	MaxState int64
	// Deadline is how long after its arrival a request is answered; 0 is 25 s. Apiservers give up at 30 s and post the same batch again.
	Deadline time.Duration
	// Anonymous takes posts without a credential for any registered cluster. A credential
	// that is presented is checked all the same.
	Anonymous bool
	// Trusted is for a socket only its owner can open: no authentication, any cluster name, source "import", policy query, state posts.
	Trusted bool
	// Ready returns nil if records can be taken; a nil Ready means always.
	Ready func(ctx context.Context) error
	// State takes the body of a state post, as kubectl prints objects, and returns what to answer as JSON. An error that wraps
	// [ErrBadState] is the body's fault. A nil State switches the path off. since, if not zero, is when a log begins that has every later
	// change.
	State func(ctx context.Context, cluster string, since time.Time, r io.Reader) (any, error)
	// Contacts, if set, records who was accepted and who was refused.
	Contacts *Contacts
	// Now is the clock; nil is time.Now.
	Now func() time.Time
}

// ErrBadState means that a state body cannot be used; it is answered with 400, and a retry
// would not help.
var ErrBadState = errors.New("not usable as a state")

const (
	defaultMaxBody     = 128 << 20
	defaultMaxEvent    = stream.DefaultMaxRecordBytes - recordOverhead
	defaultMaxInFlight = 512 << 20
	defaultMaxState    = 4 << 30
	defaultDeadline    = 25 * time.Second

	// chunkBytes is how much is encoded and produced at once: it bounds the memory of large bodies; the usual 0.25 to 2 MB go as one.
	chunkBytes = 8 << 20
	// itemLetters is how many malformed items of a list become a letter each; the rest share one, or few bytes could grow into hundreds.
	itemLetters = 256
	// prefixRead and prefixKept are how much of a refused body is read for, and kept in,
	// its dead letter. More is read than kept: redaction works better with context, and
	// the cut at the end must not leave half a secret.
	prefixRead = 64 << 10
	prefixKept = 4 << 10
)

func (c Config) withDefaults() (Config, error) {
	c.MaxBody = cmp.Or(c.MaxBody, defaultMaxBody)
	c.MaxEvent = cmp.Or(c.MaxEvent, defaultMaxEvent)
	c.MaxInFlight = cmp.Or(c.MaxInFlight, max(defaultMaxInFlight, c.MaxBody))
	c.MaxClusterInFlight = cmp.Or(c.MaxClusterInFlight, max(c.MaxInFlight/2, c.MaxBody))
	c.MaxState = cmp.Or(c.MaxState, defaultMaxState)
	c.Deadline = cmp.Or(c.Deadline, defaultDeadline)
	if c.Now == nil {
		c.Now = time.Now
	}
	var errs []error
	positive := func(name string, v int64) {
		if v < 0 {
			errs = append(errs, fmt.Errorf("%s is negative", name))
		}
	}
	positive("MaxBody", c.MaxBody)
	positive("MaxEvent", int64(c.MaxEvent))
	positive("MaxState", c.MaxState)
	positive("Deadline", int64(c.Deadline))
	if c.MaxInFlight < c.MaxBody || c.MaxClusterInFlight < c.MaxBody {
		errs = append(errs, fmt.Errorf("MaxInFlight %d and MaxClusterInFlight %d must be at least MaxBody %d, "+
			"or an allowed body could never be taken", c.MaxInFlight, c.MaxClusterInFlight, c.MaxBody))
	}
	if c.Trusted && c.Anonymous {
		errs = append(errs, errors.New("a listener is Trusted or Anonymous, not both"))
	}
	return c, errors.Join(errs...)
}
