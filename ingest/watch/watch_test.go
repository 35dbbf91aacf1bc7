package watch

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"go.uber.org/zap/zapcore"

	"github.com/retrial-io/retrial/ingest/redact"
	"github.com/retrial-io/retrial/ingest/stream"
)

func TestListIsPagedCompleteAndOfOneMoment(t *testing.T) {
	b := newBench(t)
	for i := range 5 {
		b.server.Put("roles", "default", fmt.Sprint("r", i), `"rules":[]`, nil)
	}
	b.start(t)
	all := b.log.await(t, roles, "complete", 1)
	if got, want := brief(all), "listed:r0 listed:r1 listed:r2 listed:r3 listed:r4 complete"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	if !all[0].To.After(all[0].From) {
		t.Errorf("the listing took no time: [%v, %v]; a gap from its begin on would be ended by it", all[0].From, all[0].To)
	}
	for _, s := range all {
		if !s.From.Equal(all[0].From) || !s.To.Equal(all[0].To) {
			t.Errorf("%s %s is of another listing: [%v, %v]", s.Op, s.Name, s.From, s.To)
		}
		if s.Op == "listed" && !strings.HasPrefix(s.JSON, `{"kind":"Role","apiVersion":"rbac.authorization.k8s.io/v1",`) {
			t.Errorf("listed without its kind: %.80s", s.JSON)
		}
	}
	for _, k := range Kinds() {
		b.log.await(t, k.Resource, "complete", 1)
	}
	b.server.AwaitWatch(t, "roles", 1) // what is listed is counted before the watch begins
	pages := 0
	for _, uri := range b.server.Requests() {
		if strings.Contains(uri, "/roles?") && strings.Contains(uri, "limit=2") {
			pages++
		}
	}
	if pages != 3 {
		t.Errorf("five roles in %d pages of two", pages)
	}
	if n := b.metric(t, "objects", "resource", roles); n != 5 {
		t.Errorf("objects: %v", n)
	}
	for _, r := range b.log.records {
		if r.Topic != stream.TopicPolicy || r.Kind != stream.KindObservation || r.Cluster != "prod" || string(r.Key) != "prod" ||
			r.Source != "watch" {
			t.Fatalf("record %s %s of %s, key %s, source %s", r.Topic, r.Kind, r.Cluster, r.Key, r.Source)
		}
	}
}

