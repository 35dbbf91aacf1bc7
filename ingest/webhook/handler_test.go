package webhook

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/stream/streamtest"
)

const auditPath = "/v1/clusters/prod/audit"

func TestRequestsThatAreRefused(t *testing.T) {
	for _, tc := range []struct {
		name         string
		method, path string
		header       http.Header
		body         string
		code         int
		text         string // part of the answer
		reason       string
		letter       string // reason of the dead letter, empty for none
	}{
		{name: "wrong method", method: "GET", path: auditPath, code: 405, text: "only POST", reason: "method"},
		{name: "put", method: "PUT", path: auditPath, code: 405, text: "only POST", reason: "method"},
		{name: "root", path: "/", code: 404, text: "/v1/clusters/CLUSTER/audit", reason: "path"},
		{name: "no cluster", path: "/v1/clusters/audit", code: 404, text: "no such path", reason: "path"},
		{name: "empty cluster", path: "/v1/clusters//audit", code: 404, text: "DNS label", reason: "name"},
		{name: "empty apiserver", path: "/v1/clusters/prod/apiservers//audit", code: 404, text: "no such path", reason: "path"},
		{name: "trailing slash", path: auditPath + "/", code: 404, text: "no such path", reason: "path"},
		{name: "cluster in capitals", path: "/v1/clusters/Prod/audit", code: 404, text: "DNS label", reason: "name"},
		{name: "cluster with a dot", path: "/v1/clusters/pr.od/audit", code: 404, text: "DNS label", reason: "name"},
		{name: "cluster climbing", path: "/v1/clusters/%2e%2e/audit", code: 404, text: "DNS label", reason: "name"},
		{name: "cluster too long", path: "/v1/clusters/" + strings.Repeat("a", 64) + "/audit", code: 404, text: "DNS label",
			reason: "name"},
		{name: "bad apiserver", path: "/v1/clusters/prod/apiservers/a%0ab/audit", code: 400, text: "apiserver's name", reason: "name"},
		{name: "gzip", path: auditPath, header: http.Header{"Content-Encoding": {"gzip"}}, body: "\x1f\x8b", code: 415,
			text: "without Content-Encoding", reason: "encoding"},
		{name: "zstd", path: auditPath, header: http.Header{"Content-Encoding": {"zstd"}}, body: "(\xb5/\xfd", code: 415,
			text: "without Content-Encoding", reason: "encoding"},
		{name: "empty body", path: auditPath, code: 400, text: "not an audit.k8s.io/v1 EventList", reason: "not-event-list",
			letter: "not-event-list"},
		{name: "gzip without saying so", path: auditPath, body: "\x1f\x8b\x08\x00\x00", code: 400, text: "EventList",
			reason: "not-event-list", letter: "not-event-list"},
		{name: "truncated", path: auditPath, body: list(read("a"), read("b"))[:500], code: 400, text: "EventList", reason: "not-event-list",
			letter: "not-event-list"},
		{name: "truncated by one byte", path: auditPath, body: strings.TrimSuffix(list(read("a")), "}"), code: 400, text: "EventList",
			reason: "not-event-list", letter: "not-event-list"},
		{name: "another list", path: auditPath, body: `{"kind":"PodList","apiVersion":"v1","items":[]}`, code: 400, text: "EventList",
			reason: "not-event-list", letter: "not-event-list"},
		{name: "one event", path: auditPath, body: read("a"), code: 400, text: "EventList", reason: "not-event-list",
			letter: "not-event-list"},
		{name: "an array", path: auditPath, body: `[]`, code: 400, text: "EventList", reason: "not-event-list", letter: "not-event-list"},
		{name: "items no array", path: auditPath, body: `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","items":{}}`, code: 400,
			text: "EventList", reason: "not-event-list", letter: "not-event-list"},
		{name: "something behind it", path: auditPath, body: list() + "x", code: 400, text: "EventList", reason: "not-event-list",
			letter: "not-event-list"},
		{name: "over the limit", path: auditPath, body: strings.Repeat(" ", 2<<20), code: 413, text: "over 1048576 bytes",
			reason: "too-large", letter: "too-large"},
		{name: "too many items", path: auditPath, body: list(strings.Split(strings.Repeat("1 ", 90_000), " ")[:90_000]...), code: 413,
			text: "more than 20000 items", reason: "too-large", letter: "too-large"},
		{name: "state without a taker", path: "/v1/clusters/prod/state", code: 404, text: "no such path", reason: "path"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := trusted(t, Config{MaxBody: 1 << 20})
			method := tc.method
			if method == "" {
				method = http.MethodPost
			}
			r := httptest.NewRequest(method, tc.path, strings.NewReader(tc.body))
			for k, v := range tc.header {
				r.Header[k] = v
			}
			w := b.do(r)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.text) {
				t.Errorf("answer %d %q, want %d with %q", w.Code, w.Body, tc.code, tc.text)
			}
			if n := b.metric(t, "refused_requests_total", "reason", tc.reason); n != 1 {
				t.Errorf("refusals for %s: %v, want 1", tc.reason, n)
			}
			letters := b.producer.letters(t)
			if tc.letter == "" {
				if len(b.producer.calls) != 0 {
					t.Errorf("%d calls produced something", len(b.producer.calls))
				}
				return
			}
			if len(letters) != 1 {
				t.Fatalf("%d dead letters, want 1", len(letters))
			}
			d := letters[0]
			if d.Reason != tc.letter || d.Cluster != "prod" || d.Source != "import" || d.Detail == "" ||
				!strings.HasPrefix(d.Digest, "sha256:") ||
				d.Size != int64(len(tc.body)) {
				t.Errorf("dead letter %+v", d)
			}
			if len(d.Prefix) > prefixKept {
				t.Errorf("prefix of %d bytes", len(d.Prefix))
			}
			if n := b.metric(t, "dead_letters_total", "reason", tc.letter); n != 1 {
				t.Errorf("dead letters counted: %v", n)
			}
			b.balanced(t)
		})
	}
}

