package webhook

import (
	"cmp"
	"crypto/tls"
	"log"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"
	"go.uber.org/zap/zapcore"
)

// ServerConfig holds the timeouts of a listener. The zero value is usable.
type ServerConfig struct {
	// ReadHeaderTimeout bounds a request's header, and with TLS the handshake; 0 is 10 s.
	ReadHeaderTimeout time.Duration
	// ReadTimeout bounds header and body together; 0 is 30 s, what an apiserver gives
	// itself for the whole exchange.
	ReadTimeout time.Duration
	// Contacts, if set, records refused handshakes.
	Contacts *Contacts
}

// NewServer returns the server of a listener: HTTPS with HTTP/2 and HTTP/1.1 if tlsConfig is
// given (see identity.Authority.ServerTLS; start it with ServeTLS and empty file names), plain
// HTTP/1.1 for a local socket if it is nil. logger and reg may be nil. The registered metric,
// retrial_webhook_connection_errors_total, counts what net/http reports, which for an open
// port is mostly refused handshakes: an expired or foreign client certificate shows here, and
// in the apiserver's log as a TLS alert.
func NewServer(
	cfg ServerConfig, tlsConfig *tls.Config, handler http.Handler, logger *zap.Logger, reg prometheus.Registerer,
) (*http.Server, error) {
	if logger == nil {
		logger = zap.NewNop()
	}
	errorLog := &connectionLog{
		contacts: cfg.Contacts,
		log: logger.Named("ingest.webhook").WithOptions(zap.WrapCore(func(core zapcore.Core) zapcore.Core {
			return zapcore.NewSamplerWithOptions(core, time.Minute, 20, 0) // port scanners fill this log
		})),
		errors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "retrial_webhook_connection_errors_total",
			Help: "Connections that ended in an error before or between requests, mostly refused TLS handshakes.",
		}),
	}
	if reg != nil {
		if err := reg.Register(errorLog.errors); err != nil {
			return nil, err
		}
	}
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(tlsConfig != nil)
	return &http.Server{
		Handler:           handler,
		TLSConfig:         tlsConfig,
		ReadHeaderTimeout: cmp.Or(cfg.ReadHeaderTimeout, 10*time.Second),
		ReadTimeout:       cmp.Or(cfg.ReadTimeout, 30*time.Second),
		WriteTimeout:      time.Minute,     // from the end of the header to the end of the answer; leaves room for Config.Deadline
		IdleTimeout:       3 * time.Minute, // apiservers post at least every 30 s while there is anything to post
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          log.New(errorLog, "", 0),
		Protocols:         protocols,
		HTTP2:             &http.HTTP2Config{MaxConcurrentStreams: 64},
	}, nil
}

// connectionLog turns net/http's error lines into log entries and a count.
type connectionLog struct {
	contacts *Contacts
	log      *zap.Logger
	errors   prometheus.Counter
}

// Write takes one line. The line carries a remote address and an error's text, never a
// header or a body.
func (c *connectionLog) Write(line []byte) (int, error) {
	c.errors.Inc()
	text := strings.TrimSpace(string(line))
	c.contacts.handshake(text)
	c.log.Warn("connection error", zap.String("detail", text))
	return len(line), nil
}