// TestBounds walks through one watch: what each change's bounds rest on.
func TestBounds(t *testing.T) {
	b := newBench(t)
	b.start(t)
	b.server.AwaitWatch(t, "roles", 1)
	began := b.clock.now()
	second := func(s string) time.Time {
		at, err := time.Parse(time.TimeOnly, s)
		if err != nil {
			t.Fatal(err)
		}
		return time.Date(2026, 1, 2, at.Hour(), at.Minute(), at.Second(), at.Nanosecond(), time.UTC)
	}
	check := func(what string, s said, from, to time.Time) {
		t.Helper()
		if !s.From.Equal(from) || !s.To.Equal(to) {
			t.Errorf("%s: [%s, %s], want [%s, %s]", what, s.From, s.To, from, to)
		}
	}
	within := func(what string, s said, earliest, latest time.Time) {
		t.Helper()
		if s.From.Before(earliest) || s.From.After(latest) || !s.To.Equal(b.clock.now()) {
			t.Errorf("%s: [%s, %s], want a begin in [%s, %s]", what, s.From, s.To, earliest, latest)
		}
	}
	b.clock.advance(3500 * time.Millisecond)
	b.server.Put("roles", "default", "a", `"rules":[]`, nil)
	all := b.log.await(t, roles, "changed", 1)
	check("added: since its creation", all[len(all)-1], second("10:00:03"), second("10:00:03.5"))

	b.server.Send("roles", "MODIFIED", `{"kind":"Role","metadata":{"name":"a","namespace":"default","uid":"u","resourceVersion":"$RV"}}`)
	all = b.log.await(t, roles, "changed", 2)
	check("changed without times: since the creation before it", all[len(all)-1], second("10:00:03"), second("10:00:03.5"))

	b.clock.advance(56500 * time.Millisecond)
	b.server.Put("serviceaccounts", "default", "other", "", nil)
	b.server.Bookmark("roles")
	b.positions.await(t, roles, "104")
	b.clock.advance(30 * time.Second)
	b.server.Delete("roles", "default", "a")
	all = b.log.await(t, roles, "deleted", 1)
	// The last content's managed fields are older than the bookmark. Whether the read after
	// it began before or after the clock was set is chance; both bounds are sound.
	within("deleted: since the bookmark, less the delay, or the read after it", all[len(all)-1], second("10:00:59"), second("10:01:00"))

	b.clock.advance(10 * time.Second)
	b.server.Send(
		"roles",
		"MODIFIED",
		`{"kind":"Role","metadata":{"name":"b","namespace":"default","uid":"v","resourceVersion":"$RV",`+
			`"managedFields":[{"time":"2026-01-02T10:01:38Z"},{"time":"2030-01-01T00:00:00Z"}]}}`,
	)
	all = b.log.await(t, roles, "changed", 3)
	check(
		"changed: since the managed fields' newest time that is not in the future",
		all[len(all)-1],
		second("10:01:38"),
		second("10:01:40"),
	)

	b.server.Send("roles", "DELETED", `{"kind":"Role","metadata":{"name":"b","namespace":"default","uid":"v","resourceVersion":"$RV"}}`)
	all = b.log.await(t, roles, "deleted", 2)
	within("a client's times do not bound other changes", all[len(all)-1], second("10:00:59"), second("10:01:30"))

	b.server.Send(
		"roles",
		"ADDED",
		`{"kind":"Role","metadata":{"name":"c","namespace":"default","uid":"w","resourceVersion":"$RV",`+
			`"creationTimestamp":"2026-01-02T10:02:00Z"}}`,
	)
	all = b.log.await(t, roles, "changed", 4)
	check("the cluster's clock is ahead: the second it says", all[len(all)-1], second("10:02:00"), second("10:02:01"))

	// What is sent is counted next, and the position saved last.
	b.positions.await(t, roles, "108")
	if !all[0].From.Equal(began) {
		t.Errorf("the listing began at %s, said %s", began, all[0].From)
	}
	if got := b.metric(t, "events_total", "resource", roles, "type", "added"); got != 2 {
		t.Errorf("added: %v", got)
	}
	if got := b.metric(t, "last_event_timestamp_seconds", "resource", roles); got != seconds(b.clock.now()) {
		t.Errorf("last event: %v", got)
	}
}

func TestResume(t *testing.T) {
	for name, orderly := range map[string]bool{"ended by the server": true, "broken in the middle of a chunk": false} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.start(t)
			b.server.AwaitWatch(t, "roles", 1)
			b.server.Put("roles", "default", "a", `"rules":[]`, nil)
			b.log.await(t, roles, "changed", 1)
			b.server.Put("serviceaccounts", "default", "other", "", nil)
			b.server.Bookmark("roles") // 103
			b.positions.await(t, roles, "103")
			b.server.End("roles", orderly)
			b.server.AwaitRequests(t, "/roles?allowWatchBookmarks=true&resourceVersion=103", 1)
			b.server.Put("roles", "default", "b", `"rules":[]`, nil)
			all := b.log.await(t, roles, "changed", 2)
			if got, want := brief(all), "complete changed:a changed:b"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if n := b.metric(t, "gaps_total", "resource", roles) + b.metric(t, "relists_total", "resource", roles); n != 1 {
				t.Errorf("gaps and listings: %v, want the first listing alone", n)
			}
			failures := b.metric(t, "errors_total", "resource", roles, "reason", "unavailable")
			if orderly && failures != 0 || !orderly && failures != 1 {
				t.Errorf("failures: %v", failures)
			}
		})
	}
}

func TestGap(t *testing.T) {
	for name, asCode := range map[string]bool{"410 in the stream": false, "410 as status": true} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.server.Put("roles", "default", "gone", `"rules":[]`, nil)
			b.start(t)
			b.server.AwaitWatch(t, "roles", 1)
			b.clock.advance(time.Minute)
			b.server.Put("serviceaccounts", "default", "other", "", nil)
			b.server.Bookmark("roles")
			b.positions.await(t, roles, "103")
			good := b.clock.now().Add(-time.Second)
			b.server.Hold("roles", true)
			b.server.End("roles", false)
			b.clock.advance(time.Minute)
			b.server.Delete("roles", "default", "gone")
			b.server.Put("roles", "default", "new", `"rules":[]`, nil)
			b.server.Compact(asCode)
			b.server.Hold("roles", false)
			all := b.log.await(t, roles, "complete", 2)
			if got, want := brief(all), "listed:gone complete gap listed:new complete"; got != want {
				t.Fatalf("got %q, want %q", got, want)
			}
			if gap := all[2]; !gap.From.Equal(good) || gap.To.After(all[3].From) {
				t.Errorf("gap [%s, %s], want from %s and before the listing at %s", gap.From, gap.To, good, all[3].From)
			}
			if n := b.metric(t, "gaps_total", "resource", roles); n != 1 {
				t.Errorf("gaps: %v", n)
			}
			b.server.AwaitWatch(t, "roles", 1)
			b.server.Put("roles", "default", "later", `"rules":[]`, nil)
			b.log.await(t, roles, "changed", 1)
		})
	}
}

