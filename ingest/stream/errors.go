package stream

import (
	"context"
	"errors"
	"fmt"

	"github.com/segmentio/kafka-go"
)

// Errors that callers distinguish with errors.Is. A produce or commit error that matches none is a fault of the request or of this package.
var (
	// ErrFull: the broker's log is at its cap; nothing was stored. Push back.
	ErrFull = errors.New("kafka log is full")
	// ErrTooLarge: a record is larger than a topic accepts; see TooLargeError.
	ErrTooLarge = errors.New("record too large")
	// ErrTransient: the broker could not be reached or could not store the records within the deadline. Some may have been stored. Retry.
	ErrTransient = errors.New("kafka is temporarily unavailable")
	// ErrAuth: the broker refuses credentials or permissions that it never accepted; of those it granted before that is ErrTransient.
	ErrAuth = errors.New("kafka refuses access")
	// ErrClosed: the client was closed.
	ErrClosed = errors.New("stream client is closed")
	// ErrRevoked: a commit came too late: the partition is another consumer's. Drop what was not committed; the new owner reads it again.
	ErrRevoked = errors.New("partition was revoked")
	// ErrLogReplaced: the log ends before the requested position, or has other records where
	// it was read before: the topic was recreated or lost records. The consumer starts over
	// with a new epoch.
	ErrLogReplaced = errors.New("the log is not the one that was read")
	// ErrCodecVersion: a record was written with a codec version this release cannot read.
	ErrCodecVersion = errors.New("unknown record codec version")
	// ErrMalformed: a record's headers are not those of the codec.
	ErrMalformed = errors.New("malformed record headers")
	// ErrStop, wrapped by a Handler's error, ends Consume instead of causing a new attempt.
	ErrStop = errors.New("stop consuming")
)

// TooLargeError names the record of a Produce call that is too large. Nothing of the call
// was sent. It matches ErrTooLarge.
type TooLargeError struct {
	Index int    // of the record in the call
	Topic string // TopicEvents, ...
	Size  int    // bytes of key, value and headers
	Limit int    // bytes
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("record %d for %s has %d bytes, the limit is %d", e.Index, e.Topic, e.Size, e.Limit)
}

// Is makes errors.Is(err, ErrTooLarge) true.
func (e *TooLargeError) Is(target error) bool { return target == ErrTooLarge }

// Kinds of errors, as metrics label them.
const (
	kindFull      = "full"
	kindTooLarge  = "too_large"
	kindTransient = "transient"
	kindAuth      = "auth"
	kindRevoked   = "revoked"
	kindClosed    = "closed"
	kindOther     = "other"
)

// kinds are the kinds of the errors, in the order in which they are looked for.
var kinds = [...]struct {
	err  error
	kind string
}{{ErrFull, kindFull}, {ErrTooLarge, kindTooLarge}, {ErrAuth, kindAuth}, {ErrRevoked, kindRevoked}, {ErrClosed, kindClosed},
	{ErrTransient, kindTransient}}

func kindOf(err error) string {
	if refused(err) {
		return kindAuth
	}
	for _, k := range kinds {
		if errors.Is(err, k.err) {
			return k.kind
		}
	}
	return kindOther
}

// classify wraps an error of the Kafka client, met by using a right, with its kind. An unknown
// error is transient: networks fail in more ways than a list holds, and every loop that retries
// is bounded by a deadline.
func (c *Client) classify(r right, err error) error {
	var code kafka.Error
	switch {
	case err == nil, kindOf(err) != kindOther, errors.Is(err, ErrLogReplaced):
		return err
	case errors.As(err, &code):
		switch code {
		case kafka.ThrottlingQuotaExceeded:
			return fmt.Errorf("%w: %w", ErrFull, err)
		case kafka.MessageSizeTooLarge, kafka.RecordListTooLarge:
			return fmt.Errorf("%w: %w", ErrTooLarge, err)
		case kafka.TopicAuthorizationFailed, kafka.GroupAuthorizationFailed, kafka.ClusterAuthorizationFailed:
			if r == connecting { // it did connect
				r = right{"make a request", ""}
			}
			return c.denied(r, "this user lacks the right to "+r.String(), err)
		case kafka.SASLAuthenticationFailed, kafka.UnsupportedSASLMechanism, kafka.IllegalSASLState:
			return c.denied(connecting, "this listener requires another way of authentication", err)
		case kafka.IllegalGeneration, kafka.UnknownMemberId, kafka.RebalanceInProgress, kafka.FencedInstanceID:
			return fmt.Errorf("%w: %w", ErrRevoked, err)
		case kafka.BrokerNotAvailable:
			// The client's error for a failed connection, whatever the cause: a wrong
			// password shows up as this.
			return fmt.Errorf("%w: no broker could be used (check addresses, TLS, and SASL mechanism, user and password): %w",
				ErrTransient, err)
		case kafka.InvalidMessage, kafka.InvalidTopic, kafka.InvalidRequiredAcks, kafka.UnsupportedForMessageFormat,
			kafka.InvalidConfiguration, kafka.InvalidReplicationFactor, kafka.InvalidPartitionNumber,
			kafka.OffsetMetadataTooLarge, kafka.PolicyViolation:
			return err
		}
		return fmt.Errorf("%w: %w", ErrTransient, err)
	case errors.Is(err, context.Canceled):
		return err
	}
	return fmt.Errorf("%w: %w", ErrTransient, err)
}
