package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/rbacindex/oracle/compare"
)

func lastLine(b *bytes.Buffer) string {
	lines := strings.Split(strings.TrimSpace(b.String()), "\n")
	return lines[len(lines)-1]
}

func TestRun(t *testing.T) {
	t.Setenv("ORACLE_N", "3000")
	t.Setenv("ORACLE_SEED", "42")
	dir := t.TempDir()
	var out bytes.Buffer
	if err := run(&out, compare.Ours{}, "", dir); err != nil {
		t.Fatalf("%v\n%s", err, out.String())
	}
	if got, want := lastLine(&out), "oracle comparisons=3000 disagreements=0 seed=42"; got != want {
		t.Errorf("last line %q, want %q", got, want)
	}
	if found, _ := filepath.Glob(filepath.Join(dir, "*")); len(found) > 0 {
		t.Errorf("written: %q", found)
	}
}

// TestRunTellsOfDisagreement: it is printed, kept and an error.
func TestRunTellsOfDisagreement(t *testing.T) {
	t.Setenv("ORACLE_N", "3000")
	t.Setenv("ORACLE_SEED", "42")
	dir := t.TempDir()
	ours := compare.Index()
	ours.Authorize = func(*rbacindex.Snapshot, *rbacindex.Attributes, []rbacindex.Grant) rbacindex.Result {
		return rbacindex.Result{}
	}
	var out bytes.Buffer
	if err := run(&out, ours, "", dir); !errors.Is(err, errDisagree) {
		t.Fatalf("error %v", err)
	}
	if got := lastLine(&out); !strings.HasPrefix(got, "oracle comparisons=") || !strings.HasSuffix(got, " disagreements=1 seed=42") {
		t.Errorf("last line %q", got)
	}
	kept, err := os.ReadFile(filepath.Join(dir, "found-42.jsonl"))
	if err != nil || !bytes.Contains(out.Bytes(), bytes.TrimSpace(kept)) {
		t.Errorf("kept %s, %v", kept, err)
	}
}

func TestRunRefuses(t *testing.T) {
	t.Setenv("ORACLE_N", "many")
	if err := run(&bytes.Buffer{}, compare.Ours{}, "", t.TempDir()); err == nil || !strings.Contains(err.Error(), "ORACLE_N") {
		t.Errorf("error %v", err)
	}
}

func TestCorpus(t *testing.T) {
	t.Setenv("ORACLE_N", "2000")
	dir := t.TempDir()
	var out bytes.Buffer
	if err := run(&out, compare.Ours{}, dir, ""); err != nil {
		t.Fatal(err)
	}
	lines, err := os.ReadFile(filepath.Join(dir, "cases.jsonl"))
	if n := bytes.Count(lines, []byte("\n")); err != nil || n < 50 {
		t.Errorf("%d cases, %v", n, err)
	}
}