// TestAway: a watch that stays away is not trusted to come back.
func TestAway(t *testing.T) {
	b := newBench(t)
	b.start(t)
	b.server.AwaitWatch(t, "roles", 1)
	b.server.Refuse("roles", 503)
	b.server.End("roles", false)
	b.server.AwaitRequests(t, "/roles?allowWatchBookmarks", 3)
	if got := brief(b.log.said(roles)); got != "complete" {
		t.Fatalf("after a moment: %q", got)
	}
	b.clock.advance(5*time.Minute + time.Second)
	b.log.await(t, roles, "gap", 1)
	b.server.Refuse("roles", 0)
	if got := brief(b.log.await(t, roles, "complete", 2)); got != "complete gap complete" {
		t.Errorf("got %q", got)
	}
}

func TestForbiddenKind(t *testing.T) {
	b := newBench(t)
	b.server.Refuse("rolebindings", 403)
	b.start(t)
	const bindings = "rolebindings.rbac.authorization.k8s.io"
	for _, k := range Kinds() {
		if k.Resource != bindings {
			b.log.await(t, k.Resource, "complete", 1)
		}
	}
	if d := <-b.paused; d < refusedFor/2 {
		t.Errorf("pause of %s after a refusal", d)
	}
	if got := b.log.said(bindings); len(got) != 0 {
		t.Errorf("said %q of a kind that may not be read", brief(got))
	}
	if n := b.metric(t, "errors_total", "resource", bindings, "reason", "forbidden"); n != 1 {
		t.Errorf("forbidden: %v", n)
	}
	if lines := b.logs.FilterMessageSnippet("watch-rbac.yaml").All(); len(lines) != 1 || lines[0].Level.String() != "error" {
		t.Errorf("log: %v", lines)
	}
	b.server.Refuse("rolebindings", 0)
	b.release <- struct{}{}
	b.log.await(t, bindings, "complete", 1)
}

// Optional kinds that may not be read, or are not served, are nobody's fault.
func TestOptionalKinds(t *testing.T) {
	b := newBench(t)
	b.server.Refuse("pods", 403)
	b.server.Refuse("resourceslices", 404)
	b.start(t)
	for _, k := range Kinds() {
		if k.Resource != "pods" && k.Resource != "resourceslices.resource.k8s.io" {
			b.log.await(t, k.Resource, "complete", 1)
		}
	}
	for range 2 {
		if d := <-b.paused; d < refusedFor/2 {
			t.Errorf("pause of %s", d)
		}
	}
	if n := b.metric(t, "errors_total", "resource", "pods", "reason", "not-granted"); n != 1 {
		t.Errorf("not granted: %v", n)
	}
	if n := b.metric(t, "errors_total", "resource", "resourceslices.resource.k8s.io", "reason", "not-served"); n != 1 {
		t.Errorf("not served: %v", n)
	}
	if lines := b.logs.FilterLevelExact(zapcore.ErrorLevel).All(); len(lines) != 0 {
		t.Errorf("log: %v", lines)
	}
	b.server.Refuse("pods", 0)
	b.server.Refuse("resourceslices", 0)
	b.release <- struct{}{}
	b.release <- struct{}{}
	b.log.await(t, "pods", "complete", 1)
}

