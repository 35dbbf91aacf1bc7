package main

import (
	"strings"
	"testing"

	"github.com/retrial-io/retrial/internal/cli"
)

// One half alone reaches the other through a real Kafka only.
func TestHalvesNeedKafka(t *testing.T) {
	for _, command := range []string{"ingest", "replay"} {
		t.Run(command, func(t *testing.T) {
			var out, errs strings.Builder
			code := execute(t.Context(), []string{command, "--data-dir", t.TempDir()},
				cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs})
			if code != cli.ExitUsage || !strings.Contains(errs.String(), "kafka-brokers") ||
				!strings.Contains(errs.String(), "retrial serve") {
				t.Errorf("exit code %d, printed %q", code, errs.String())
			}
		})
	}
}
