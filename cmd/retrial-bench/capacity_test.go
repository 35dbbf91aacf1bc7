package main

import (
	"bytes"
	"os"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/internal/cli"
)

// TestCapacityPage runs the commands of docs/capacity.md: each prints what stands below it.
func TestCapacityPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/capacity.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(page), "```\n$ retrial bench capacity")
	if len(blocks) < 4 {
		t.Fatalf("the page has %d examples, want 3 at least", len(blocks)-1)
	}
	for _, block := range blocks[1:] {
		line, rest, _ := strings.Cut(block, "\n")
		want, _, ok := strings.Cut(rest, "```")
		if !ok {
			t.Fatalf("%s: no end of the block", line)
		}
		var out bytes.Buffer
		c := newBenchCapacity(cli.Streams{Out: &out, Err: &out})
		c.SetArgs(strings.Fields(line))
		if err := c.Execute(); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got := strings.Join(trimmed(out.String()), "\n"); got != strings.Join(trimmed(want), "\n") {
			t.Errorf("retrial bench capacity%s\nprints\n%s\nthe page has\n%s", line, got, want)
		}
	}
}

// trimmed returns lines without the spaces at their ends.
func trimmed(text string) (out []string) {
	for line := range strings.Lines(text) {
		out = append(out, strings.TrimRight(line, " \n"))
	}
	return out
}

// TestCapacityLimits: more clusters take more processes to hold their policy, more events never; one cluster cannot be parted; and
// what one machine does needs one of each kind.
func TestCapacityLimits(t *testing.T) {
	small := capacity{Events: 500, Clusters: 1, Writes: 1000, PolicyDays: 431, EventDays: 30, Questions: 1, Cores: 16, MemoryGB: 64,
		Replicas: 3, ClusterMB: 1, IngestCost: 7.5, ReplayCost: 20, StoreCost: 40, QuestionCost: 150, LogBytes: 250, StoreBytes: 165}
	p := small.plan()
	for _, s := range p.Shares {
		if s.Name != "Kafka" && s.Machines != 1 {
			t.Errorf("%s takes %d machines", s.Name, s.Machines)
		}
	}
	for _, l := range p.Limits {
		if l.Used > 1 {
			t.Errorf("%s is at %.2f of its limit", l.Name, l.Used)
		}
	}
	used := func(c capacity, name string) float64 {
		for _, l := range c.plan().Limits {
			if l.Name == name {
				return l.Used
			}
		}
		t.Fatalf("no limit %q", name)
		return 0
	}
	const memory = "memory of a process that replays"
	more := small
	more.Clusters = 1000
	if n := more.plan().Shares[2].Machines; n < 9 || n > 30 || used(more, memory) > 1 {
		t.Errorf("%d processes hold the policy of a thousand clusters, each to %.2f of its memory", n, used(more, memory))
	}
	more.Clusters, more.Writes = 1, 1e9
	if used(more, memory) <= 1 {
		t.Error("one cluster is parted among processes")
	}
	more.Writes, more.Replacing = 1000, 800
	if stored, held := more.versions(); stored != 431_000 || held != 200*431+800*32 {
		t.Errorf("a cluster has %.0f versions and %.0f are held, want 431,000 and 111,800", stored, held)
	}
	if more.Replacing = 1001; more.check() == nil {
		t.Error("more writes replace than there are")
	}
	more = small
	more.Events *= 1000
	if got := more.plan(); used(more, memory) != used(small, memory) || got.Shares[2].Machines < 2 ||
		got.Partitions < got.Shares[2].Machines {
		t.Errorf("a thousand times the events: %+v", got)
	}
	for _, l := range more.plan().Limits {
		if l.Used > 1 {
			t.Errorf("%s is at %.2f of its limit at %.0f events a second", l.Name, l.Used, more.Events)
		}
	}
}