// Of Secrets nothing but metadata is asked for, and what comes is said to be a Secret.
func TestSecretsAreMetadata(t *testing.T) {
	b := newBench(t)
	b.server.Put(
		"secrets",
		"default",
		"listed",
		`"data":{"password":"aHVudGVyMg=="}`,
		map[string]string{"kubernetes.io/service-account.name": "robot"},
	)
	b.start(t)
	b.log.await(t, "secrets", "complete", 1)
	b.server.AwaitWatch(t, "secrets", 1)
	b.server.Put("secrets", "default", "added", `"data":{"password":"aHVudGVyMg=="}`, nil)
	all := b.log.await(t, "secrets", "changed", 1)
	if got := brief(all); got != "listed:listed complete changed:added" {
		t.Errorf("got %q", got)
	}
	for _, s := range all {
		if s.Name == "" {
			continue
		}
		if !strings.HasPrefix(s.JSON, `{"kind":"Secret","apiVersion":"v1","metadata":{`) || strings.Contains(s.JSON, "aHVudGVyMg") {
			t.Errorf("%s: %s", s.Name, s.JSON)
		}
	}
	if !strings.Contains(all[0].JSON, "robot") {
		t.Errorf("without its annotations: %s", all[0].JSON)
	}
}

func TestOtherCluster(t *testing.T) {
	b := newBench(t)
	b.encoder.check = func() error { return fmt.Errorf("uid differs: %w", ErrOtherCluster) }
	b.start(t)
	for range Kinds() {
		<-b.paused
	}
	if all := b.log.said(""); len(all) != 0 {
		t.Errorf("took %q from another cluster", brief(all))
	}
	if n := b.metric(t, "errors_total", "resource", roles, "reason", "other-cluster"); n != 1 {
		t.Errorf("other-cluster: %v", n)
	}
}

func TestSlowStart(t *testing.T) {
	b := newBench(t)
	b.server.Hold("namespaces", true)
	b.server.Put("namespaces", "", "default", "", nil)
	b.start(t)
	b.log.await(t, roles, "complete", 1)
	b.server.AwaitRequests(t, "/namespaces?limit", 1)
	if all := b.log.said(namespaces); len(all) != 0 {
		t.Fatalf("said %q", brief(all))
	}
	began := b.clock.now()
	b.clock.advance(20 * time.Second)
	b.server.Hold("namespaces", false)
	all := b.log.await(t, namespaces, "complete", 1)
	if s := all[len(all)-1]; !s.From.Equal(began) || !s.To.Equal(b.clock.now()) {
		t.Errorf("listing in [%s, %s], asked for at %s", s.From, s.To, began)
	}
	b.server.AwaitWatch(t, "namespaces", 1)
	b.server.Send("namespaces", "MODIFIED", `{"kind":"Namespace","metadata":{"name":"default","uid":"u","resourceVersion":"$RV"}}`)
	all = b.log.await(t, namespaces, "changed", 1)
	if s := all[len(all)-1]; !s.From.Equal(began) {
		t.Errorf("a change since %s; it may have been made while the answer to the listing was under way, since %s", s.From, began)
	}
}

