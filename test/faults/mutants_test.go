package faults

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// mutant is the product with one safeguard taken away, by replacing text that must be there
// exactly once.
type mutant struct {
	name     string
	file     string // from the root of the module
	old, new string
	first    string // the written schedules to try first
	sim      bool   // noticed by the schedules of TestSimulation in replay/runner, which reach back weeks
	short    bool
}

var mutants = []mutant{ //nolint:gochecknoglobals // constant table
	{name: "acknowledges before the produce", file: "ingest/webhook/intake.go",
		old: "	return in.h.producer.Produce(in.ctx, records...)\n", new: "	_ = in.h.producer.Produce(in.ctx, " +
			"records...)\n	return nil\n",
		first: "^nowhere-to-go$"},
	{name: "sends no deduplication token", file: "storage/insert.go",
		old:   `settings := merge(clickhouse.Settings{"insert_deduplication_token": token}, insertSettings)`,
		new:   `settings := merge(clickhouse.Settings{"insert_deduplication_token": token + time.Now().String()}, insertSettings)`,
		first: "^stopped-owner"},
	{name: "announces no pending range", file: "replay/runner/settle.go",
		old: "l.commit(ctx, b.first, stream.Pending{First: b.first, Last: b.last})", new: "l.commit(ctx, b.first, stream.NoPending(nil))",
		first: "^kill$/^(one|apart)$/^insert$"},
	{name: "forgets the policy offset", file: "replay/runner/lane.go",
		old: "	for p, end := range l.horizon {\n", new: "	l.corrected = maps.Clone(l.horizon)\n	for p, end := range l.horizon {\n",
		first: "^late-policy"},
	{name: "commits before the insert", file: "replay/runner/settle.go",
		old: "l.commit(ctx, b.first, stream.Pending{First: b.first, Last: b.last})", new: "l.commit(ctx, b.last+1, stream.NoPending(nil))",
		first: "^kill$/^one$/^insert$", short: true},
	{name: "acknowledges what is spooled before its sync", file: "ingest/spool/commit.go",
		old:   "	if err := w.file.Sync(); err != nil {\n		return err\n	}\n	if fresh { // its name must last, too\n",
		new:   "	if fresh { // its name must last, too\n",
		first: "^spooled$"},
	{name: "looks for no duplicates", file: "replay/runner/settle.go",
		old: "		known, err = l.r.store.Known(ctx, rows)\n", new: "		known, err = nil, nil\n",
		first: "^kill$/^apart$/^produce$"}, // where no insert fails: it would never be certain
	{name: "looks up only what this process has stored", file: "storage/recent.go",
		old: "		if now || earlier || int64(codec.Minute(row.Event.RequestReceivedTimestamp)) < r.from[row.Cluster] {\n",
		new: "		if now || earlier {\n", first: "^kill$/^one$/^commit$"},
	{name: "does not wait for the other partitions", file: "replay/runner/settle.go",
		old: "	if l.entered || l.layout.Epoch == 0 {\n", new: "	if l.entered || l.layout.Epoch < 1<<31 {\n", first: "^layout$"},
	{name: "forgets policy that stored requests need", file: "replay/runner/held.go",
		old: "	h.horizon = at\n	return h.state, at, true\n", new: "	h.horizon = at\n	return h.state, at.Add(2 * slack), true\n",
		sim: true},
	{name: "repairs no rollup", file: "storage/recover.go",
		old:   "	if err != nil || n == 0 {\n		return n, err\n	}\n	return n, s.exec",
		new:   "	if err != nil || n+1 > 0 {\n		return 0, err\n	}\n	return n, s.exec",
		first: "^insert$/^partial$"},
	{name: "corrects rows that nobody has counted", file: "storage/insert.go",
		old:   "		if err := s.RollUp(ctx); err != nil {\n			return err\n		}\n	}\n	select {",
		new:   "	}\n	select {",
		first: "^late-policy-and-merge$"},
	{name: "forgets that counting was interrupted", file: "storage/countlater.go",
		old: "	l.doubt = true\n", new: "", first: "^count"},
	{name: "does not ask whether counting was under way", file: "storage/countlater.go",
		old: "doubt: n[0].counting > n[0].counted,", new: "doubt: false,", first: "^counted-in-part$"},
	{name: "has the broker answer before its sync", file: "ingest/embedded/guard.go",
		old: "	if err := g.responded(q[0], q[1], frame); err != nil {\n", new: "	if err := error(nil); err != nil || q[0] < 0 {\n",
		first: "^power$"},
	{name: "keeps the epoch of a log that was lost", file: "ingest/stream/consumer.go",
		old:   "a.Epoch, a.Committed, a.Metadata = max(m.epoch+1, fresh), start, m.pending.anew()",
		new:   "a.Epoch, a.Committed, a.Metadata = m.epoch, start, m.pending.anew()",
		first: "^blocks-made-anew$/^apart$"},
	{name: "takes a log that has grown again for the one it read", file: "ingest/stream/fingerprint.go",
		old: "	return got == 0 || got == want, err\n", new: "	return got == 0 || got == want || err == nil, err\n",
		first: "^log-regrown$"},
}

