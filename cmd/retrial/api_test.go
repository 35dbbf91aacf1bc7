package main

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/params"
	"github.com/retrial-io/retrial/internal/version"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// fakeTables has the questions that tests ask of real stores alone: farther down than those of the fakes, which come first.
type fakeTables struct{ noTables }

type noTables struct{ query.Tables }

// fakeStore answers what a test says, or hangs until the caller gives up.
type fakeStore struct {
	fakeArrivals
	fakeTables
	drift       []queries.Drift
	requests    int64
	judged      int64
	uses        []queries.CredentialUse
	credentials []queries.SubjectCredential
	fakeAccess
	fakeSubjects
	fakeDoctor
	fakeFindings
	overview queries.Overview
	rows     []verdict.Row
	err      error
	hang     bool
	known    *state.State // of every cluster
	quiet    []string     // clusters anything is known of
	stored   []queries.Cluster
	entered  chan struct{}

	filter  queries.EventFilter // of the last list
	visited int                 // rows of the last why
	looked  int                 // for writes
}

func (f *fakeStore) answer(ctx context.Context) error {
	if f.entered != nil {
		f.entered <- struct{}{}
	}
	if f.hang {
		<-ctx.Done()
		return ctx.Err()
	}
	return f.err
}

func (f *fakeStore) Clusters(ctx context.Context) ([]queries.Cluster, error) {
	return f.stored, f.answer(ctx)
}

func (f *fakeStore) Overview(ctx context.Context, _ string, _, _ time.Time) (queries.Overview, error) {
	return f.overview, f.answer(ctx)
}

func (f *fakeStore) Events(ctx context.Context, filter queries.EventFilter) ([]verdict.Row, error) {
	f.filter = filter
	return f.rows[:min(len(f.rows), filter.Limit)], f.answer(ctx)
}

func (f *fakeStore) Writes(ctx context.Context, _ string, of []queries.Written) (rows []verdict.Row, err error) {
	f.looked++
	for _, r := range f.rows {
		if slices.ContainsFunc(of, func(w queries.Written) bool { return w.By(r.Event) }) {
			rows = append(rows, r)
		}
	}
	return rows, f.answer(ctx)
}

func (f *fakeStore) AuditIDs(context.Context, string, string, int) ([]string, error) { return nil, nil }

func (f *fakeStore) VisitWhy(ctx context.Context, _, _ string, visit func(verdict.Row) error) error {
	f.visited = 0
	for _, r := range f.rows {
		f.visited++
		if err := visit(r); err != nil {
			return err
		}
	}
	return f.answer(ctx)
}

func (f *fakeStore) DriftGroups(ctx context.Context, _ string, _, _ time.Time, _, _ int) ([]queries.Drift, error) {
	return f.drift, f.answer(ctx)
}

func (f *fakeStore) Judged(ctx context.Context, _ string, _, _ time.Time) (requests, judged int64, err error) {
	return f.requests, f.judged, f.answer(ctx)
}

func (f *fakeStore) CredentialUses(ctx context.Context, _ string, of []string, _, _ time.Time, limit int) (queries.CredentialUses, error) {
	out := queries.CredentialUses{}
	for _, credential := range of {
		out[credential] = f.uses[:min(len(f.uses), limit)]
	}
	return out, f.answer(ctx)
}

func (f *fakeStore) Credentials(ctx context.Context, _, _ string, _, _ time.Time, limit int) ([]queries.SubjectCredential, error) {
	return f.credentials[:min(len(f.credentials), limit)], f.answer(ctx)
}

func (f *fakeStore) Lag() verdict.Backlog              { return verdict.Backlog{Events: 7, Policy: 1} }
func (f *fakeStore) WaitDrained(context.Context) error { return nil }
func (f *fakeStore) State(context.Context, string, time.Time) (*state.State, error) {
	return f.known, nil
}

// replay is the store's other half.
func (f *fakeStore) replay() fakeReplay { return fakeReplay{f} }

type fakeReplay struct{ *fakeStore }

func (f fakeReplay) Clusters(context.Context) ([]string, error) { return f.quiet, nil }

