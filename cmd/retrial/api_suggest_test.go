package main

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// aliked is what the store says of a subject's requests.
func aliked(user string, n int64, a verdict.Attributes) codec.Alike {
	at := time.Date(2026, 11, 20, 11, 36, 0, 0, time.UTC)
	a.ResourceRequest = true
	return codec.Alike{Event: &event.Event{User: event.User{Username: user, Groups: []string{"devs", "system:authenticated"}}},
		Verdict: &verdict.Verdict{Outcome: verdict.OutcomeMatch, Recorded: verdict.DecisionAllow, Replayed: verdict.DecisionAllow,
			Authorizer: verdict.AuthorizerRBAC, Grants: make([]verdict.Grant, 1), Attributes: a},
		Requests: n, First: at, Last: at.Add(time.Minute)}
}

func suggestFake(t *testing.T) *fakeStore {
	t.Helper()
	at := time.Date(2026, 11, 20, 11, 36, 0, 0, time.UTC)
	f := &fakeStore{known: policyOf(t, readerRole, annReads, devsRead, botReads)}
	f.recording = queries.Recording{First: at, Last: at.Add(8 * 24 * time.Hour), Requests: 9, Truncated: 1, Dropped: 2, DeadLetters: 3,
		Classes: []queries.Share{{Outcome: "match", Requests: 7}, {Outcome: "indeterminate", Class: verdict.ClassNoState, Requests: 2}}}
	f.history = []codec.Alike{aliked("ann", 7, verdict.Attributes{Verb: "get", Resource: "pods", Namespace: "a", Name: "web"})}
	f.policy = []observe.Observation{{Source: observe.SourceAudit, Resource: kept.ClusterRoleBindings, Name: "ann-reads", UID: "u1",
		ResourceVersion: "2",
		Object:          []byte(`{"metadata":{"labels":{"team":"a"},"annotations":{"why":"so"}}}`)}}
	return f
}