func TestBodyOverTheLimitIsNotReadToItsEnd(t *testing.T) {
	const size = 200 << 20
	for _, tc := range []struct {
		name     string
		declared int64
		limit    int64
		read     int64 // at the most
		size     int64 // of the dead letter
	}{
		{"declared", size, 0, prefixRead, size},
		{"streamed", -1, 4 << 20, 8<<20 + 1, 4<<20 + 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := trusted(t, Config{MaxBody: tc.limit})
			body := &spaces{left: size}
			r := httptest.NewRequest(http.MethodPost, auditPath, io.NopCloser(body))
			r.ContentLength = tc.declared
			w := b.do(r)
			if w.Code != http.StatusRequestEntityTooLarge || w.Header().Get("Connection") != "close" {
				t.Errorf("answer %d, Connection %q", w.Code, w.Header().Get("Connection"))
			}
			if got := size - body.left; got > tc.read {
				t.Errorf("%d bytes read, want at most %d", got, tc.read)
			}
			letters := b.producer.letters(t)
			if len(letters) != 1 || letters[0].Reason != "too-large" || letters[0].Size != tc.size {
				t.Errorf("dead letters %+v", letters)
			}
			b.balanced(t)
		})
	}
}

func TestRecordsOfAList(t *testing.T) {
	b := trusted(t, Config{Now: func() time.Time { return time.Unix(1000, 0) }})
	body := list(read("a"), write("b", `{"kind":"Role"}`), read("c"))
	w := b.post("/v1/clusters/prod/apiservers/cp-1.example/audit?timeout=30s", body)
	if w.Code != 200 || w.Header().Get(HeaderEvents) != "3" || w.Header().Get(HeaderPolicy) != "1" ||
		w.Header().Get(HeaderDeadLetters) != "0" {
		t.Fatalf("answer %d %v %s", w.Code, w.Header(), w.Body)
	}
	if len(b.producer.calls) != 2 || len(b.producer.calls[0]) != 1 || b.producer.calls[0][0].Topic != stream.TopicPolicy {
		t.Fatalf("want one call for the policy copy, then one for the events: %d calls", len(b.producer.calls))
	}
	// The records are those the stream's own constructors make.
	redactor := redact.New([]byte("0123456789abcdef"))
	var want []stream.Record
	if err := event.DecodeList([]byte(body), func(item event.Item) error {
		redactor.Redact(item.Event)
		if item.Index == 1 {
			want = append([]stream.Record{streamtest.PolicyEventRecord("prod", "import", "cp-1.example", time.Unix(1000, 0).UTC(),
				item.Event)}, want...)
		}
		want = append(want, streamtest.EventRecord("prod", "import", "cp-1.example", time.Unix(1000, 0).UTC(), item.Event))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	got := append(b.producer.topic(stream.TopicPolicy), b.producer.topic(stream.TopicEvents)...)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("records\n%+v\nwant\n%+v", got, want)
	}
	b.balanced(t)
	if n := b.metric(t, "ack_duration_seconds"); n != 1 {
		t.Errorf("%v acknowledgements observed", n)
	}
}

func TestRecordedPostIsTakenWhole(t *testing.T) {
	b := trusted(t, Config{})
	w := b.post(auditPath, string(recordedPost(t)))
	if w.Code != 200 || len(b.producer.topic(stream.TopicEvents)) != 400 || len(b.producer.letters(t)) != 0 {
		t.Errorf("answer %d %s", w.Code, w.Body)
	}
	if n := len(b.producer.topic(stream.TopicPolicy)); n == 0 {
		t.Error("no policy copies in a post that has policy writes")
	}
	b.balanced(t)
}

func TestMalformedItemsBecomeDeadLettersAndTheRestGoesOn(t *testing.T) {
	b := trusted(t, Config{})
	w := b.post(
		auditPath,
		list(
			read("a"),
			`17`,
			`{"level":5}`,
			`null`,
			`"half a li\"ne {"`,
			read("b"),
			`{"kind":"Pod","apiVersion":"v1"}`,
			`{"auditID":"c8e355d8","code":200}`,
		),
	)
	if w.Code != 200 || w.Header().Get(HeaderEvents) != "2" || w.Header().Get(HeaderDeadLetters) != "6" {
		t.Fatalf("answer %d %v %s", w.Code, w.Header(), w.Body)
	}
	letters := b.producer.letters(t)
	if len(letters) != 6 {
		t.Fatalf("%d dead letters", len(letters))
	}
	for i, item := range []int{1, 2, 3, 4, 6, 7} {
		if d := letters[i]; d.Reason != "malformed-item" || !strings.HasPrefix(d.Detail, fmt.Sprintf("item %d: ", item)) {
			t.Errorf("dead letter %d: %+v", i, d)
		}
	}
	if d := letters[3]; d.Digest != digest([]byte(`half a li"ne {`)) || d.Size != 14 {
		t.Errorf("a wrapped line is kept as %+v, not as what was wrapped", d)
	}
	if d := letters[5]; !strings.Contains(d.Detail, "not an audit event: it has no stage") {
		t.Errorf("an item that is not an audit event has the detail %q", d.Detail)
	}
	b.balanced(t)
}

func TestManyMalformedItemsShareALetter(t *testing.T) {
	b := trusted(t, Config{})
	items := make([]string, 10_000)
	for i := range items {
		items[i] = `"` + strings.Repeat("x", 98) + `"`
	}
	w := b.post(auditPath, list(items...))
	letters := b.producer.letters(t)
	if w.Code != 200 || len(letters) != itemLetters+1 {
		t.Fatalf("answer %d, %d dead letters", w.Code, len(letters))
	}
	if last := letters[itemLetters]; !strings.Contains(last.Detail, fmt.Sprintf("%d more items", len(items)-itemLetters)) ||
		last.Size != 100*int64(len(items)-itemLetters) {
		t.Errorf("last letter %+v", last)
	}
	if n := b.metric(t, "items_malformed_total"); n != 10_000 {
		t.Errorf("%v items counted", n)
	}
	b.balanced(t)
}

func TestEventsOverTheLimit(t *testing.T) {
	big := `{"kind":"Role","metadata":{"name":"` + strings.Repeat("x", 4000) + `"}}`
	user := strings.Replace(read("c"), "jane", strings.Repeat("y", 4000), 1)
	limits := map[string]func(b *bench){
		"configured": func(*bench) {},
		"of the stream": func(b *bench) { // the same through the stream's own refusal
			b.h.cfg.MaxEvent = 1 << 20
			b.producer.before = func(_ context.Context, recs []stream.Record) error {
				for i, r := range recs {
					if len(r.Value) > 2000 && r.Topic != stream.TopicDeadLetter {
						return fmt.Errorf(
							"produce: %w",
							&stream.TooLargeError{Index: i, Topic: r.Topic, Size: len(r.Value), Limit: 2000 + recordOverhead},
						)
					}
				}
				return nil
			}
		},
	}
	for name, limit := range limits {
		t.Run(name, func(t *testing.T) {
			b := trusted(t, Config{MaxEvent: 2000})
			limit(b)
			w := b.post(auditPath, list(read("a"), write("b", big), user))
			if w.Code != 200 || w.Header().Get(HeaderEvents) != "2" || w.Header().Get(HeaderDeadLetters) != "1" ||
				w.Header().Get(HeaderPolicy) != "1" {
				t.Fatalf("answer %d %v %s", w.Code, w.Header(), w.Body)
			}
			events := b.producer.topic(stream.TopicEvents)
			stripped, err := event.Decode(events[len(events)-1].Value)
			if err != nil {
				t.Fatal(err)
			}
			if stripped.ResponseObject != nil || stripped.AuditID != "b" {
				t.Errorf("event %s kept its body", stripped.AuditID)
			}
			text := string(events[len(events)-1].Value)
			if !strings.Contains(text, event.AnnotationStrippedBytes) || !strings.Contains(text, event.AnnotationStrippedDigest) {
				t.Errorf("no annotations in %s", text)
			}
			letters := b.producer.letters(t)
			if len(letters) != 1 || letters[0].Reason != "too-large" || letters[0].Size < 4000 {
				t.Errorf("dead letters %+v", letters)
			}
			if n := b.metric(t, "events_stripped_total"); n != 1 {
				t.Errorf("%v events counted as stripped", n)
			}
			b.balanced(t)
		})
	}
}

func TestNothingIsAnsweredBeforeItIsAcknowledged(t *testing.T) {
	b := trusted(t, Config{})
	entered, leave := make(chan string), make(chan struct{})
	b.producer.before = func(_ context.Context, recs []stream.Record) error {
		entered <- recs[0].Topic
		<-leave
		return nil
	}
	answered := make(chan *httptest.ResponseRecorder, 1)
	go func() { answered <- b.post(auditPath, list(write("a", "{}"), "1")) }()
	for _, want := range []string{stream.TopicPolicy, stream.TopicEvents, stream.TopicDeadLetter} {
		if topic := <-entered; topic != want {
			t.Fatalf("producing to %s, want %s", topic, want)
		}
		select {
		case w := <-answered:
			t.Fatalf("answered %d while %s was not acknowledged", w.Code, want)
		default:
		}
		leave <- struct{}{}
	}
	if w := <-answered; w.Code != 200 {
		t.Errorf("answer %d", w.Code)
	}
}

func TestProducerErrors(t *testing.T) {
	for _, tc := range []struct {
		name   string
		err    error
		code   int
		reason string
	}{
		{"transient", stream.ErrTransient, 503, "not-acknowledged"},
		{"full", fmt.Errorf("produce: %w", stream.ErrFull), 429, "full"},
		{"no access", stream.ErrAuth, 503, "not-acknowledged"},
		{"unknown", errors.New("broker 10.1.2.3: disk error"), 503, "not-acknowledged"},
		{"a letter too large for the stream", &stream.TooLargeError{Limit: 100}, 503, "not-acknowledged"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			for what, body := range map[string]string{"list": list(read("a"), write("b", "{}"), "1"), "dead letter": "{"} {
				now := time.Now()
				b := trusted(t, Config{Now: func() time.Time { return now }})
				fail := true
				b.producer.before = func(context.Context, []stream.Record) error {
					if fail {
						return tc.err
					}
					return nil
				}
				w := b.post(auditPath, body)
				if w.Code != tc.code || w.Header().Get("Retry-After") != "5" {
					t.Errorf("%s: answer %d, Retry-After %q", what, w.Code, w.Header().Get("Retry-After"))
				}
				if strings.Contains(w.Body.String(), "10.1.2.3") {
					t.Errorf("%s: the answer tells of brokers: %s", what, w.Body)
				}
				if n := b.metric(t, "refused_requests_total", "reason", tc.reason); n != 1 {
					t.Errorf("%s: %v refusals counted", what, n)
				}
				b.balanced(t)

				fail = false
				if tc.reason == "full" { // for a moment nobody is asked again
					calls := len(b.producer.calls)
					if w := b.post(auditPath, body); w.Code != 429 || w.Header().Get("Retry-After") != "5" ||
						len(b.producer.calls) != calls {
						t.Errorf("%s: answer %d right after", what, w.Code)
					}
				}
				now = now.Add(fullFor)
				want := 200
				if what == "dead letter" {
					want = 400
				}
				if w := b.post(auditPath, body); w.Code != want {
					t.Errorf("%s: answer %d when the stream is back", what, w.Code)
				}
				b.balanced(t)
			}
		})
	}
}