func askFake(t *testing.T, f *fakeStore, method, path string) *httptest.ResponseRecorder {
	t.Helper()
	w := httptest.NewRecorder()
	apiHandler(f, f.replay(), nil, zap.NewNop(), time.Minute).ServeHTTP(w,
		httptest.NewRequest(method, "http://localhost/api/v1/"+path, nil))
	return w
}

func decodeAnswer[T any](t *testing.T, w *httptest.ResponseRecorder) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(w.Body.Bytes(), &v); err != nil || w.Code != http.StatusOK {
		t.Fatalf("status %d, %v: %s", w.Code, err, w.Body)
	}
	return v
}

const aRange = "&from=2026-11-20T11:36:00Z&to=2026-11-20T11:45:00Z"

func TestAPIRefusesBadQuestions(t *testing.T) {
	for _, c := range []struct{ name, path, says string }{
		{"no cluster", "overview?from=2026-11-20T11:36:00Z&to=2026-11-20T11:45:00Z", "cluster is missing"},
		{"no range", "overview?cluster=c", "from is missing"},
		{"half a range", "overview?cluster=c&from=2026-11-20T11:36:00Z", "to is missing"},
		{"range the wrong way round", "overview?cluster=c&to=2026-11-20T11:36:00Z&from=2026-11-20T11:45:00Z", "is not before"},
		{"empty range", "events?cluster=c&to=2026-11-20T11:36:00Z&from=2026-11-20T11:36:00Z", "is not before"},
		{"no time", "overview?cluster=c&from=yesterday&to=2026-11-20T11:36:00Z", "want RFC 3339"},
		{"time the columns do not hold", "overview?cluster=c&from=1969-12-31T00:00:00Z&to=2026-11-20T11:36:00Z", "between 1970 and 2106"},
		{"time after the columns' end", "overview?cluster=c&from=2026-12-31T00:00:00Z&to=9999-11-20T11:36:00Z", "between 1970 and 2106"},
		{"misspelt parameter", "events?cluster=c&form=2026-11-20T11:36:00Z", `no parameter "form"`},
		{"parameter twice", "events?cluster=c&cluster=d", "given 2 times"},
		{"unreadable query", "events?cluster=%zz", "cannot be read"},
		{"not UTF-8", "events?cluster=%ff", "not UTF-8"},
		{"very long parameter", "events?cluster=c&subject=" + strings.Repeat("x", params.MaxValue+1), "at most"},
		{"unknown outcome", "events?cluster=c&outcome=drfit", "want one of match, drift"},
		{"unknown class", "events?cluster=c&class=nonsense", `unknown class "nonsense": see api/v1/classes`},
		{"unknown decision", "events?cluster=c&decision=deny", "want one of allow, forbid, none"},
		{"limit nought", "events?cluster=c&limit=0", "from 1 to 500"},
		{"limit too large", "events?cluster=c&limit=501", "from 1 to 500"},
		{"limit no number", "events?cluster=c&limit=all", "from 1 to 500"},
		{"cursor", "events?cluster=c&before=x.y", "as older"},
		{"cursor without key", "events?cluster=c&before=12", "as older"},
		{"why without ID", "why?cluster=c", "auditID is missing"},
		{"parameter where none is", "status?cluster=c", "no parameter"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := askFake(t, &fakeStore{}, http.MethodGet, c.path)
			if w.Code != http.StatusBadRequest || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("status %d: %s", w.Code, w.Body)
			}
		})
	}
}

func TestAPIAnswersAreNeverKept(t *testing.T) {
	for _, c := range []struct {
		method, path string
		status       int
	}{
		{"GET", "clusters", 200}, {"GET", "status", 200}, {"GET", "classes", 200}, {"GET", "drained", 200},
		{"GET", "events?cluster=c", 200}, {"GET", "why?auditID=x", 200}, {"GET", "overview?cluster=c" + aRange, 200},
		{"GET", "overview", 400}, {"GET", "nothing", 404}, {"POST", "clusters", 405}, {"DELETE", "nothing", 405},
	} {
		w := askFake(t, &fakeStore{}, c.method, c.path)
		h := w.Header()
		if w.Code != c.status || h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" ||
			h.Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%s %s: %d, %v", c.method, c.path, w.Code, h)
		}
		if kind := h.Get("Content-Type"); (c.status == 200) != (kind == "application/json") {
			t.Errorf("%s %s: %s", c.method, c.path, kind)
		}
	}
}

