package main

import (
	"fmt"
	"io"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
)

// halves says which halves of the pipeline a process runs. They meet in Kafka alone:
//
//	retrial ingest ×N                                   retrial replay ×M
//	apiservers ─mTLS─▶ webhook ─redact─▶ spool ─▶ Kafka ─▶ runner ─▶ ClickHouse
//	retrial import ─▶ its socket ─┘                        ├─▶ page, API, detections (one of M)
//	                                                       └─ watched clusters (one of M)
type halves uint8

const (
	ingestHalf halves = 1 << iota
	replayHalf
	bothHalves = ingestHalf | replayHalf
)

func (h halves) ingests() bool { return h&ingestHalf != 0 }
func (h halves) replays() bool { return h&replayHalf != 0 }

// String names the halves as the commands are named.
func (h halves) String() string {
	switch h {
	case ingestHalf:
		return "ingest"
	case replayHalf:
		return "replay"
	default:
		return "serve"
	}
}

// check returns what in the configuration one half alone cannot work with.
func (h halves) check(cfg config.Config) error {
	if h == bothHalves {
		return nil
	}
	if len(cfg.Kafka.Brokers) == 0 {
		return fmt.Errorf("kafka-brokers: retrial %s shares its work through a real Kafka: name its brokers, or run both halves in one process: retrial serve", h)
	}
	return nil
}

// greeting is what a person who started the process reads when it is up.
func (h halves) greeting(a addresses) string {
	switch h {
	case ingestHalf:
		return fmt.Sprintf("Retrial receives.  Webhook: %s   Metrics: %smetrics", a.webhook, a.ui)
	case replayHalf:
		return "Retrial replays.  Page: " + a.ui
	default:
		return fmt.Sprintf("Retrial is up.  Page: %s   Webhook: %s", a.ui, a.webhook)
	}
}

func newIngest(s cli.Streams) *cobra.Command {
	return newServer(s, ingestHalf, new(bool), &cobra.Command{
		Use:   "ingest",
		Short: "Receive audit events and hand them to Kafka: one half of serve",
		Long: `Run the receiving half of ` + "`retrial serve`" + `: the audit webhook's endpoint, redaction, and the
way into Kafka. It keeps no store and judges nothing; retrial replay does, on the same Kafka.
Run as many as the posts need, behind one address: they share nothing but Kafka, the
authority with its registry of clusters (DATA-DIR/pki) and the redaction key, which have to be
the same in all of them (deploy/ingest.yaml).

It takes the configuration of serve; what concerns the store, the replay and the page is not
used. --ui-listen is where its metrics are: /metrics, /healthz, /readyz. retrial import with its
--data-dir hands logs to it; states go to a replay process, which knows what is known already.`,
	})
}

func newReplay(s cli.Streams) *cobra.Command {
	return newServer(s, replayHalf, new(bool), &cobra.Command{
		Use:   "replay",
		Short: "Replay what is in Kafka, store the verdicts and show them: the other half of serve",
		Long: `Run the judging half of ` + "`retrial serve`" + `: it reads audit.events and audit.policy from Kafka,
replays every event, stores rows in ClickHouse, and answers the page and the commands. Run as many
as the events need, up to the number of partitions: Kafka shares the partitions out among
them, and one that goes is taken over by the others from its last commit on. Detections and
watched clusters are looked after by one of them at a time.

Several of them need a ClickHouse server (--clickhouse-dsn); one alone may use the embedded store.
It takes the configuration of serve; what concerns the webhook is not used.`,
	})
}

// elsewhere answers for the API in a process that has none.
type elsewhere struct{}

func (elsewhere) ServeHTTP(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(http.StatusNotImplemented)
	_, _ = io.WriteString(w, "this process only receives events: ask a replay process, with its --data-dir or --server URL\n")
}
