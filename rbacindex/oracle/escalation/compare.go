// Package escalation writes generated roles and bindings through Kubernetes' own storages, which
// refuse to hand out what the writer does not hold, makes audit events of the requests, and holds
// what package replay says of these checks against the storages' answers.
package escalation

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/rbacindex/oracle/compare"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/implied"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// Judge is what replays an event. A test replaces it by something wrong to see that it is found.
type Judge func(eng *replay.Engine, e *event.Event, s *state.State) *verdict.Verdict

// Retrial returns the product's own.
func Retrial(eng *replay.Engine, e *event.Event, s *state.State) *verdict.Verdict {
	return eng.Replay(e, s)
}

// Figures count what was compared.
type Figures struct {
	Policies, Writes uint64
	Refused, Absent  uint64 // by the real storages; roles that do not exist
	ByVerb, Covered  uint64 // passed by escalate or bind; by holding the rules
	Unchecked        uint64 // let through because the check leaves them out
	Exempt           uint64 // of system:masters
	Open             uint64 // not told, because of what is in doubt
}

func (f *Figures) add(o *Figures) {
	f.Policies += o.Policies
	f.Writes += o.Writes
	f.Refused += o.Refused
	f.Absent += o.Absent
	f.ByVerb += o.ByVerb
	f.Covered += o.Covered
	f.Unchecked += o.Unchecked
	f.Exempt += o.Exempt
	f.Open += o.Open
}

// perPolicy is how many writes are tried on one policy.
const perPolicy = 100

// Run tries n writes and returns the first disagreement as an error.
//
// With lost, answers to writes of the policy were lost: the state knows of some objects that they are
// one of several. What it says for certain has to be right all the same.
func Run(n, seed uint64, lost bool, judge Judge) (Figures, error) {
	var (
		next  atomic.Uint64
		mu    sync.Mutex
		wg    sync.WaitGroup
		total Figures
		first error
	)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			var f Figures
			var failed error
			for failed == nil {
				lot := next.Add(1) - 1
				if lot*perPolicy >= n {
					break
				}
				if failed = onPolicy(generator{rand.New(rand.NewPCG(seed, lot))}, lost, judge, &f); failed != nil {
					failed = fmt.Errorf("seed %d, policy %d: %w", seed, lot, failed)
				}
			}
			mu.Lock()
			defer mu.Unlock()
			total.add(&f)
			if first == nil && failed != nil {
				first = failed
				next.Store(1 << 60)
			}
		})
	}
	wg.Wait()
	return total, first
}

var received = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func onPolicy(g generator, lost bool, judge Judge, f *Figures) error {
	writes, objects := g.policy()
	p := compare.NewPolicy(writes...)
	real := compare.NewReal(p)
	known, events := objects, []*event.Event(nil)
	if lost {
		known, events = g.doubts(objects)
	}
	s, err := stateOf(known, events)
	if err != nil {
		return fmt.Errorf("load the policy: %w", err)
	}
	h := &config.History{}
	h.Add(time.Time{}, &config.APIServer{Digest: "36", Minor: 36,
		Authorization: config.Authorization{Authorizers: []config.Authorizer{{Type: config.RBAC, Name: "rbac"}}}})
	eng := replay.New(replay.Config{Apiserver: func(string, string) *config.History { return h }})
	f.Policies++
	for range perPolicy {
		w := g.write(objects)
		f.Writes++
		refusal := real.Write(w.user, w.groups, w.old, w.next)
		e := w.event(refusal)
		if why := differs(judge(eng, e, s), &w, refusal, lost, f); why != "" {
			return fmt.Errorf("%s by %s %v: real %v: %s\n%s", w.verb, w.user, w.groups, refusal, why, event.AppendJSON(nil, e))
		}
	}
	return nil
}