func TestAPIFailures(t *testing.T) {
	t.Run("what the store says stays in the log", func(t *testing.T) {
		w := askFake(t, &fakeStore{err: errors.New("dial 10.1.2.3 as user secret")}, http.MethodGet, "clusters")
		if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "secret") {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	})
	t.Run("a query ends after the longest time", func(t *testing.T) {
		f := &fakeStore{hang: true}
		w := httptest.NewRecorder()
		apiHandler(f, f.replay(), nil, zap.NewNop(), time.Millisecond).ServeHTTP(w,
			httptest.NewRequest(http.MethodGet, "/api/v1/clusters", nil))
		if w.Code != http.StatusGatewayTimeout || !strings.Contains(w.Body.String(), "shorter range") {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
	})
	t.Run("a query ends when its caller goes away", func(t *testing.T) {
		f := &fakeStore{hang: true, entered: make(chan struct{})}
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		go func() {
			defer close(done)
			r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/clusters", nil)
			apiHandler(f, f.replay(), nil, zap.NewNop(), time.Hour).ServeHTTP(httptest.NewRecorder(), r)
		}()
		<-f.entered
		cancel()
		<-done
	})
	t.Run("a question waits for its turn, and what needs no store does not", func(t *testing.T) {
		f := &fakeStore{hang: true, entered: make(chan struct{})}
		h := apiHandler(f, f.replay(), nil, zap.NewNop(), time.Hour)
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan struct{})
		for range api.QueriesAtOnce / 2 {
			go func() {
				h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/clusters", nil))
				done <- struct{}{}
			}()
			<-f.entered
		}
		// One more of this caller's waits and does not reach the store.
		late, giveUp := context.WithCancel(context.Background())
		giveUp()
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(late, http.MethodGet, "/api/v1/clusters", nil))
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("status %d: %s", w.Code, w.Body)
		}
		w = httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/status", nil))
		if w.Code != http.StatusOK {
			t.Errorf("status %d", w.Code)
		}
		cancel()
		for range api.QueriesAtOnce / 2 {
			<-done
		}
	})
}

func TestAPIOverview(t *testing.T) {
	at := time.Date(2026, 11, 20, 11, 36, 0, 0, time.UTC)
	f := &fakeStore{overview: queries.Overview{
		Step: 5 * time.Second, Decisions: []queries.Decided{{Recorded: "forbid", Replayed: "allow", Requests: 2}},
		Volume: []queries.Bucket{
			{Start: at, Recorded: "allow", Outcome: "match", Events: 5}, {Start: at, Recorded: "forbid", Outcome: "drift", Events: 2},
			{Start: at, Events: 3}, {Start: at.Add(time.Minute), Recorded: "none", Outcome: "not_judged", Events: 1},
		},
		Outcomes: []queries.Share{{Outcome: "match", Requests: 5}, {Outcome: "drift", Class: verdict.ClassForbidAllow, Requests: 2},
			{Outcome: "not_judged", Class: verdict.ClassUnauthenticated, Requests: 1}},
	}}
	o := decodeAnswer[query.OverviewAnswer](t, askFake(t, f, http.MethodGet, "overview?cluster=c"+aRange))
	if want := (query.Totals{Events: 11, Requests: 8, Match: 5, Drift: 2, NotJudged: 1, Forbid: 2}); o.Totals != want {
		t.Errorf("totals %+v, want %+v", o.Totals, want)
	}
	if len(o.Volume) != 2 || o.Volume[0] != (query.Bucket{Time: at, Allow: 5, Forbid: 2, Match: 5, Drift: 2, Later: 3}) {
		t.Errorf("volume %+v", o.Volume)
	}
	if o.BucketSeconds != 5 || len(o.Decisions) != 1 ||
		o.Decisions[0] != (query.Decided{Recorded: "forbid", Replayed: "allow", Requests: 2}) {
		t.Errorf("buckets of %d s, decisions %+v", o.BucketSeconds, o.Decisions)
	}
	if o.Next != nil {
		t.Errorf("advice %+v where nothing is missing", o.Next)
	}
}

