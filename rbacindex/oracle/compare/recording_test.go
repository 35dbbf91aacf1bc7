package compare

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// asked is a recorded request that came to the RBAC authorizer.
type asked struct {
	a      rbacindex.Attributes
	from   time.Time // received
	to     time.Time // answered
	reason string    // recorded, of an allow that the replica agrees with
}

// recording replays a log and returns the requests RBAC decided, with the state.
func recording(t *testing.T, o evaluate.Options) ([]asked, *state.State) {
	t.Helper()
	o.Cluster, o.Engine = "recording", replay.New(replay.Config{})
	o.State = state.New(o.Cluster)
	var out []asked
	o.Sink = func(e *event.Event, v *verdict.Verdict) error {
		// Who is refused was refused by RBAC, the last to be asked.
		byRBAC := v.Authorizer == "rbac" || v.Replayed == verdict.DecisionForbid
		if v.Outcome == verdict.OutcomeNotJudged || !byRBAC {
			return nil
		}
		who, at := e.EffectiveUser(), &v.Attributes
		q := asked{from: e.RequestReceivedTimestamp, to: e.StageTimestamp, a: rbacindex.Attributes{User: strings.Clone(who.Username),
			Groups: slices.Clone(who.Groups), Verb: at.Verb, Namespace: at.Namespace, APIGroup: at.APIGroup,
			Resource: at.Resource, Subresource: at.Subresource, Name: at.Name, ResourceRequest: at.ResourceRequest, Path: at.Path}}
		if v.Outcome == verdict.OutcomeMatch && v.Replayed == verdict.DecisionAllow {
			q.reason = strings.Clone(v.RecordedReason)
		}
		out = append(out, q)
		return nil
	}
	if _, err := evaluate.Run(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	return out, o.State
}

// onView puts the real code on the objects of a snapshot.
func onView(s *rbacindex.Snapshot) *Real {
	p := NewPolicy()
	s.All(func(k rbacindex.Key, object any) bool {
		p.set(k, object)
		return true
	})
	return NewReal(p)
}

// compareRecording puts every request to both sides, on the policy as it was then and as it
// was in the end, and looks for each recorded reason among the real ones.
func compareRecording(t *testing.T, list []asked, st *state.State) (versions, unexplained int) {
	t.Helper()
	c := &checker{ours: Index()}
	end := st.RBAC(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)).RBAC
	ended := onView(end)
	slices.SortStableFunc(list, func(x, y asked) int { return x.from.Compare(y.from) })
	var now *rbacindex.Snapshot
	var real *Real
	for i := range list {
		q := &list[i]
		view := st.RBAC(q.from)
		if view.RBAC != now {
			now, real = view.RBAC, onView(view.RBAC)
			versions++
		}
		for _, at := range []struct {
			when string
			s    *rbacindex.Snapshot
			r    *Real
		}{{"then", now, real}, {"in the end", end, ended}} {
			if text := c.check(at.s, at.r, &Question{Asked: AskDecision, Request: q.a}); text != "" {
				t.Fatalf("%+v, %s: %s", q.a, at.when, text)
			}
		}
		if q.reason != "" && !explained(real, q) {
			// The policy changed while the request was on its way.
			if !slices.ContainsFunc(st.RBACWindow(q.from.Add(-time.Second), q.to.Add(time.Second)), func(v state.View) bool {
				return explained(onView(v.RBAC), q)
			}) {
				unexplained++
				t.Logf("%+v: recorded %q", q.a, q.reason)
			}
		}
	}
	return versions, unexplained
}

func explained(r *Real, q *asked) bool {
	answer := r.answer(&Question{Asked: AskDecision, Request: q.a})
	return answer.Reason == q.reason || slices.Contains(answer.Grants, strings.TrimPrefix(q.reason, allowedBy))
}

// TestRecordingAgrees puts every request of the bundled recording that RBAC decided to the
// index and to the real authorizer.
func TestRecordingAgrees(t *testing.T) {
	list, st := recording(t, evaluate.Options{
		States: []evaluate.Input{{Name: sample.StateName, Open: sample.OpenState}},
		Events: []evaluate.Input{{Name: sample.AuditLogName, Open: sample.OpenAuditLog}},
	})
	versions, unexplained := compareRecording(t, list, st)
	reasons := 0
	for i := range list {
		if list[i].reason != "" {
			reasons++
		}
	}
	t.Logf("%d requests, %d recorded reasons, %d versions of the policy", len(list), reasons, versions)
	if unexplained > 0 || len(list) < 5000 || reasons < 3000 || versions < 20 {
		t.Errorf("%d recorded reasons are not among the real ones", unexplained)
	}
}

// TestFurtherRecordingAgrees does the same with a log that is not part of the repository.
func TestFurtherRecordingAgrees(t *testing.T) {
	dir := os.Getenv("RETRIAL_CORPUS")
	if dir == "" {
		t.Skip("RETRIAL_CORPUS is not set: it names a directory with further recordings (audit.jsonl with state-start.json, " +
			"full-requestresponse.jsonl)")
	}
	file := func(name string) []evaluate.Input {
		path := filepath.Join(dir, name)
		return []evaluate.Input{{Name: name, Open: func() (io.ReadCloser, error) { return os.Open(path) }}}
	}
	for name, o := range map[string]evaluate.Options{
		"audit":                {States: file("state-start.json"), Events: file("audit.jsonl")},
		"full-requestresponse": {FromEmpty: true, Events: file("full-requestresponse.jsonl")},
	} {
		t.Run(name, func(t *testing.T) {
			list, st := recording(t, o)
			versions, unexplained := compareRecording(t, list, st)
			t.Logf("%d requests, %d versions of the policy", len(list), versions)
			if unexplained > 0 || len(list) < 1000 {
				t.Errorf("%d recorded reasons are not among the real ones", unexplained)
			}
		})
	}
}