// mutantSeeds bounds the drawn schedules a mutant gets to survive in when it survived the
// written ones.
const mutantSeeds = 60

// TestMutants takes the safeguards away one by one. A mutant that is not noticed means that
// the harness shows nothing about that safeguard.
func TestMutants(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the product again")
	}
	needHost(t)
	root := moduleRoot(t)
	caught := 0
	for _, m := range mutants {
		if !m.short && !long() {
			continue
		}
		t.Run(strings.ReplaceAll(m.name, " ", "-"), func(t *testing.T) {
			tests := []string{"TestSteered/" + m.first, "^TestSimulated$"}
			if m.sim {
				tests = []string{"^TestSimulation$"}
			}
			binary := m.build(t, root)
			for _, run := range tests {
				if by := m.hunt(t, binary, "-test.run", run); by != "" {
					t.Logf("noticed by %s", by)
					caught++
					return
				}
			}
			t.Errorf("a product that %s passes %s (%d drawn schedules)", m.name, strings.Join(tests, " and "), mutantSeeds)
		})
	}
	t.Logf("%d mutants noticed", caught)
}

// moduleRoot returns the folder of go.mod.
func moduleRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
}

// TestMutantsFit: the short set builds few of them, and the code goes on.
func TestMutantsFit(t *testing.T) {
	root := moduleRoot(t)
	for _, m := range mutants {
		m.text(t, root)
	}
}

// text returns the file to change, and what it becomes.
func (m mutant) text(t *testing.T, root string) (file, mutated string) {
	t.Helper()
	file = filepath.Join(root, filepath.FromSlash(m.file))
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(string(text), m.old); n != 1 {
		t.Fatalf("%s holds the text to replace %d times, want once; it is:\n%s", m.file, n, m.old)
	}
	return file, strings.Replace(string(text), m.old, m.new, 1)
}

// build makes the test binary of the mutant.
func (m mutant) build(t *testing.T, root string) string {
	t.Helper()
	file, changed := m.text(t, root)
	dir := t.TempDir()
	mutated := filepath.Join(dir, filepath.Base(file))
	overlay := filepath.Join(dir, "overlay.json")
	binary := filepath.Join(dir, "faults.test")
	list, err := json.Marshal(map[string]map[string]string{"Replace": {file: mutated}})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{mutated: []byte(changed), overlay: list} {
		if err := os.WriteFile(name, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	tests := "./test/faults"
	if m.sim {
		tests = "./replay/runner"
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-c", "-vet=off", "-overlay", overlay, "-o", binary, tests)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0") // as the product: what it depends on is built already
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("build the mutant: %v\n%s", err, out)
	}
	return binary
}

//nolint:gochecknoglobals // compiled constant
var caughtBy = regexp.MustCompile(`(?m)--- FAIL: (TestSteered/\S+)|` +
	`(?s:--- FAIL: (TestSimulation) .*?(seed \d+))|schedule of (seed \d+) fails:\n\s*(.*)`)

// hunt runs tests of the mutant and returns what noticed it; empty: nothing did.
func (m mutant) hunt(t *testing.T, binary string, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append(args, "-test.failfast", "-test.timeout", "20m")...)
	cmd.Env = append(os.Environ(), "RETRIAL_FAULTS_LONG=1", "RETRIAL_FAULTS_NOSHRINK=1", "RETRIAL_FAULTS_SEED=1",
		fmt.Sprint("RETRIAL_FAULTS_N=", mutantSeeds))
	out, err := cmd.CombinedOutput()
	if err == nil {
		return ""
	}
	match := caughtBy.FindAllStringSubmatch(string(out), -1)
	if len(match) == 0 {
		t.Fatalf("the mutant ends without a schedule that fails: %v\n%.3000s", err, out)
	}
	text := ""
	for _, f := range match {
		for _, part := range f[1:] {
			if part != "" {
				text += strings.TrimSpace(part) + " "
			}
		}
	}
	return text
}