func TestAPISuggest(t *testing.T) {
	f := suggestFake(t)
	t.Run("kept", func(t *testing.T) {
		now := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
		a := query.Service{Store: f, Replay: f.replay(), Now: func() time.Time { return now }}
		all, err := a.Suggest(t.Context(), query.SuggestRequest{Cluster: "c", All: true, Kept: true})
		if err != nil || len(all.Suggestions) != 1 || all.Suggestions[0].Size.Apply != 2 || !all.Read.Equal(now) {
			t.Errorf("got %+v, %v of all", all, err)
		}
		read := now
		now = now.Add(time.Minute)
		again, err := a.Suggest(t.Context(), query.SuggestRequest{Cluster: "c", All: true, Kept: true})
		if err != nil || len(again.Suggestions) != 1 || !again.Read.Equal(read) {
			t.Errorf("got %+v, %v, want what was kept", again, err)
		}
		one, err := a.Suggest(t.Context(), query.SuggestRequest{Cluster: "c", Subjects: []string{"ann"}, Kept: true})
		if err != nil || len(one.Suggestions) != 1 || !slices.Equal(f.about, []string{"ann"}) || !one.Read.IsZero() {
			t.Errorf("got %+v, %v, about %v: of one subject nothing is kept", one, err, f.about)
		}
		now = now.Add(10 * time.Minute)
		if err := a.Renew(t.Context()); err != nil {
			t.Error(err)
		}
		again, err = a.Suggest(t.Context(), query.SuggestRequest{Cluster: "c", All: true, Kept: true})
		if err != nil || !again.Read.Equal(now) {
			t.Errorf("read at %s, %v, want it made anew at %s", again.Read, err, now)
		}
		res := askFake(t, f, http.MethodGet, "suggest?cluster=c&all=true&kept=true&from=2026-11-20T11:36:00Z")
		if res.Code != http.StatusBadRequest {
			t.Errorf("%d %s for what is kept of a range", res.Code, res.Body)
		}
	})
	t.Run("one", func(t *testing.T) {
		s := decodeAnswer[query.SuggestAnswer](t, askFake(t, f, http.MethodGet, "suggest?cluster=c&subject=ann"))
		if len(s.Suggestions) != 1 || !slices.Equal(f.about, []string{"ann"}) || s.Cluster != "c" || len(s.Unseen) != 0 {
			t.Fatalf("got %+v", s)
		}
		one := s.Suggestions[0]
		if one.Proof.Requests != 7 || !one.Proof.Holds || len(one.Apply) != 2 || len(one.Remove) != 1 ||
			one.Remove[0].Name != "ann-reads" || !one.Seen {
			t.Errorf("got %+v", one)
		}
		if w := s.Window; w.Requests != 9 || w.Judged != 7 || w.Truncated != 1 || w.Dropped != 2 || w.DeadLetters != 3 || len(w.Gaps) < 4 ||
			!slices.Equal(one.Window.Gaps, w.Gaps) || !one.Window.To.Equal(w.To) {
			t.Errorf("window %+v, of the suggestion %+v", w, one.Window)
		}
		if !s.Plan.Holds || len(s.Plan.Apply) != 2 || len(s.Plan.Remove) != 1 || len(s.Plan.Rollback) != 1 || len(s.Plan.Final) == 0 ||
			len(s.Plan.Proofs) != 1 {
			t.Errorf("plan %+v", s.Plan)
		}
		var text strings.Builder
		if err := cli.PrintAs(&text, "json", s.Plan.Rollback); err != nil || !strings.Contains(text.String(), `"team": "a"`) ||
			!strings.Contains(text.String(), `"why": "so"`) {
			t.Errorf("%v: the way back has lost labels or annotations:\n%s", err, &text)
		}
	})
	t.Run("all", func(t *testing.T) {
		s := decodeAnswer[query.SuggestAnswer](t, askFake(t, f, http.MethodGet, "suggest?cluster=c&all=true"))
		if len(s.Suggestions) != 1 || len(f.about) != 0 || len(s.Unseen) != 1 || s.Unseen[0].Subject != "system:serviceaccount:shop:bot" {
			t.Errorf("got %+v", s)
		}
		// Everybody's change is counted, and shown where it is asked for.
		if one := s.Suggestions[0]; one.Size != (query.SuggestionSize{Apply: 2, Remove: 1, Rollback: 1}) || !one.Changes() ||
			len(one.Apply)+len(one.Remove)+len(one.Rollback) > 0 || len(one.Unused) == 0 {
			t.Errorf("got %+v", one)
		}
		if p := s.Plan; len(p.Apply)+len(p.Remove)+len(p.Rollback)+len(p.Final) > 0 || len(p.Proofs) != 1 {
			t.Errorf("plan %+v", p)
		}
		s = decodeAnswer[query.SuggestAnswer](t, askFake(t, f, http.MethodGet, "suggest?cluster=c&all=true&changes=true"))
		if one := s.Suggestions[0]; len(one.Apply) != 2 || len(one.Remove) != 1 || len(s.Plan.Rollback) != 1 {
			t.Errorf("got %+v", one)
		}
		s = decodeAnswer[query.SuggestAnswer](t, askFake(t, f, http.MethodGet, "suggest?cluster=c&all=true&includeUnseen=true"))
		if len(s.Suggestions) != 2 || !s.Plan.Holds {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("several", func(t *testing.T) {
		both := url.QueryEscape("ann\nsystem:serviceaccount:shop:bot")
		if s := decodeAnswer[query.SuggestAnswer](t,
			askFake(t, f, http.MethodGet, "suggest?cluster=c&subject="+both)); len(s.Suggestions) != 2 || len(f.about) != 2 {
			t.Errorf("got %+v", s)
		}
	})
	t.Run("targets", func(t *testing.T) {
		f := suggestFake(t)
		for asked, want := range map[string]struct{ what, subject string }{
			"group=devs": {"group", "devs"}, "role=" + url.QueryEscape("ClusterRole/reader"): {"role", "ClusterRole/reader"},
			"binding=ann-reads": {"binding", "ClusterRoleBinding/ann-reads"}, "subject=" + url.QueryEscape("a*"): {"subject", "ann"},
		} {
			s := decodeAnswer[query.SuggestAnswer](t, askFake(t, f, http.MethodGet, "suggest?cluster=c&"+asked))
			if len(s.Suggestions) != 1 || s.Suggestions[0].What != want.what || s.Suggestions[0].Subject != want.subject ||
				!s.Plan.Holds || s.Texts == nil || len(f.about) != 0 {
				t.Errorf("%s: %+v, about %q", asked, s.Suggestions, f.about)
			}
		}
	})
	system := suggestFake(t)
	system.history[0].Event.User.Username = "system:kube-scheduler"
	for _, c := range []struct {
		name, query string
		f           *fakeStore
		status      int
		says        string
	}{
		{"nobody is meant", "cluster=c", f, 400, "or pass all=true: one of them"},
		{"an unknown group", "cluster=c&group=dves", f, 404, `no binding names the group "dves"; did you mean "devs"?`},
		{"an unknown role", "cluster=c&role=raeder", f, 404, `no role is called "raeder"; did you mean "reader"?`},
		{"an unknown binding", "cluster=c&binding=RoleBinding/x/y", f, 404, `no binding is called "RoleBinding/x/y"`},
		{"nobody's namespace", "cluster=c&namespace=shpo", f, 404, `in a namespace "shpo" was decided by RBAC; did you mean "shop"?`},
		{"a pattern of nobody", "cluster=c&subject=z*", f, 404, `no subject of whom RBAC decided anything is called like "z*"`},
		{"a group as a subject", "cluster=c&subject=devs", f, 404, `"devs" is a group: ask for it with --group (group=)`},
		{"a strict group", "cluster=c&group=devs&strict=true", f, 400, "are not for a group, a role or a binding"},
		{"a back-test of a role", "cluster=c&role=reader&backtest=true", f, 400, "a back-test is of subjects"},
		{"a role of Kubernetes", "cluster=c&group=system:nodes", f, 400, "belongs to Kubernetes itself"},
		{"both are meant", "cluster=c&subject=ann&all=true", f, 400, "or pass all=true: one of them"},
		{"no cluster", "all=true", f, 400, "cluster is missing"},
		{"an empty name", "cluster=c&subject=ann%0a", f, 400, "an empty name"},
		{"no such choice", "cluster=c&all=yes", f, 400, "want true or false"},
		{"no such wildcard", "cluster=c&all=true&wildcards=resources", f, 400, "want one of none, verbs"},
		{"an unknown subject", "cluster=c&subject=anne", f, 404, `did you mean "ann"?`},
		{"a subject of Kubernetes", "cluster=c&subject=system:kube-scheduler", system, 400, "includeSystem=true"},
		{"no state", "cluster=c&all=true", &fakeStore{fakeSubjects: f.fakeSubjects}, 404, "retrial import --cluster c --state"},
		{"an empty state", "cluster=c&all=true", &fakeStore{fakeSubjects: f.fakeSubjects, known: state.New("c")}, 404,
			"kubectl get clusterroles"},
		{"no request", "cluster=c&all=true", &fakeStore{known: f.known}, 404, "in this range"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := askFake(t, c.f, http.MethodGet, "suggest?"+c.query)
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("%d: %s", w.Code, w.Body)
			}
		})
	}
}

// slowHistory is a store whose history ends when it is told to.
type slowHistory struct {
	*fakeStore
	entered chan struct{}
}

func (s slowHistory) Uses(ctx context.Context, _ string, _ []string, _ func(verdict.Use) error) error {
	s.entered <- struct{}{}
	<-ctx.Done()
	return ctx.Err()
}

// TestSuggestOneAtATime: suggestions are made one at a time, and do not keep other
// questions from being answered.
func TestSuggestOneAtATime(t *testing.T) {
	f := slowHistory{suggestFake(t), make(chan struct{})}
	h := apiHandler(f, f.replay(), nil, zap.NewNop(), time.Hour)
	ask := func(ctx context.Context, path string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/v1/"+path, nil))
		return w
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { ask(ctx, "suggest?cluster=c&all=true"); close(done) }()
	<-f.entered
	gone, leave := context.WithCancel(t.Context())
	leave()
	if w := ask(gone, "suggest?cluster=c&all=true"); w.Code != http.StatusServiceUnavailable {
		t.Errorf("a second one: %d %s", w.Code, w.Body)
	}
	if w := ask(t.Context(), "clusters"); w.Code != http.StatusOK {
		t.Errorf("another question: %d %s", w.Code, w.Body)
	}
	cancel()
	<-done
	// Its place is free again, and the time it may take is bounded.
	short := apiHandler(f, f.replay(), nil, zap.NewNop(), time.Millisecond)
	w := httptest.NewRecorder()
	go func() { <-f.entered }()
	short.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/api/v1/suggest?cluster=c&all=true", nil))
	if w.Code != http.StatusGatewayTimeout {
		t.Errorf("too long: %d %s", w.Code, w.Body)
	}
}