func TestAdvice(t *testing.T) {
	share := func(class string, n int64) queries.Share {
		return queries.Share{Outcome: "indeterminate", Class: class, Requests: n}
	}
	lacks := []queries.Lack{
		{Missing: "pods bound to node n1 (path to secrets/a/b)", Requests: 40}, {Missing: "all ClusterRoleBindings", Requests: 9},
		{Missing: "RoleBinding shop/x", Requests: 3}, {Missing: "not-evaluable:webhook guard", Requests: 2},
		{Missing: "the ABAC policy file", Requests: 2},
	}
	for _, c := range []struct {
		name     string
		shares   []queries.Share
		class    string
		requests int64
		command  string
		first    string
	}{
		{name: "nothing is missing", shares: []queries.Share{{Outcome: "match", Requests: 9}}},
		{"nodes only", []queries.Share{share(verdict.ClassNodeGraph, 40)}, verdict.ClassNodeGraph, 40, "pods,nodes",
			"pods bound to node n1 (path to secrets/a/b)"},
		{"no state comes before all",
			[]queries.Share{share(verdict.ClassNodeGraph, 40), share(verdict.ClassUnknown, 12), share(verdict.ClassNoState, 9)},
			verdict.ClassNoState, 9, "retrial import --cluster 'it'\\''s' --state state.json", "all ClusterRoleBindings"},
		{"an unknown object before nodes", []queries.Share{share(verdict.ClassNodeGraph, 40), share(verdict.ClassUnknown, 3)},
			verdict.ClassUnknown, 3, "RequestResponse", "RoleBinding shop/x"},
		{"a file of the configuration", []queries.Share{share(verdict.ClassConfig, 2), share(verdict.ClassUnknown, 3)}, verdict.ClassConfig,
			2, "retrial config check", "the ABAC policy file"},
		{"a webhook", []queries.Share{share(verdict.ClassWebhook, 2)}, verdict.ClassWebhook, 2, "", "not-evaluable:webhook guard"},
		{"nothing to be done", []queries.Share{share(verdict.ClassUnparsable, 2)}, verdict.ClassUnparsable, 2, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := query.Advise("it's", c.shares, lacks)
			if c.class == "" {
				if a != nil {
					t.Fatalf("got %+v", a)
				}
				return
			}
			if a == nil || a.Class != c.class || a.Requests != c.requests || a.Title == "" || a.Text == "" {
				t.Fatalf("got %+v", a)
			}
			if (c.command == "") != (a.Command == "") || !strings.Contains(a.Command, c.command) {
				t.Errorf("command %q", a.Command)
			}
			if (c.first == "") != (len(a.Missing) == 0) || c.first != "" && a.Missing[0].What != c.first {
				t.Errorf("missing %+v", a.Missing)
			}
		})
	}
}

// row makes a stored row of a request.
func row(id string, n int, judged bool) verdict.Row {
	at := time.Date(2026, 11, 20, 11, 36, n, 0, time.UTC)
	e := &event.Event{AuditID: id, Verb: "get", RequestURI: "/api", Stage: event.StageResponseComplete, RequestReceivedTimestamp: at,
		StageTimestamp: at}
	r := verdict.Row{Cluster: "c", Event: e, Size: 1 << 20}
	r.Request = event.RequestKey("c", e)
	if judged {
		r.Verdict = &verdict.Verdict{Outcome: verdict.OutcomeMatch, Recorded: verdict.DecisionAllow, Replayed: verdict.DecisionAllow}
	}
	return r
}