func TestFailureHalfWayRepeatsIdentically(t *testing.T) {
	// The policy copies get through, the events do not; the repeated list produces the same
	// bytes, so that later rooms can tell it is the same.
	b := trusted(t, Config{Now: func() time.Time { return time.Unix(1000, 0) }})
	calls := 0
	b.producer.before = func(context.Context, []stream.Record) error {
		if calls++; calls == 2 {
			return stream.ErrTransient
		}
		return nil
	}
	body := list(write("a", `{"kind":"Role"}`), "1")
	if w := b.post(auditPath, body); w.Code != 503 {
		t.Fatalf("answer %d", w.Code)
	}
	if w := b.post(auditPath, body); w.Code != 200 {
		t.Fatalf("answer %d", w.Code)
	}
	copies := b.producer.topic(stream.TopicPolicy)
	if len(copies) != 2 || !reflect.DeepEqual(copies[0], copies[1]) {
		t.Errorf("policy copies differ: %+v", copies)
	}
	if len(b.producer.topic(stream.TopicEvents)) != 1 || len(b.producer.letters(t)) != 1 {
		t.Error("want one event and one dead letter")
	}
	b.balanced(t)
}

func TestLargeListGoesInChunks(t *testing.T) {
	b := trusted(t, Config{})
	body := `{"kind":"ConfigMap","x":"` + strings.Repeat("x", 3<<20) + `"}`
	items := make([]string, 7)
	for i := range items {
		items[i] = strings.Replace(write(fmt.Sprint(i), body), "/roles", "/other", 1)
	}
	if w := b.post(auditPath, list(items...)); w.Code != 200 {
		t.Fatalf("answer %d %s", w.Code, w.Body)
	}
	if len(b.producer.calls) != 3 {
		t.Errorf("%d calls, want 3", len(b.producer.calls))
	}
	for i, r := range b.producer.topic(stream.TopicEvents) {
		e, err := event.Decode(r.Value)
		if err != nil || e.AuditID != fmt.Sprint(i) || r.Content != event.Content(r.Value) {
			t.Errorf("record %d is not event %d (%v)", i, i, err)
		}
	}
}

