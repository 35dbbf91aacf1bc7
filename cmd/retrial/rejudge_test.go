package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
	"github.com/retrial-io/retrial/verdict"
)

// fakeRejudging remembers what it was asked.
type fakeRejudging struct {
	asked []verdict.Rejudge
	jobs  []verdict.RejudgeJob
	busy  bool
}

func (f *fakeRejudging) Rejudge(_ context.Context, want verdict.Rejudge) (verdict.RejudgeJob, error) {
	if f.busy {
		return verdict.RejudgeJob{}, fmt.Errorf("%w (job 1)", verdict.ErrRejudging)
	}
	f.asked = append(f.asked, want)
	want.ID, want.Partitions = "1", []int32{0}
	return verdict.RejudgeJob{Rejudge: want}, nil
}

func (f *fakeRejudging) Rejudges(context.Context) ([]verdict.RejudgeJob, error) { return f.jobs, nil }

func TestRejudgeAPI(t *testing.T) {
	since := time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC)
	where := func(list ...string) string {
		text, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		return url.QueryEscape(string(text))
	}
	for _, tc := range []struct {
		name, door, query string
		busy              bool
		code              int
		text              string // part of the answer
		want              *verdict.Rejudge
	}{
		{name: "everything of a cluster", door: "socket", query: "cluster=c&from=2026-05-06T00:00:00Z", code: 200, text: `"done":false`,
			want: &verdict.Rejudge{Cluster: "c", From: since}},
		{name: "a selection", door: "direct", query: "cluster=c&from=2026-05-06T00:00:00Z&to=2026-05-07T00:00:00Z&dryRun=true&where=" +
			where("outcome=match", "outcome=drift", "subject=a=b,c", "outcome=drift"), code: 200,
			text: `"where":["outcome=drift","outcome=match","subject=a=b,c"]`,
			want: &verdict.Rejudge{Cluster: "c", From: since, To: since.AddDate(0, 0, 1), DryRun: true, Users: []string{"a=b,c"},
				Only: verdict.Selection{Outcomes: []string{"drift", "match"}}}},
		{name: "a selection by the names of before", door: "direct",
			query: "cluster=c&from=2026-05-06T00:00:00Z&where=" + where("verdict=match", "user=ann"), code: 200,
			text: `"where":["outcome=match","subject=ann"]`,
			want: &verdict.Rejudge{Cluster: "c", From: since, Users: []string{"ann"},
				Only: verdict.Selection{Outcomes: []string{"match"}}}},
		{name: "from the page", door: "page", query: "cluster=c&from=2026-05-06T00:00:00Z", code: 403, text: "on the server's machine"},
		{name: "no begin", door: "socket", query: "cluster=c", code: 400, text: "from is missing"},
		{name: "no cluster", door: "socket", query: "from=2026-05-06T00:00:00Z", code: 400, text: "cluster is missing"},
		{name: "an unknown key", door: "socket", query: "cluster=c&from=2026-05-06T00:00:00Z&where=" + where("name=x"), code: 400,
			text: "want subject=, verb="},
		{name: "an unknown outcome", door: "socket", query: "cluster=c&from=2026-05-06T00:00:00Z&where=" + where("outcome=x"), code: 400,
			text: "want one of not_judged"},
		{name: "an unknown class", door: "socket", query: "cluster=c&from=2026-05-06T00:00:00Z&where=" + where("class=x"), code: 400,
			text: "invalid where class=x"},
		{name: "an unknown parameter", door: "socket", query: "cluster=c&from=2026-05-06T00:00:00Z&x=1", code: 400, text: "x"},
		{name: "an empty range", door: "socket", query: "cluster=c&from=2026-05-06T00:00:00Z&to=2026-05-06T00:00:00Z", code: 400,
			text: "is not before"},
		{name: "another job is under way", door: "socket", query: "cluster=c&from=2026-05-06T00:00:00Z", busy: true, code: 400,
			text: "judged again already"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := &fakeRejudging{busy: tc.busy}
			h := apiHandler(nil, nil, nil, zap.NewNop(), time.Minute, withRejudging(f))
			r := httptest.NewRequest(http.MethodPost, "/api/v1/rejudge?"+tc.query, nil)
			if tc.door != "page" {
				r = r.WithContext(context.WithValue(r.Context(), api.CallerKey{}, api.Caller{Door: tc.door}))
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != tc.code || !strings.Contains(w.Body.String(), tc.text) {
				t.Fatalf("%d %s; want %d with %q", w.Code, w.Body, tc.code, tc.text)
			}
			if tc.want == nil && len(f.asked) > 0 || tc.want != nil && !reflect.DeepEqual(f.asked, []verdict.Rejudge{*tc.want}) {
				t.Errorf("asked %+v, want %+v", f.asked, tc.want)
			}
		})
	}
}

// TestRejudgeReport prints a job that is done and one that is under way.
func TestRejudgeReport(t *testing.T) {
	at := time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC)
	f := &fakeRejudging{jobs: []verdict.RejudgeJob{{
		Rejudge: verdict.Rejudge{ID: "1", Cluster: "c", From: at, To: at.Add(time.Hour), Asked: at, Partitions: []int32{0, 1}},
		Progress: []verdict.RejudgeProgress{{Partition: 0, Version: 1, Done: true, Interrupted: 1,
			Report: verdict.RejudgeReport{Visited: 7, Changed: 2, Transitions: []verdict.Transition{{
				From: verdict.Judgement{Outcome: "indeterminate", Verdict: "indeterminate", Class: verdict.ClassNoState},
				To:   verdict.Judgement{Outcome: "match", Verdict: "match"}, Count: 2,
				Examples: []verdict.RejudgeExample{{AuditID: "id\x1b[31m", At: at, Subject: "u", User: "u", Verb: "get", URI: "/api"}}}}}}},
	}}}
	h := apiHandler(nil, nil, nil, zap.NewNop(), time.Minute, withRejudging(f))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/rejudge?cluster=c&id=1", nil))
	var answer struct{ Jobs []query.RejudgeJob }
	if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || len(answer.Jobs) != 1 || answer.Jobs[0].Share != 0.5 {
		t.Fatalf("%v, %s", err, w.Body)
	}
	out, _ := printed(printRejudges, answer.Jobs)
	for _, want := range []string{"DONE", "50 %", "7 judged again, 2 changed", "interrupted 1 times", "indeterminate/no-state",
		"get /api by u"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing in\n%s", want, out)
		}
	}
	if strings.ContainsRune(out, 0x1b) {
		t.Error("control bytes reach the terminal")
	}
}
