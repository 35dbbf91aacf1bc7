package webhook

import (
	"encoding/base64"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/embedded"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
)

// TestAgainstTheEmbeddedBroker puts the real producer and broker behind the handler.
func TestAgainstTheEmbeddedBroker(t *testing.T) {
	start := func(t *testing.T, maxBytes int64, cfg Config) *bench {
		t.Helper()
		broker, err := embedded.Start(embedded.Config{
			Dir: t.TempDir(), MaxBytes: maxBytes, Consumers: stream.Consumers(""), Reserve: []string{stream.TopicDeadLetter},
			Verify: stream.VerifyCommit, TrimInterval: time.Hour,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := broker.Close(); err != nil {
				t.Error(err)
			}
		})
		client, err := stream.NewClient(stream.Config{Brokers: []string{broker.Addr()}, Dial: broker.Dial})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		if err := client.EnsureTopics(t.Context()); err != nil {
			t.Fatal(err)
		}
		b := trusted(t, cfg)
		b.h.producer = client.Producer()
		return b
	}
	t.Run("taken", func(t *testing.T) {
		b := start(t, embedded.DefaultMaxBytes, Config{})
		for name, body := range map[string]string{
			"recorded":  string(recordedPost(t)),
			"malformed": list(read("a"), "17"),
			"large":     list(write("b", `{"kind":"Role","x":"`+strings.Repeat("x", 20<<20)+`"}`), read("c")),
		} {
			if w := b.post(auditPath, body); w.Code != http.StatusOK {
				t.Errorf("%s: answer %d %s: %s", name, w.Code, w.Body, b.logged())
			}
		}
		if n := b.metric(t, "events_stripped_total"); n != 1 {
			t.Errorf("%v events stripped", n)
		}
		b.balanced(t)
	})
	t.Run("limit above the stream's", func(t *testing.T) {
		b := start(t, embedded.DefaultMaxBytes, Config{MaxEvent: 20 << 20})
		w := b.post(auditPath, list(write("b", `{"kind":"Role","x":"`+strings.Repeat("x", 10<<20)+`"}`), read("c")))
		if w.Code != http.StatusOK || w.Header().Get(HeaderEvents) != "2" {
			t.Errorf("answer %d %s: %s", w.Code, w.Body, b.logged())
		}
		// So does one that the stream refuses for its key and headers alone.
		pad := stream.DefaultMaxRecordBytes - len(event.AppendJSON(nil, mustDecode(t, write("d", `{"x":""}`)))) - 10
		w = b.post(auditPath, list(write("d", `{"x":"`+strings.Repeat("x", pad)+`"}`)))
		if w.Code != http.StatusOK || w.Header().Get(HeaderEvents) != "1" {
			t.Errorf("answer %d %s: %s", w.Code, w.Body, b.logged())
		}
		b.balanced(t)
	})
	t.Run("full", func(t *testing.T) {
		b := start(t, embedded.MinMaxBytes, Config{})
		noise := make([]byte, 3<<20) // that compression cannot make smaller
		rand.NewChaCha8([32]byte{1}).Read(noise)
		body := list(write("n", `{"kind":"Role","x":"`+base64.StdEncoding.EncodeToString(noise)+`"}`))
		code := http.StatusOK
		for i := 0; i < 100 && code == http.StatusOK; i++ {
			w := b.post(auditPath, body)
			if code = w.Code; code != http.StatusOK && (code != http.StatusTooManyRequests || w.Header().Get("Retry-After") != "5") {
				t.Errorf("answer %d %s", w.Code, w.Body)
			}
		}
		if code != http.StatusTooManyRequests {
			t.Errorf("never pushed back: answer %d", code)
		}
		b.balanced(t)
	})
}

func mustDecode(t *testing.T, text string) *event.Event {
	t.Helper()
	e, err := event.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return e
}