func TestPolicyQuery(t *testing.T) {
	body := list(read("a"), write("b", "{}"), "1")
	b := trusted(t, Config{})
	w := b.post(auditPath+"?policy=only", body)
	if w.Code != 200 || len(b.producer.topic(stream.TopicPolicy)) != 1 || len(b.producer.topic(stream.TopicEvents)) != 0 ||
		len(b.producer.letters(t)) != 0 {
		t.Errorf("answer %d %s, %d calls", w.Code, w.Body, len(b.producer.calls))
	}
	b.balanced(t)
	w = b.post(auditPath+"?policy=done", body)
	if w.Code != 200 || len(b.producer.topic(stream.TopicPolicy)) != 1 || len(b.producer.topic(stream.TopicEvents)) != 2 ||
		len(b.producer.letters(t)) != 1 {
		t.Errorf("answer %d %s, %d calls", w.Code, w.Body, len(b.producer.calls))
	}
	b.balanced(t)

	// An apiserver's path is not an import's: the query means nothing there.
	b = newBench(t, Config{Anonymous: true}, known{"prod"})
	for i, query := range []string{"?policy=only", "?policy=done", "?timeout=30s"} {
		if w := b.post(auditPath+query, body); w.Code != 200 || len(b.producer.topic(stream.TopicEvents)) != 2*(i+1) ||
			len(b.producer.topic(stream.TopicPolicy)) != i+1 {
			t.Errorf("%s: answer %d, %d calls", query, w.Code, len(b.producer.calls))
		}
	}
}

