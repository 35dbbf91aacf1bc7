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

// Ping connects to a broker, authenticates, and makes a request that only known clients may
// make. If that fails, its error says what is wrong with each broker: the client library reports
// a wrong password, a listener that speaks TLS and a broker that is down alike, as "Broker Not
// Available". ErrAuth: the configuration must change; ErrTransient: it may pass.
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
	// Without SASL the dialer sends nothing; and a listener with SASL tells anyone its API versions, but only known clients the brokers.
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
		return c.denied(connecting,
			fmt.Sprintf("wrong user name or password: user %q, mechanism %s", c.cfg.SASL.User, c.cfg.SASL.Mechanism), err)
	case errors.As(err, &code) && c.cfg.SASL != nil && code == kafka.UnsupportedSASLMechanism:
		return c.denied(connecting, "this listener does not accept mechanism "+c.cfg.SASL.Mechanism, err)
	case errors.As(err, &untrusted):
		return c.denied(connecting, "this client does not trust the broker's certificate: "+
			"name the authority that issued it, or reach the broker by a name in it", err)
	case errors.As(err, &notTLS):
		return c.denied(connecting, "the client uses TLS, this listener does not", err)
	case alert(err):
		return c.denied(connecting, "the broker refused the TLS handshake; it may require a client certificate", err)
	case hungUp(err) && c.cfg.TLS != nil && strings.HasPrefix(err.Error(), "failed to dial"):
		return fmt.Errorf("%w: the broker closed the connection at the TLS handshake: does this listener use TLS? %w", ErrTransient, err)
	case hungUp(err):
		// A broker that starts or stops does so, too: it may pass.
		var missing []string
		if c.cfg.TLS == nil {
			missing = append(missing, "TLS")
		}
		if c.cfg.SASL == nil {
			missing = append(missing, "SASL")
		}
		if len(missing) > 0 {
			return fmt.Errorf("%w: the broker closed the connection: does this listener require %s, which the client does not use? %w",
				ErrTransient, strings.Join(missing, " or "), err)
		}
	}
	return c.classify(r, err)
}

// hungUp reports whether the other end closed the connection without an error.
func hungUp(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET)
}

// alert reports whether the other end refused with a TLS alert.
func alert(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "remote error"
}
