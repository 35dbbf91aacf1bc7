package main

import (
	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/server"
)

func newIngest(s cli.Streams) *cobra.Command {
	return newServer(s, server.Ingest, new(bool), &cobra.Command{
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
	return newServer(s, server.Replay, new(bool), &cobra.Command{
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