func TestState(t *testing.T) {
	taken := ""
	cfg := Config{MaxState: 100, State: func(_ context.Context, cluster string, since time.Time, r io.Reader) (any, error) {
		body, err := io.ReadAll(r)
		if err != nil {
			return nil, fmt.Errorf("read: %w", err)
		}
		if !since.IsZero() {
			cluster += " since " + since.Format(time.TimeOnly)
		}
		switch taken = cluster + " " + string(body); string(body) {
		case "bad":
			return nil, fmt.Errorf("byte 0: %w", ErrBadState)
		case "down":
			return nil, stream.ErrTransient
		}
		return map[string]int{"objects": 3}, nil
	}}
	const path = "/v1/clusters/prod/state"
	for _, tc := range []struct {
		name, body, text string
		code             int
	}{
		{"taken", "objects", `{"objects":3}`, 200},
		{"bad", "bad", "byte 0", 400},
		{"stream away", "down", "state of cluster prod", 503},
		{"too large", strings.Repeat("x", 101), "over 100 bytes", 413},
	} {
		t.Run(tc.name, func(t *testing.T) {
			b := trusted(t, cfg)
			w := b.post(path, tc.body)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.text) {
				t.Errorf("answer %d %s", w.Code, w.Body)
			}
			if tc.code == 200 && taken != "prod objects" {
				t.Errorf("taken %q", taken)
			}
		})
	}
	b := trusted(t, cfg)
	if w := b.post(path+"?since=2026-11-20T11:36:00.5Z", "objects"); w.Code != 200 || taken != "prod since 11:36:00 objects" {
		t.Errorf("with since: answer %d, taken %q", w.Code, taken)
	}
	if w := b.post(path+"?since=noon", "objects"); w.Code != 400 || !strings.Contains(w.Body.String(), "RFC 3339") {
		t.Errorf("with a bad since: answer %d %s", w.Code, w.Body)
	}
	b = newBench(t, Config{Anonymous: true, State: cfg.State}, known{"prod"})
	if w := b.post(path, "objects"); w.Code != 404 {
		t.Errorf("state over an open listener: answer %d", w.Code)
	}
}

