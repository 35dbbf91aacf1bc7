// Command oracle puts generated questions to the index and to the real Kubernetes code and
// compares the answers.
//
//	go run ./cmd/oracle
//
// ORACLE_N is how many comparisons to make (10000000), ORACLE_SEED chooses them (1). It ends
// at the first disagreement, prints it as small as it can be made, with the policy and the
// real answer, writes it to the directory of -found, where the index's own tests read it from
// then on, and exits with 1. The last line of its output is
//
//	oracle comparisons=N disagreements=N seed=N
//
// With -corpus DIR it writes cases that differ from each other in what decides, with the
// real code's answers, for the index's own tests.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"sync"
	"time"

	"github.com/retrial-io/retrial/rbacindex/oracle/compare"
)

var errDisagree = errors.New("the index and Kubernetes disagree")

func main() {
	corpus := flag.String("corpus", "", "write cases to this `directory` instead")
	found := flag.String("found", filepath.Join("..", "testdata", "corpus"), "write a disagreement to this `directory`")
	flag.Parse()
	if err := run(os.Stdout, compare.Ours{}, *corpus, *found); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

// run does what the flags say; the zero value of ours is the index.
func run(out io.Writer, ours compare.Ours, corpus, found string) error {
	n, err := number("ORACLE_N", 10_000_000)
	if err != nil {
		return err
	}
	seed, err := number("ORACLE_SEED", 1)
	if err != nil {
		return err
	}
	if corpus != "" {
		return writeCorpus(out, corpus, n, seed)
	}
	debug.SetGCPercent(400) // little lives long, and much is made
	p := &progress{total: n, start: time.Now(), terminal: isTerminal(os.Stderr)}
	res := compare.Run(compare.Config{Comparisons: n, Seed: seed, Ours: ours, Progress: p.show})
	p.end()
	disagreements := 0
	if res.Disagreement != nil {
		disagreements = 1
		fmt.Fprintln(out, res.Disagreement.Error())
		if raw, err := res.Disagreement.Case.MarshalJSON(); err == nil {
			name := filepath.Join(found, fmt.Sprintf("found-%d.jsonl", seed))
			if err := os.WriteFile(name, append(raw, '\n'), 0o644); err != nil {
				fmt.Fprintln(os.Stderr, "oracle: keep the case:", err)
			} else {
				fmt.Fprintln(out, "written to", name)
			}
		}
	}
	for _, kind := range []compare.Asked{compare.AskDecision, compare.AskRules, compare.AskCovers, compare.AskBind, compare.AskWrite} {
		fmt.Fprintf(out, "%-9s %10d, yes to %d\n", kind, res.Asked[kind], res.Yes[kind])
	}
	fmt.Fprintf(out, "oracle comparisons=%d disagreements=%d seed=%d\n", res.Comparisons, disagreements, seed)
	if disagreements > 0 {
		return errDisagree
	}
	return nil
}

func number(name string, otherwise uint64) (uint64, error) {
	v := os.Getenv(name)
	if v == "" {
		return otherwise, nil
	}
	n, err := strconv.ParseUint(v, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}

// writeCorpus takes the cases out of a run of n comparisons.
func writeCorpus(out io.Writer, dir string, n, seed uint64) error {
	lines, err := compare.Collect(n, seed)
	if err != nil {
		return err
	}
	name := filepath.Join(dir, "cases.jsonl")
	f, err := os.Create(name)
	if err != nil {
		return err
	}
	for _, l := range lines {
		if _, err := fmt.Fprintf(f, "%s\n", l); err != nil {
			return err
		}
	}
	if err := f.Close(); err != nil {
		return err
	}
	fmt.Fprintf(out, "%d cases written to %s\n", len(lines), name)
	return nil
}

// progress shows how far a run is, on a terminal in one line that stays, else now and then.
type progress struct {
	total    uint64
	start    time.Time
	terminal bool

	mu   sync.Mutex
	last time.Time
}

func (p *progress) show(done uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	every := 10 * time.Second
	if p.terminal {
		every = 200 * time.Millisecond
	}
	now := time.Now()
	if now.Sub(p.last) < every {
		return
	}
	p.last = now
	took := now.Sub(p.start)
	left := time.Duration(float64(took) / float64(done) * float64(p.total-min(done, p.total)))
	text := fmt.Sprintf("%d of %d comparisons (%d%%), %.0f a second, %s left", done, p.total, done*100/p.total,
		float64(done)/took.Seconds(), left.Round(time.Second))
	if p.terminal {
		fmt.Fprintf(os.Stderr, "\r\x1b[K%s", text)
	} else {
		fmt.Fprintln(os.Stderr, text)
	}
}

func (p *progress) end() {
	if p.terminal {
		fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
