package importer

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/webhook"
	"github.com/retrial-io/retrial/test/testfile"
)

// keeper counts records by topic, key and content.
type keeper struct {
	mu   sync.Mutex
	seen map[string]int
}

func (k *keeper) Produce(_ context.Context, recs ...stream.Record) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, r := range recs {
		k.seen[fmt.Sprintf("%s %x %s", r.Topic, r.Key, r.Value)]++
	}
	return nil
}

func handler(t testing.TB, k *keeper, cfg webhook.Config) *webhook.Handler {
	t.Helper()
	h, err := webhook.New(cfg, k, redact.New([]byte("0123456789abcdef")), anyone{}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// direct is a client that calls a handler without a network.
type direct struct{ h http.Handler }

func (d direct) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	d.h.ServeHTTP(w, r)
	return w.Result(), nil
}

// TestPostedAndImportedAreTheSame takes the same events as an apiserver posts them, as a
// file of such posts, and as the log backend writes them (an event a line, with kind and
// apiVersion): the records are equal to the byte, so later rooms can tell a repetition.
func TestPostedAndImportedAreTheSame(t *testing.T) {
	bodies := recordedPosts(t)
	posted := &keeper{seen: map[string]int{}}
	h := handler(t, posted, webhook.Config{Anonymous: true})
	var lists, lines bytes.Buffer
	for _, body := range bodies {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/v1/clusters/prod/audit", bytes.NewReader(body)))
		if w.Code != http.StatusOK {
			t.Fatal(w.Code, w.Body)
		}
		lists.Write(body)
		lists.WriteByte('\n')
		var list struct {
			Items []json.RawMessage `json:"items"`
		}
		if err := json.Unmarshal(body, &list); err != nil {
			t.Fatal(err)
		}
		for _, item := range list.Items {
			lines.WriteString(`{"kind":"Event","apiVersion":"audit.k8s.io/v1",` + string(item[1:]) + "\n")
		}
	}
	for name, content := range map[string][]byte{"posts": lists.Bytes(), "lines": lines.Bytes()} {
		imported := &keeper{seen: map[string]int{}}
		sum, err := Import(t.Context(), Config{
			Target: Target{Client: &http.Client{Transport: direct{handler(t, imported, webhook.Config{Trusted: true})}},
				BaseURL: "http://retrial", Cluster: "prod", BatchEvents: 137},
			Files: []File{memory(name, content)},
		})
		if err != nil {
			t.Fatal(err)
		}
		if sum.Malformed != 0 || len(imported.seen) != len(posted.seen) {
			t.Errorf("%s: %d distinct records, posted %d; %+v", name, len(imported.seen), len(posted.seen), sum)
		}
		for record, n := range posted.seen {
			if imported.seen[record] != n {
				t.Fatalf("%s: produced %d times, posted %d: %.300s", name, imported.seen[record], n, record)
			}
		}
	}
}

// recordedPosts returns one recorded post, or all there are in the directory that
// RETRIAL_CORPUS names.
func recordedPosts(t *testing.T) [][]byte {
	t.Helper()
	if dir := os.Getenv("RETRIAL_CORPUS"); dir != "" {
		text, err := os.ReadFile(filepath.Join(dir, "webhook-posts.jsonl"))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Split(bytes.TrimSpace(text), []byte("\n"))
	}
	return [][]byte{testfile.Read(t, "../webhook/testdata/post-400.json")}
}

// anyone knows every cluster and takes no credential.
type anyone struct{ webhook.Clusters }

func (anyone) Known(string) bool { return true }

// BenchmarkImport imports 10,000 lines through a handler whose producer does nothing: the
// importer's own reading and decoding, twice, and the receiver's work.
func BenchmarkImport(b *testing.B) {
	const events = 10_000
	var text strings.Builder
	for i := range events {
		text.WriteString(line(fmt.Sprint("e", i), i%50 == 0) + "\n")
	}
	content := []byte(text.String())
	client := &http.Client{Transport: direct{handler(b, &keeper{seen: map[string]int{}}, webhook.Config{Trusted: true})}}
	b.SetBytes(int64(len(content)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Import(b.Context(), Config{Target: Target{Client: client, BaseURL: "http://retrial", Cluster: "prod"},
			Files: []File{memory("log", content)}}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(events*float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
