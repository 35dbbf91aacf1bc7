// Package recorded gives tests the audit events that clusters recorded, a line each.
package recorded

import (
	"bufio"
	"bytes"
	_ "embed"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/retrial-io/retrial/internal/sample"
)

//go:embed events.jsonl
var slice []byte

// Slice returns a recorded slice: every stage, verb and kind of answer that decoder and redactor
// treat apart, hostile names included.
func Slice(tb testing.TB) [][]byte {
	tb.Helper()
	return lines(tb, bytes.NewReader(slice))
}

// Sample returns the whole bundled recording.
func Sample(tb testing.TB) [][]byte {
	tb.Helper()
	r, err := sample.OpenAuditLog()
	if err != nil {
		tb.Fatal(err)
	}
	defer r.Close()
	return lines(tb, r)
}

// Corpus returns a further recorded log. It skips the test unless RETRIAL_CORPUS names the folder
// that the log is unpacked in.
func Corpus(tb testing.TB, file string) [][]byte {
	tb.Helper()
	dir := os.Getenv("RETRIAL_CORPUS")
	if dir == "" {
		tb.Skip("RETRIAL_CORPUS does not name a folder with a further recorded log")
	}
	f, err := os.Open(filepath.Join(dir, file))
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	return lines(tb, f)
}

// listHead begins a list of events.
const listHead = `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[`

// List puts events into an EventList, without kind and apiVersion, as the webhook backend posts
// them.
func List(events ...[]byte) []byte {
	body := []byte(listHead)
	for i, event := range events {
		if i > 0 {
			body = append(body, ',')
		}
		if rest, found := bytes.CutPrefix(event, []byte(`{"kind":"Event","apiVersion":"audit.k8s.io/v1",`)); found {
			body = append(append(body, '{'), rest...)
		} else {
			body = append(body, event...)
		}
	}
	return append(body, "]}\n"...)
}

func lines(tb testing.TB, r io.Reader) [][]byte {
	tb.Helper()
	var out [][]byte
	scan := bufio.NewScanner(r)
	scan.Buffer(nil, 64<<20)
	for scan.Scan() {
		out = append(out, bytes.Clone(scan.Bytes()))
	}
	if err := scan.Err(); err != nil || len(out) == 0 {
		tb.Fatalf("%d lines, %v", len(out), err)
	}
	return out
}