// event returns what the apiserver would have recorded.
func (w *write) event(refusal error) *event.Event {
	k := put(w.next).Key
	uri := uriOf(k)
	if w.old != nil {
		uri += "/" + k.Name
	}
	e := &event.Event{Level: event.LevelRequestResponse, AuditID: "a", Stage: event.StageResponseComplete, RequestURI: uri, Verb: w.verb,
		User: event.User{Username: w.user, Groups: w.groups}, ObjectRef: &event.ObjectRef{Name: k.Name}, RequestObject: w.body,
		RequestReceivedTimestamp: received, StageTimestamp: received.Add(time.Millisecond),
		Annotations: event.Pairs{{Key: event.AnnotationDecision, Value: "allow"}, {Key: event.AnnotationReason,
			Value: `RBAC: allowed by ClusterRoleBinding "writers" of ClusterRole "writer" to Group "system:authenticated"`}},
		ResponseStatus: &event.Status{Code: 200}}
	if w.verb == "create" {
		e.ResponseStatus.Code = 201
	}
	if refusal != nil {
		e.ResponseStatus.Code, e.ResponseStatus.Message = 500, refusal.Error()
		if status, ok := refusal.(apierrors.APIStatus); ok {
			e.ResponseStatus.Code = status.Status().Code
		}
	}
	return e
}

// uriOf returns where objects of a kind are made.
func uriOf(k rbacindex.Key) string {
	uri := "/apis/rbac.authorization.k8s.io/v1/"
	if k.Namespace != "" {
		uri += "namespaces/" + k.Namespace + "/"
	}
	return uri + strings.ToLower(k.Kind.String()) + "s"
}

// differs says how the verdict disagrees with the real storage, "" if it does not.
func differs(v *verdict.Verdict, w *write, refusal error, lost bool, f *Figures) string {
	for i, name := range v.Identity {
		if name == implied.ContradictionMismatch {
			return name + ": " + v.Evidence[i]
		}
	}
	if len(v.Implied) == 0 {
		switch {
		case refusal != nil:
			return "ours implies nothing"
		case v.Authorizer == verdict.AuthorizerMasters:
			f.Exempt++
		case w.unchecked:
			f.Unchecked++
		default:
			return "ours implies nothing"
		}
		return ""
	}
	c := &v.Implied[0]
	if len(v.Implied) > 1 || c.Check != verdict.CheckRoleEscalate && c.Check != verdict.CheckRoleBind {
		return fmt.Sprintf("ours implies %+v", v.Implied)
	}
	switch {
	case lost && c.Replayed == verdict.DecisionNone && len(c.Missing) > 0:
		f.Open++
	case refusal != nil:
		if c.Replayed != verdict.DecisionForbid || c.Recorded != verdict.DecisionForbid {
			return fmt.Sprintf("refused, ours replayed %s, recorded %s: %+v", c.Replayed, c.Recorded, *c)
		}
		if f.Refused++; apierrors.IsNotFound(refusal) {
			f.Absent++
		}
	case c.Replayed == verdict.DecisionAllow && c.Covered && len(c.Grants) == 0:
		f.Covered++
	case c.Replayed == verdict.DecisionAllow:
		f.ByVerb++
	case w.unchecked && c.Perhaps != "" && c.Replayed == verdict.DecisionForbid:
		f.Unchecked++
	default:
		return fmt.Sprintf("let through, ours %s: %+v", c.Replayed, *c)
	}
	return ""
}

// stateOf returns objects as the replica holds them that has heard of writes since.
func stateOf(objects []any, since []*event.Event) (*state.State, error) {
	var items []any
	for i, o := range objects {
		var m map[string]any
		if err := json.Unmarshal(encode(o), &m); err != nil {
			return nil, err
		}
		k, err := rbacindex.KeyOf(o)
		if err != nil {
			return nil, err
		}
		meta := m["metadata"].(map[string]any)
		meta["uid"], meta["resourceVersion"], meta["creationTimestamp"] = fmt.Sprint("u", i), fmt.Sprint(i+1), "2020-01-01T00:00:00Z"
		m["apiVersion"], m["kind"] = "rbac.authorization.k8s.io/v1", k.Kind.String()
		items = append(items, m)
	}
	snap, _, err := observe.ReadSnapshot(strings.NewReader(string(encode(map[string]any{"apiVersion": "v1", "kind": "List",
		"items": items}))))
	if err != nil {
		return nil, err
	}
	snap.Kinds = kept.Resources()
	snap.Began = time.Date(2020, 1, 1, 0, 0, 0, 0, time.UTC)
	snap.Ended = snap.Began
	s := state.New("c")
	if _, err := s.LoadSnapshot(snap); err != nil {
		return nil, err
	}
	for _, e := range since {
		obs, err := observe.FromEvent(e)
		if err != nil {
			return nil, err
		}
		s.Apply(obs...)
	}
	return s, nil
}
