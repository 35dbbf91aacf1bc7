package kafkatest

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"
)

// patience bounds every wait for a broker: long enough for a machine that is busy with
// everything else.
const patience = 3 * time.Minute

// Run starts a cluster for a test, with all of Needed granted for the product's own names,
// and ends it with the test. Where Kafka cannot run, the test is skipped, or fails if
// everything has to run. cfg.Dir is the test's when it is empty.
func Run(t testing.TB, cfg Config) *Cluster {
	t.Helper()
	if cfg.Dir == "" {
		cfg.Dir = t.TempDir()
	}
	c, err := New(cfg)
	if errors.Is(err, errLacking) {
		if os.Getenv("RETRIAL_REQUIRE_ALL") != "" || os.Getenv("CI") != "" {
			t.Fatalf("NOT RUN: %v", err)
		}
		t.Skipf("NOT RUN: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Close()
		if t.Failed() {
			for _, n := range c.Nodes {
				t.Logf("Kafka %s, node %d:\n%s", c.version, n.id, n.lastWords())
			}
		}
	})
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.Start(ctx); err != nil {
		t.Fatal(err)
	}
	if err := c.Grant(ctx, Needed("")...); err != nil {
		t.Fatal(err)
	}
	return c
}

// Restart starts a node that was killed or stopped, or stops it in an orderly way before.
func (n *Node) Restart(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := n.Stop(ctx); err != nil {
		t.Fatal(err)
	}
	if err := n.Start(ctx); err != nil {
		t.Fatal(err)
	}
}

// Setting is a version of Kafka and a way to reach it.
type Setting struct {
	Version   string
	Mechanism string // of SASL_SSL; empty: PLAINTEXT
}

// String names a subtest.
func (s Setting) String() string {
	if s.Mechanism == "" {
		return s.Version + "/PLAINTEXT"
	}
	return s.Version + "/SASL_SSL/" + s.Mechanism
}

// Access returns how a client reaches a cluster in this setting.
func (s Setting) Access(c *Cluster) Access {
	if s.Mechanism == "" {
		return c.Plaintext()
	}
	return c.SASL(s.Mechanism)
}

// Settings returns those to test with: every version with either listener where
// RETRIAL_TEST_KAFKA_ALL is set, as make test-kafka does, and one otherwise.
func Settings() []Setting {
	if !All() {
		return []Setting{{DefaultVersion, "SCRAM-SHA-512"}}
	}
	var all []Setting
	for i, v := range Versions {
		all = append(all, Setting{Version: v}, Setting{v, []string{"SCRAM-SHA-256", "SCRAM-SHA-512"}[i%2]})
	}
	return all
}

// All reports whether everything was asked for that concerns a real Kafka, and not only what
// each run of the tests has time for.
func All() bool { return os.Getenv("RETRIAL_TEST_KAFKA_ALL") != "" }