func TestAPIEvents(t *testing.T) {
	type answer struct {
		Events []query.Event `json:"events"`
		Older  string        `json:"older"`
	}
	f := &fakeStore{rows: []verdict.Row{row("a", 3, true), row("b", 2, true), row("c", 1, true)}}
	page := decodeAnswer[answer](t, askFake(t, f, http.MethodGet,
		"events?cluster=c&limit=2&subject=u&verb=v&resource=r&decision=forbid&outcome=drift&class="+verdict.ClassReason))
	if len(page.Events) != 2 || page.Older == "" || page.Events[0].Request != f.rows[0].Request.String() {
		t.Fatalf("got %+v", page)
	}
	if g := f.filter; g.Subject != "u" || g.Verb != "v" || g.Resource != "r" || g.Recorded != "forbid" || g.Outcome != "drift" ||
		g.Class != verdict.ClassReason || !g.Judged {
		t.Errorf("filter %+v", g)
	}
	old := askFake(t, f, http.MethodGet, "events?cluster=c&user=ann")
	decodeAnswer[answer](t, old)
	if said := old.Header().Get("Warning"); f.filter.Subject != "ann" || !strings.Contains(said, "user is called subject now") {
		t.Errorf("a parameter's name of before: asked about %q, warned %q", f.filter.Subject, said)
	}
	decodeAnswer[answer](t, askFake(t, f, http.MethodGet, "events?cluster=c&before="+url.QueryEscape(page.Older)))
	if f.filter.Before != queries.CursorOf(&f.rows[1]) {
		t.Errorf("continued at %+v", f.filter.Before)
	}
	if last := decodeAnswer[answer](t, askFake(t, f, http.MethodGet, "events?cluster=c&limit=3")); last.Older != "" ||
		len(last.Events) != 3 {
		t.Errorf("a last page that has an older one: %+v", last)
	}
}

func TestAPIWhy(t *testing.T) {
	t.Run("an audit ID used twice", func(t *testing.T) {
		first, later := row("x", 1, true), row("x", 1, false)
		later.Event.Stage = event.StageResponseStarted
		f := &fakeStore{rows: []verdict.Row{first, later, row("x", 2, true)}}
		w := decodeAnswer[query.WhyAnswer](t, askFake(t, f, http.MethodGet, "why?auditID=x"))
		if len(w.Requests) != 2 || len(w.Requests[0].Stages) != 2 || w.Requests[0].Verdict == nil ||
			w.Requests[0].Request == w.Requests[1].Request || w.Truncated {
			t.Errorf("got %+v", w)
		}
	})
	t.Run("an audit ID used without end", func(t *testing.T) {
		f := &fakeStore{}
		for i := range 200 {
			f.rows = append(f.rows, row("x", i, true))
		}
		w := decodeAnswer[query.WhyAnswer](t, askFake(t, f, http.MethodGet, "why?auditID=x"))
		if n := len(w.Requests); n != query.WhyBytes>>20 || !w.Truncated || f.visited != n+1 {
			t.Errorf("%d requests, truncated %v, %d rows read", n, w.Truncated, f.visited)
		}
	})
	t.Run("one that is larger than an answer", func(t *testing.T) {
		r := row("x", 1, true)
		r.Size = query.WhyBytes + 1
		if w := decodeAnswer[query.WhyAnswer](t,
			askFake(t, &fakeStore{rows: []verdict.Row{r}}, http.MethodGet, "why?auditID=x")); len(w.Requests) != 1 {
			t.Errorf("%d requests", len(w.Requests))
		}
	})
}

func TestAPIStatus(t *testing.T) {
	s := decodeAnswer[map[string]any](t, askFake(t, &fakeStore{}, http.MethodGet, "status"))
	if s["lag"] != 7.0 || s["policyLag"] != 1.0 || s["version"] != version.Version {
		t.Errorf("got %v", s)
	}
}

// TestAPIClasses: every outcome and class has its words.
func TestAPIClasses(t *testing.T) {
	c := decodeAnswer[struct{ Outcomes, Classes []map[string]string }](t, askFake(t, &fakeStore{}, http.MethodGet, "classes"))
	known := map[string]bool{}
	for _, o := range c.Outcomes {
		known[o["outcome"]] = o["text"] != ""
	}
	for _, o := range query.Outcomes {
		if !known[o] {
			t.Errorf("outcome %s is not explained", o)
		}
	}
	if len(c.Classes) != len(verdict.Classes()) {
		t.Errorf("%d classes", len(c.Classes))
	}
	for _, x := range c.Classes {
		if !known[x["outcome"]] || x["text"] == "" {
			t.Errorf("class %v", x)
		}
	}
}