func TestExpiredContinuation(t *testing.T) {
	b := newBench(t)
	for i := range 5 {
		b.server.Put("roles", "default", fmt.Sprint("r", i), `"rules":[]`, nil)
	}
	b.server.ExpireContinue("roles")
	b.start(t)
	all := b.log.await(t, roles, "complete", 1)
	if got, want := brief(all), "listed:r0 listed:r1 listed:r0 listed:r1 listed:r2 listed:r3 listed:r4 complete"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// TestKafkaDown: changes wait for Kafka, in order, and a watch that dies meanwhile leaves a
// gap.
func TestKafkaDown(t *testing.T) {
	b := newBench(t)
	b.start(t)
	b.server.AwaitWatch(t, "roles", 1)
	for _, k := range Kinds() {
		b.log.await(t, k.Resource, "complete", 1)
	}
	down := true
	refused := make(chan struct{}, 1)
	b.log.mu.Lock()
	b.log.refuse = func(int, []stream.Record) error {
		if !down {
			return nil
		}
		select {
		case refused <- struct{}{}:
		default:
		}
		return stream.ErrTransient
	}
	b.log.mu.Unlock()
	b.server.Put("roles", "default", "a", `"rules":[]`, nil)
	<-refused
	<-refused
	b.positions.mu.Lock()
	if rv := b.positions.at[roles].ResourceVersion; rv != "101" {
		t.Errorf("position moved to %s before the change was acknowledged", rv)
	}
	b.positions.mu.Unlock()
	b.server.Hold("roles", true)
	b.server.End("roles", false)
	b.server.Put("roles", "default", "unseen", `"rules":[]`, nil)
	b.server.Delete("roles", "default", "unseen")
	b.server.Compact(false)
	b.log.mu.Lock()
	down = false
	b.log.mu.Unlock()
	b.server.Hold("roles", false)
	all := b.log.await(t, roles, "complete", 2)
	if got, want := brief(all), "complete changed:a gap listed:a complete"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if n := b.metric(t, "errors_total", "resource", roles, "reason", "produce"); n < 2 {
		t.Errorf("produce errors: %v", n)
	}
}

func TestTooLarge(t *testing.T) {
	b := newBench(t)
	b.log.refuse = func(_ int, recs []stream.Record) error {
		for i, r := range recs {
			if len(r.Value) > 4000 {
				return &stream.TooLargeError{Index: i, Topic: r.Topic, Size: len(r.Value), Limit: 4000}
			}
		}
		return nil
	}
	large := `"rules":[{"verbs":["` + strings.Repeat("x", 5000) + `"]}]`
	b.server.Put("roles", "default", "listed", large, nil)
	b.start(t)
	b.server.AwaitWatch(t, "roles", 1)
	b.server.Put("roles", "default", "changed", large, nil)
	all := b.log.await(t, roles, "unknown", 2)
	if got, want := brief(all), "unknown:listed complete unknown:changed"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if strings.Contains(all[0].JSON, "xxx") || all[0].RV != "102" {
		t.Errorf("what is left: version %s, %s", all[0].RV, all[0].JSON)
	}
}

// TestPartOfTooLarge: of a role that a record has no room for the rules are kept that there is room for.
func TestPartOfTooLarge(t *testing.T) {
	b := newBench(t)
	b.log.refuse = func(_ int, recs []stream.Record) error {
		for i, r := range recs {
			if len(r.Value) > 20_000 {
				return &stream.TooLargeError{Index: i, Topic: r.Topic, Size: len(r.Value), Limit: 20_000}
			}
		}
		return nil
	}
	b.server.Put("roles", "default", "large", `"rules":[{"verbs":["`+strings.Repeat("x", 30_000)+`"]},{"verbs":["get"]}]`, nil)
	b.start(t)
	all := b.log.await(t, roles, "complete", 1)
	if strings.Contains(all[0].JSON, "xxx") || !strings.Contains(all[0].JSON, `"cut":true`) ||
		!strings.Contains(all[0].JSON, `"rules":[{"verbs":["get"]}]`) {
		t.Errorf("what is left: %s of %s", all[0].JSON, brief(all))
	}
}

func TestMalformedChangeIsAGap(t *testing.T) {
	for name, send := range map[string][2]string{
		"not an object": {"ADDED", `[]`},
		"no name":       {"MODIFIED", `{"kind":"Role","metadata":{"resourceVersion":"$RV"}}`},
		"no JSON":       {"ADDED", `{"kind":"Role",,}`},
		"unknown type":  {"MOVED", `{"kind":"Role","metadata":{"name":"a","resourceVersion":"$RV"}}`},
		"odd bookmark":  {"BOOKMARK", `{"metadata":{"resourceVersion":"soon"}}`},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.start(t)
			b.server.AwaitWatch(t, "roles", 1)
			b.server.Send(
				"roles",
				"MODIFIED",
				`{"kind":"Role","metadata":{"name":"fine","namespace":"x","uid":"u","resourceVersion":"$RV"}}`,
			)
			b.log.await(t, roles, "changed", 1)
			b.server.Send("roles", send[0], send[1])
			all := b.log.await(t, roles, "complete", 2)
			if got, want := brief(all), "complete changed:fine gap complete"; got != want {
				t.Errorf("got %q, want %q", got, want)
			}
			if n := b.metric(t, "errors_total", "resource", roles, "reason", "malformed"); n != 1 {
				t.Errorf("malformed: %v", n)
			}
		})
	}
}

