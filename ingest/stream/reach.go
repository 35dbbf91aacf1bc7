package stream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"syscall"
	"time"

	"github.com/segmentio/kafka-go"
)

// Ping connects to a broker, authenticates, and asks it for what only clients it knows are
// told. When that fails it says what is wrong, for each broker: the client library calls a
// wrong password, a listener that speaks TLS and a broker that is down all "Broker Not
// Available". ErrAuth: something has to be configured otherwise; ErrTransient: it may pass.
func (c *Client) Ping(ctx context.Context) error {
	var errs []error
	for _, addr := range c.cfg.Brokers {
		err := c.answered(connecting, c.reach(ctx, addr))
		if err == nil {
			return nil
		}
		errs = append(errs, fmt.Errorf("broker %s: %w", addr, err))
	}
	return fmt.Errorf("reach kafka: %w", errors.Join(errs...))
}

func (c *Client) reach(ctx context.Context, addr string) error {
	conn, err := c.dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	deadline := time.Now().Add(rpcTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	conn.SetDeadline(deadline) //nolint:errcheck // the request fails too
	// On a connection without SASL the dialer sends nothing; and a listener that wants SASL
	// tells its API's versions to everybody, the cluster's brokers to those it knows.
	_, err = conn.Brokers()
	return err
}

// explain classifies an error met by using a right and adds what it means for the
// configuration, if anything.
func (c *Client) explain(r right, err error) error {
	if err == nil || kindOf(err) != kindOther {
		return err
	}
	var (
		code      kafka.Error
		untrusted *tls.CertificateVerificationError
		notTLS    tls.RecordHeaderError
	)
	switch {
	case errors.As(err, &code) && c.cfg.SASL != nil && code == kafka.SASLAuthenticationFailed:
		return c.denied(connecting, fmt.Sprintf("wrong user name or password: user %q, mechanism %s", c.cfg.SASL.User, c.cfg.SASL.Mechanism), err)
	case errors.As(err, &code) && c.cfg.SASL != nil && code == kafka.UnsupportedSASLMechanism:
		return c.denied(connecting, "this listener does not take mechanism "+c.cfg.SASL.Mechanism, err)
	case errors.As(err, &untrusted):
		return c.denied(connecting, "this client does not trust the broker's certificate: name the authority that issued it, or reach the broker by a name that is in it", err)
	case errors.As(err, &notTLS):
		return c.denied(connecting, "this listener does not speak TLS, the client does", err)
	case alert(err):
		return c.denied(connecting, "the broker refused the TLS handshake; it may want a client certificate", err)
	case hungUp(err) && c.cfg.TLS != nil && strings.HasPrefix(err.Error(), "failed to dial"):
		return fmt.Errorf("%w: the broker hung up when TLS was to begin: does this listener speak it? %w", ErrTransient, err)
	case hungUp(err):
		// A broker that starts or stops does this as well: it may pass.
		var missing []string
		if c.cfg.TLS == nil {
			missing = append(missing, "TLS")
		}
		if c.cfg.SASL == nil {
			missing = append(missing, "SASL")
		}
		if len(missing) > 0 {
			return fmt.Errorf("%w: the broker hung up: does this listener want %s, which the client does not use? %w", ErrTransient, strings.Join(missing, " or "), err)
		}
	}
	return c.classify(r, err)
}

// hungUp: the other end closed the connection without a word.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// alert: the other end said in TLS what it does not like.
func alert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}