func TestProbes(t *testing.T) {
	err := errors.New("no broker")
	b := newBench(t, Config{Ready: func(context.Context) error { return err }}, known{})
	get := func(path string) *httptest.ResponseRecorder {
		return b.do(httptest.NewRequest(http.MethodGet, path, nil))
	}
	if w := get("/healthz"); w.Code != 200 {
		t.Errorf("healthz %d", w.Code)
	}
	if w := get("/readyz"); w.Code != 503 || !strings.Contains(w.Body.String(), "no broker") {
		t.Errorf("readyz %d %s", w.Code, w.Body)
	}
	err = nil
	if w := get("/readyz"); w.Code != 200 {
		t.Errorf("readyz %d", w.Code)
	}
}

func TestNewRefusesWhatCannotWork(t *testing.T) {
	redactor := redact.New([]byte("0123456789abcdef"))
	for _, tc := range []struct {
		name string
		cfg  Config
		p    stream.Appender
		r    Redactor
		c    Clusters
		text string
	}{
		{"no producer", Config{}, nil, redactor, known{}, "no producer"},
		{"no redactor", Config{}, &fakeProducer{}, nil, known{}, "no redactor"},
		{"no clusters", Config{}, &fakeProducer{}, redactor, nil, "no clusters"},
		{"trusted and anonymous", Config{Trusted: true, Anonymous: true}, &fakeProducer{}, redactor, known{}, "not both"},
		{"body over in flight", Config{MaxBody: 10, MaxInFlight: 5}, &fakeProducer{}, redactor, known{}, "MaxInFlight"},
		{"negative", Config{MaxBody: -1}, &fakeProducer{}, redactor, known{}, "MaxBody is negative"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if _, err := New(tc.cfg, tc.p, tc.r, tc.c, nil, nil); err == nil || !strings.Contains(err.Error(), tc.text) {
				t.Errorf("error %v, want one with %q", err, tc.text)
			}
		})
	}
}

func TestCountItems(t *testing.T) {
	for _, tc := range []struct {
		name string
		body string
		want func(n int) bool
	}{
		{"a recorded post", string(recordedPost(t)), func(n int) bool { return n <= maxItems }},
		{"commas inside one item", list(`{"a":"` + strings.Repeat(`,\",`, 200_000) + `"}`), func(n int) bool { return n < 5 }},
		{"commas in nested arrays", list(`{"a":[` + strings.Repeat("1,", 200_000) + `1]}`), func(n int) bool { return n < 5 }},
		{"many items", list(strings.Repeat("{},", 100_000) + "{}"), func(n int) bool { return n > maxItems }},
		{"an open string", strings.Repeat(",", 100_000) + `"`, func(int) bool { return true }},
		{"an escape at the end", strings.Repeat(",", 100_000) + `"\`, func(int) bool { return true }},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if n := countItems([]byte(tc.body)); !tc.want(n) {
				t.Errorf("counted %d", n)
			}
		})
	}
}