func TestRestart(t *testing.T) {
	for name, tc := range map[string]struct {
		meanwhile func(b *bench)
		say       string // after the first run's "listed:a complete"
		objects   float64
	}{
		"resumed: what happened meanwhile is told": {
			func(b *bench) {
				b.server.Delete("roles", "default", "a")
				b.server.Put("roles", "default", "short", `"rules":[]`, nil)
				b.server.Delete("roles", "default", "short")
			}, "complete deleted:a changed:short deleted:short", 1,
		},
		"compacted: a gap up to the listing": {
			func(b *bench) {
				b.server.Delete("roles", "default", "a")
				b.server.Compact(false)
			}, "complete gap", 1,
		},
		"restored from a backup: a gap": {
			func(b *bench) { b.server.Restore(50) }, "complete gap", 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.server.Put("roles", "default", "a", `"rules":[]`, nil)
			b.start(t)
			b.server.AwaitWatch(t, "roles", 1)
			b.stop()
			first := len(b.log.said(roles))
			b.clock.advance(time.Hour)
			tc.meanwhile(b)
			listing := b.clock.now()
			b.log.mu.Lock()
			b.log.refuse = func(_ int, recs []stream.Record) error {
				if bytes.Contains(recs[0].Value, []byte(`"complete"`)) {
					b.clock.advance(time.Second) // the listing lies in the past when the gap is found
				}
				return nil
			}
			b.log.mu.Unlock()
			b.start(t)
			words := strings.Fields(tc.say)
			op, _, _ := strings.Cut(words[len(words)-1], ":")
			all := b.log.await(t, roles, op, len(pick(b.log.said(roles)[:first], op))+strings.Count(tc.say, op))[first:]
			if got := brief(all); got != tc.say {
				t.Fatalf("got %q, want %q", got, tc.say)
			}
			if last := all[len(all)-1]; last.Op == "gap" && (last.From.After(listing.Add(-time.Hour)) || last.To.After(all[0].From)) {
				t.Errorf("gap [%s, %s], want from the first listing to the second, begun at %s", last.From, last.To, all[0].From)
			}
			b.server.AwaitWatch(t, "roles", 1)
			b.server.Put("roles", "default", "later", `"rules":[]`, nil)
			b.log.await(t, roles, "changed", len(pick(b.log.said(roles), "changed"))+1)
			b.stop()
			if n := b.metric(t, "relists_total", "resource", roles); n != 1 {
				t.Errorf("listed %v times", n)
			}
			if n := b.metric(t, "objects", "resource", roles); n != tc.objects {
				t.Errorf("objects: %v, want %v", n, tc.objects)
			}
		})
	}
}

func TestSecretsStayHere(t *testing.T) {
	const planted = "c3VwZXItc2VjcmV0LXBsYW50ZWQ"
	applied := `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"db"},"data":{"password":"` + planted + `"},"stringData":{"p":"` +
		planted + `"}}`
	b := newBench(t)
	note := map[string]string{"kubectl.kubernetes.io/last-applied-configuration": applied}
	b.server.Put("serviceaccounts", "default", "listed", "", note)
	b.start(t)
	b.server.AwaitWatch(t, "serviceaccounts", 1)
	b.server.Put("serviceaccounts", "default", "added", "", note)
	b.server.Put("serviceaccounts", "default", "listed", "", note)
	b.server.Delete("serviceaccounts", "default", "added")
	all := b.log.await(t, "serviceaccounts", "deleted", 1)
	if got, want := brief(all), "listed:listed complete changed:added changed:listed deleted:added"; got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
	if !strings.Contains(all[0].JSON, "last-applied-configuration") {
		t.Error("the annotation is gone altogether: the test shows nothing")
	}
	for _, s := range all {
		if strings.Contains(fmt.Sprint(s), planted) {
			t.Errorf("%s %s carries the planted secret", s.Op, s.Name)
		}
	}
	if strings.Contains(b.logged(), planted) {
		t.Error("the log carries the planted secret")
	}
}

func TestNewRefuses(t *testing.T) {
	b := newBench(t)
	reg := prometheus.NewRegistry()
	make := func(cfg Config) error {
		_, err := New(cfg, b.log, redact.New([]byte("0123456789abcdef")), b.encoder, nil)
		return err
	}
	good := Config{Cluster: "prod", REST: b.server.REST(), Registerer: reg}
	if err := make(good); err != nil {
		t.Fatal(err)
	}
	if err := make(good); !errors.As(err, new(prometheus.AlreadyRegisteredError)) {
		t.Errorf("the same cluster twice: %v", err)
	}
	if err := make(Config{REST: b.server.REST()}); err == nil {
		t.Error("no cluster name was accepted")
	}
	if err := make(Config{Cluster: "prod"}); err == nil {
		t.Error("no way to reach the cluster was accepted")
	}
	if err := make(Config{Cluster: "prod", Kubeconfig: t.TempDir() + "/missing"}); err == nil || !strings.Contains(err.Error(), "prod") {
		t.Errorf("a missing kubeconfig: %v", err)
	}
}
