package server

import (
	"fmt"
	"io"
	"net/http"

	"github.com/retrial-io/retrial/internal/config"
)

// Halves says which halves of the pipeline a process runs. They meet in Kafka alone:
//
//	retrial ingest ×N                                   retrial replay ×M
//	apiservers ─mTLS─▶ webhook ─redact─▶ spool ─▶ Kafka ─▶ runner ─▶ ClickHouse
//	retrial import ─▶ its socket ─┘                        ├─▶ page, API, detections (M share the clusters)
//	                                                       └─ watched clusters (one of M)
type Halves uint8

// The halves, and both of them.
const (
	Ingest Halves = 1 << iota
	Replay
	Both = Ingest | Replay
)

func (h Halves) ingests() bool { return h&Ingest != 0 }

func (h Halves) replays() bool { return h&Replay != 0 }

// String returns the name of the command that runs the halves.
func (h Halves) String() string {
	switch h {
	case Ingest:
		return "ingest"
	case Replay:
		return "replay"
	default:
		return "serve"
	}
}

// check returns an error for a configuration with which one half alone cannot work.
func (h Halves) check(cfg config.Config) error {
	if h != Both && len(cfg.Kafka.Brokers) == 0 {
		return fmt.Errorf("kafka-brokers: retrial %s shares its work through a real Kafka: name its brokers, or run both halves in one "+
			"process: retrial serve", h)
	}
	return nil
}

func (h Halves) greeting(a addresses) string {
	switch h {
	case Ingest:
		return fmt.Sprintf("Retrial receives.  Webhook: %s   Metrics: %smetrics", a.webhook, a.ui)
	case Replay:
		return "Retrial replays.  Page: " + a.ui
	default:
		return fmt.Sprintf("Retrial is up.  Page: %s   Webhook: %s", a.ui, a.webhook)
	}
}

// elsewhere answers in place of the API in a process without one.
type elsewhere struct{}

func (elsewhere) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusNotImplemented)
	_, _ = io.WriteString(w, "this process only receives events: ask a replay process, with its --data-dir or --server URL\n")
}

// addresses are where a running server can be reached; those it does not listen on are empty.
type addresses struct{ webhook, ui, socket, sql string }
