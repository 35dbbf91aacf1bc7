package main

import (
	"bufio"
	"bytes"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/internal/sample"
)

// The recorded log: one event a line, in the order the apiserver wrote them.
var recordedLog = sync.OnceValues(func() ([][]byte, error) {
	r, err := sample.OpenAuditLog()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	all, err := io.ReadAll(r)
	return bytes.Split(bytes.TrimSpace(all), []byte("\n")), err
})

// recorded returns the whole recorded log; its lines must not be written to.
func recorded(t *testing.T) [][]byte {
	t.Helper()
	log, err := recordedLog()
	if err != nil {
		t.Fatal(err)
	}
	return slices.Clone(log)
}

// portion returns the log the always-run tests use: the beginning, which holds the
// bootstrap, most kinds of requests and thousands of policy writes; or all of it.
func portion(t *testing.T) [][]byte {
	t.Helper()
	log := recorded(t)
	if long() {
		return log
	}
	return log[:12_000]
}

// unborn returns a log without the making of the namespace kube-system: one that shows it
// needs no state, for there was nothing before.
func unborn(log [][]byte) [][]byte {
	return slices.DeleteFunc(slices.Clone(log), func(line []byte) bool {
		return bytes.Contains(line, []byte(`"requestURI":"/api/v1/namespaces","verb":"create"`)) &&
			bytes.Contains(line, []byte(`"name":"kube-system"`))
	})
}

// writeLog writes events as the apiserver's log backend does.
func writeLog(t *testing.T, path string, log [][]byte) string {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	w := bufio.NewWriter(f)
	for _, line := range log {
		_, _ = w.Write(line)
		_ = w.WriteByte('\n')
	}
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// writeState writes the state the recorded log began with.
func writeState(t *testing.T, dir string) string {
	t.Helper()
	path := filepath.Join(dir, sample.StateName)
	if err := os.WriteFile(path, sample.StateZstd(), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// eventList builds the body the webhook backend posts: items leave kind and apiVersion out.
func eventList(log [][]byte) []byte {
	body := []byte(`{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[`)
	for i, line := range log {
		if i > 0 {
			body = append(body, ',')
		}
		item := bytes.TrimPrefix(line, []byte(`{"kind":"Event","apiVersion":"audit.k8s.io/v1",`))
		if len(item) < len(line) {
			body = append(body, '{')
		}
		body = append(body, item...)
	}
	return append(body, "]}"...)
}

// batches cuts a log into bodies of up to 400 events, as apiservers do, of seeded sizes.
// Every third body repeats the last events of the one before it, and bodies come up to
// four places out of order.
func batches(log [][]byte, seed uint64) [][]byte {
	rnd := rand.New(rand.NewPCG(seed, 1))
	var bodies [][]byte
	for at := 0; at < len(log); {
		n := min(1+rnd.IntN(400), len(log)-at)
		begin := at
		if len(bodies)%3 == 2 {
			begin = max(0, at-rnd.IntN(min(50, 401-n)))
		}
		bodies = append(bodies, eventList(log[begin:at+n]))
		at += n
	}
	for i := range bodies {
		j := min(i+rnd.IntN(5), len(bodies)-1)
		bodies[i], bodies[j] = bodies[j], bodies[i]
	}
	return bodies
}

// recordedPosts returns the bodies as an apiserver posted them, or nil when they are not
// at hand: they are an extra.
func recordedPosts(t *testing.T) [][]byte {
	t.Helper()
	dir := os.Getenv("RETRIAL_CORPUS")
	if dir == "" {
		return nil
	}
	raw, err := os.ReadFile(filepath.Join(dir, "webhook-posts.jsonl"))
	if err != nil {
		z, zerr := os.ReadFile(filepath.Join(dir, "webhook-posts.jsonl.zst"))
		if zerr != nil {
			t.Fatalf("RETRIAL_CORPUS is set: %v; %v", err, zerr)
		}
		d, err := zstd.NewReader(nil)
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		if raw, err = d.DecodeAll(z, nil); err != nil {
			t.Fatal(err)
		}
	}
	return bytes.Split(bytes.TrimSpace(raw), []byte("\n"))
}

// postAll posts bodies as a cluster does, a few at a time: batches overlap.
func postAll(t *testing.T, to sender, bodies [][]byte) {
	t.Helper()
	next := make(chan []byte)
	var group sync.WaitGroup
	for range 3 {
		group.Go(func() {
			for body := range next {
				if t.Failed() {
					continue
				}
				if a, err := to.post(t.Context(), bytes.NewReader(body)); err != nil || a.code != 200 {
					t.Errorf("post of %d bytes: %d %s %v", len(body), a.code, a.text, err)
				}
			}
		})
	}
	for _, body := range bodies {
		next <- body
	}
	close(next)
	group.Wait()
	if t.Failed() {
		t.FailNow()
	}
}

// fingerprints returns what retrial-inspect's list of events must say of a log: the key
// and the content of every distinct event, redacted with the installation's key.
func fingerprints(t *testing.T, in install, cluster string, log [][]byte) map[string]string {
	t.Helper()
	redactor := redact.New(in.key(t))
	out := make(map[string]string, len(log))
	for _, line := range log {
		e, err := event.Decode(bytes.Clone(line))
		if err != nil {
			t.Fatal(err)
		}
		redactor.Redact(e)
		out[event.EventKey(event.RequestKey(cluster, e), e).String()] = event.Content(event.AppendJSON(nil, e)).String()
	}
	return out
}

// sameEvents wants the listed events to be exactly those of the log, each once, each with
// the file's content.
func sameEvents(t *testing.T, in install, cluster string, log [][]byte, listed []string) {
	t.Helper()
	want := fingerprints(t, in, cluster, log)
	seen := map[string]bool{}
	bad := 0
	for _, line := range listed {
		key, content, _ := strings.Cut(line, " ")
		switch {
		case seen[key]:
			t.Errorf("event %s is there twice", key)
		case want[key] == "":
			t.Errorf("event %s is not from the file", key)
		case want[key] != content:
			t.Errorf("event %s is not the file's: content %s, want %s", key, content, want[key])
		default:
			seen[key] = true
			continue
		}
		if bad++; bad > 5 {
			t.FailNow()
		}
	}
	if len(seen) != len(want) {
		t.Errorf("%d of the file's %d events are stored", len(seen), len(want))
	}
}
