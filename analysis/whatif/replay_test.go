package whatif

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/apiserver/pkg/authorization/authorizer"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/linearscan"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// newest is later than anything recorded.
var newest = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// judged is a request of the recording.
type judged struct {
	e *event.Event
	v *verdict.Verdict
}

// recording is the bundled recording, judged by a configuration.
type recording struct {
	requests []judged
	state    *state.State
	others   []observe.Observation // of objects that are not RBAC's
	world    *world
	asked    []asked
	first    time.Time
}

// hook is a chain with a webhook behind RBAC.
func hook() *config.APIServer {
	return &config.APIServer{Minor: 36, Authorization: config.Authorization{Authorizers: []config.Authorizer{{Type: config.Node},
		{Type: config.RBAC}, {Type: config.Webhook, Name: "guard", Webhook: &config.WebhookOptions{FailurePolicy: "NoOpinion"}}}}}
}

func rbac(resource string) bool { return kept.ResourceOf(resource).RBACKind() != 0 }

// read judges the recording by an engine.
func read(t testing.TB, engine *replay.Engine) *recording {
	t.Helper()
	r := &recording{state: state.New("evaluate"), world: &world{map[rbacindex.Key]any{}, map[rbacindex.Key]map[string]string{}}}
	versions := map[rbacindex.Key]uint64{}
	_, err := evaluate.Run(context.Background(), evaluate.Options{
		Engine: engine, State: r.state,
		States: []evaluate.Input{{Name: sample.StateName, Open: sample.OpenState}},
		Events: []evaluate.Input{{Name: sample.AuditLogName, Open: sample.OpenAuditLog}},
		Policy: func(list []observe.Observation, _ bool) {
			for _, o := range list {
				if !rbac(o.Resource) {
					o.Object = slices.Clone(o.Object)
					r.others = append(r.others, o)
					continue
				}
				version, _ := strconv.ParseUint(o.ResourceVersion, 10, 64)
				k := rbacindex.Key{Kind: kept.ResourceOf(o.Resource).RBACKind(), Namespace: o.Namespace, Name: o.Name}
				var meta struct {
					Metadata metav1.ObjectMeta `json:"metadata"`
				}
				if version >= versions[k] && json.Unmarshal(o.Object, &meta) == nil {
					versions[k], r.world.labels[k] = version, meta.Metadata.Labels
				}
			}
		},
		Sink: func(e *event.Event, v *verdict.Verdict) error {
			copied, err := event.Decode(event.AppendJSON(nil, e))
			if err != nil {
				return err
			}
			r.requests = append(r.requests, judged{copied, v})
			if r.first.IsZero() || e.RequestReceivedTimestamp.Before(r.first) {
				r.first = e.RequestReceivedTimestamp
			}
			if u, a := e.EffectiveUser(), &v.Attributes; u.Username != "" && v.Outcome == verdict.OutcomeMatch {
				resource := a.Resource
				if a.Subresource != "" {
					resource += "/" + a.Subresource
				}
				r.asked = append(r.asked, asked{u.Username, a.Verb, a.APIGroup, resource, a.Namespace, a.Name, a.Path,
					slices.Clone(u.Groups), v.Recorded == verdict.DecisionForbid})
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	view := r.state.RBAC(newest)
	if !view.Certain() {
		t.Fatalf("the recording's newest policy is not certain: %v %v %v", view.Unknown, view.UnknownKinds, view.Doubted)
	}
	view.RBAC.All(func(k rbacindex.Key, o any) bool {
		r.world.objects[k] = o
		return true
	})
	return r
}

// frozen returns a state in which a policy was in force all the time, and all other objects are as recorded.
func (r *recording) frozen(t testing.TB, w *world, unknown []rbacindex.Key) *state.State {
	t.Helper()
	before := r.first.Add(-time.Hour)
	snap := observe.Snapshot{Began: before, Ended: before}
	for _, kind := range kinds {
		snap.Kinds = append(snap.Kinds, resourceOf(kind))
	}
	for i, k := range slices.SortedFunc(maps.Keys(w.objects), rbacindex.Key.Compare) {
		raw, err := json.Marshal(w.objects[k])
		if err != nil {
			t.Fatal(err)
		}
		snap.Objects = append(snap.Objects, observe.Observation{Source: observe.SourceSnapshot, Resource: resourceOf(k.Kind),
			Namespace: k.Namespace, Name: k.Name, UID: fmt.Sprint("u", i), ResourceVersion: "1", Object: raw,
			NotBefore: before, NotAfter: before})
	}
	for _, k := range unknown {
		snap.Objects = append(snap.Objects, observe.Observation{Source: observe.SourceSnapshot, Resource: resourceOf(k.Kind),
			Namespace: k.Namespace, Name: k.Name, UID: "unknown", ResourceVersion: "1", Unknown: true, NotBefore: before, NotAfter: before})
	}
	st := state.New("evaluate")
	if _, err := st.LoadSnapshot(snap); err != nil {
		t.Fatal(err)
	}
	st.Apply(r.others...)
	return st
}

func resourceOf(kind rbacindex.Kind) string {
	return strings.ToLower(kind.String()) + "s." + rbacv1.GroupName
}

// outcome is what one policy makes of a question.
type outcome uint8

const (
	refuses outcome = iota
	allows
	open // what is not known decides
	free // the webhook decides
)

// trials are the answers of one policy to the recording, by full replay of each event.
type trials struct {
	main   []outcome
	scan   *linearscan.Scan
	world  *world
	behind outcome // what a refusal by RBAC comes to
}

func (r *recording) try(t testing.TB, engine *replay.Engine, w *world, unknown []rbacindex.Key, behind outcome) *trials {
	t.Helper()
	st := r.frozen(t, w, unknown)
	out := &trials{main: make([]outcome, len(r.requests)), world: w, behind: behind}
	for i, x := range r.requests {
		v := engine.DecideAt(x.e, st, x.e.RequestReceivedTimestamp)
		switch {
		case v.Replayed == verdict.DecisionAllow:
			out.main[i] = allows
		case slices.ContainsFunc(v.Chain, func(s verdict.ChainStep) bool {
			return s.Authorizer == "guard" && s.Answer == verdict.AnswerUnknown
		}):
			out.main[i] = free
		case v.Replayed == verdict.DecisionNone:
			out.main[i] = open
		}
	}
	var objects []any
	for _, o := range w.objects {
		objects = append(objects, o)
	}
	var err error
	if out.scan, err = linearscan.New(objects); err != nil {
		t.Fatal(err)
	}
	return out
}

// check answers a check behind a request by going through all bindings.
func (x *trials) check(t testing.TB, u *event.User, c *verdict.Implied) outcome {
	t.Helper()
	if slices.Contains(u.Groups, "system:masters") {
		return allows
	}
	ask := func(name string) bool {
		a := &c.Attributes
		ok, err := x.scan.Allows(authorizer.AttributesRecord{User: &user.DefaultInfo{Name: u.Username, Groups: u.Groups}, Verb: a.Verb,
			Namespace: a.Namespace, APIGroup: a.APIGroup, Resource: a.Resource, Subresource: a.Subresource, Name: name,
			ResourceRequest: a.ResourceRequest, Path: a.Path})
		if err != nil {
			t.Fatal(err)
		}
		return ok
	}
	if ask(c.Attributes.Name) {
		return allows
	}
	if domain, _, ok := strings.Cut(c.Attributes.Name, "/"); ok && c.Attributes.Resource == "signers" && ask(domain+"/*") {
		return allows
	}
	wanted := c.Wanted
	if c.Check == verdict.CheckRoleBind {
		role, found := x.world.objects[roleOf(&c.Attributes)]
		if !found {
			return x.behind
		}
		wanted, _ = rbacindex.RulesOf(role)
	}
	if c.Check == verdict.CheckRoleBind || c.Check == verdict.CheckRoleEscalate {
		coverage := rbacindex.Covers(x.held(u, c.Attributes.Namespace), wanted, 1, rbacindex.NewSteps(rbacindex.CoverSteps))
		if coverage.Covered() {
			return allows
		}
	}
	return x.behind
}

// held returns the rules a user holds in a namespace.
func (x *trials) held(u *event.User, namespace string) (out []rbacv1.PolicyRule) {
	for k, o := range x.world.objects {
		subjects, ref, ok := rbacindex.BindingOf(o)
		if !ok || k.Namespace != "" && k.Namespace != namespace {
			continue
		}
		for _, s := range subjects {
			in := s.Namespace
			if in == "" {
				in = k.Namespace
			}
			if s.Kind == "User" && s.Name == u.Username || s.Kind == "Group" && slices.Contains(u.Groups, s.Name) ||
				s.Kind == "ServiceAccount" && u.Username == "system:serviceaccount:"+in+":"+s.Name {
				rules, _ := rbacindex.RulesOf(x.world.objects[rbacindex.RoleKey(&ref, k.Namespace)])
				out = append(out, rules...)
				break
			}
		}
	}
	return out
}

// tally counts requests by access and class.
type tally map[string]map[Class]int64

func (y tally) add(u *event.User, check string, a *verdict.Attributes, class Class, n int64) {
	if class == Unchanged {
		return
	}
	groups := slices.Compact(slices.Sorted(slices.Values(u.Groups)))
	k := fmt.Sprint(u.Username, groups, check, " ", a.Verb, " ", a.APIGroup, "/", a.Resource, "/", a.Subresource, " ",
		a.Namespace, "/", a.Name, a.Path)
	if y[k] == nil {
		y[k] = map[Class]int64{}
	}
	y[k][class] += n
}

// replayed classifies every event of the recording.
func (r *recording) replayed(t testing.TB, before, after *trials) tally {
	t.Helper()
	out := tally{}
	class := func(was, is outcome, allowed bool) Class {
		switch {
		case was == is:
			return Unchanged
		case was == free: // the record shows what the webhook answered
			if allowed {
				return Unchanged
			}
			return Gained
		case is == free:
			return Unknown
		case was == allows && is == refuses:
			return Revoked
		case was == refuses && is == allows:
			return Gained
		case was == allows || is == refuses:
			return MaybeRevoked
		}
		return MaybeGained
	}
	for i, x := range r.requests {
		if x.v.Outcome != verdict.OutcomeMatch && x.v.Outcome != verdict.OutcomeAmbiguous {
			continue
		}
		u := x.e.EffectiveUser()
		out.add(u, "", &x.v.Attributes, class(before.main[i], after.main[i], x.v.Recorded == verdict.DecisionAllow), 1)
		done := x.e.Code() == 0 || x.e.Code() < 300
		for j := range x.v.Implied {
			c := &x.v.Implied[j]
			by := u
			if c.ByRequestor() {
				by = &x.e.User
			}
			if c.Attributes.Verb == "" || c.Replayed == verdict.DecisionNone && c.Recorded == verdict.DecisionNone ||
				!c.ByRequestor() && !done && c.Recorded != verdict.DecisionForbid && c.Check != verdict.CheckWebsocket {
				continue
			}
			decided := c.Recorded
			if decided == verdict.DecisionNone {
				decided = c.Replayed
			}
			got := class(before.check(t, by, c), after.check(t, by, c), decided == verdict.DecisionAllow)
			if c.Perhaps != "" {
				got = map[Class]Class{Revoked: MaybeRevoked, Gained: MaybeGained, Unchanged: Unchanged, MaybeRevoked: MaybeRevoked,
					MaybeGained: MaybeGained, Unknown: Unknown}[got]
			}
			out.add(by, c.Check, &c.Attributes, got, 1)
		}
	}
	return out
}

// reported is what a comparison says of the recording.
func (r *recording) reported(t testing.TB, sim *Simulation, chain *authz.Chain) (tally, *Report) {
	t.Helper()
	c := New(sim, Options{Chain: chain, Graph: r.state})
	for _, x := range r.requests {
		at := x.e.RequestReceivedTimestamp
		c.Observe(x.e, x.v, Count{Requests: 1, First: at, Last: at, AuditIDs: []string{x.e.AuditID}})
	}
	report, out := c.Report(), tally{}
	for i := range report.Accesses {
		a := &report.Accesses[i]
		out.add(&event.User{Username: a.Subject, Groups: a.Groups}, a.Check, attributesOf(a), a.Class, a.Count)
	}
	return out, report
}

// attributesOf returns what an access of a report asked for.
func attributesOf(a *Access) *verdict.Attributes {
	return &verdict.Attributes{Verb: a.Verb, ResourceRequest: a.Path == "", APIGroup: a.APIGroup, Resource: a.Resource,
		Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name, Path: a.Path}
}

// seeds returns how many drafts are compared: WHATIF_N, else few.
func seeds(t testing.TB, few int) int {
	t.Helper()
	text := os.Getenv("WHATIF_N")
	if text == "" {
		return few
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("WHATIF_N is %q: want a number of drafts", text)
	}
	return n
}

// TestReplay: what a comparison says is what replaying every event by the drafted policy says, draft by draft.
func TestReplay(t *testing.T) {
	unknown := rbacindex.Key{Kind: rbacindex.KindClusterRoleBinding, Name: "of-unknown-content"}
	classes, accesses, doubtful := map[Class]int64{}, int64(0), int64(0)
	var mutex sync.Mutex
	for _, ground := range []struct {
		name    string
		cfg     *config.APIServer
		unknown []rbacindex.Key
		share   int // of the drafts, of ten
		behind  outcome
	}{
		{"the recording", nil, nil, 8, refuses},
		{"with a binding of unknown content", nil, []rbacindex.Key{unknown}, 1, open},
		{"with a webhook behind RBAC", hook(), nil, 1, free},
	} {
		t.Run(ground.name, func(t *testing.T) {
			var options replay.Config
			var chain *authz.Chain
			if ground.cfg != nil {
				history := &config.History{}
				history.Add(time.Time{}, ground.cfg)
				options.Apiserver = func(string, string) *config.History { return history }
				chain = authz.New(ground.cfg)
			}
			engine := replay.New(options)
			r := read(t, engine)
			view := r.frozen(t, r.world, ground.unknown).RBAC(newest)
			before := r.try(t, engine, r.world, ground.unknown, ground.behind)
			n := max(2, seeds(t, 10)*ground.share/10)
			for seed := range n {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					t.Parallel()
					draft := newDrafts(uint64(seed), r.world, r.asked).draft()
					sim, err := Simulate(view, draft, func(k rbacindex.Key) (map[string]string, bool) { return r.world.labels[k], true })
					if err != nil {
						t.Fatal(err)
					}
					drafted := r.world.apply(draft)
					sameWorld(t, sim, drafted)
					want := r.replayed(t, before, r.try(t, engine, drafted, ground.unknown, ground.behind))
					got, report := r.reported(t, sim, chain)
					same(t, draft, got, want)
					mutex.Lock()
					defer mutex.Unlock()
					for _, class := range Classes() {
						count := *report.Summary.Of(class)
						classes[class] += count
						if ground.cfg == nil && ground.unknown == nil {
							accesses += count
							if class == MaybeGained || class == MaybeRevoked || class == Unknown {
								doubtful += count
							}
						}
					}
				})
			}
		})
	}
	t.Logf("accesses by class over all drafts: %v; %d of %d MAYBE or UNKNOWN on the recording's own policy", classes, doubtful, accesses)
	if doubtful*100 > accesses {
		t.Errorf("%d of %d accesses are MAYBE or UNKNOWN, more than 1 %%", doubtful, accesses)
	}
	for _, class := range Classes() {
		if classes[class] == 0 {
			t.Errorf("no access is %s", class)
		}
	}
}

// same compares two tallies.
func same(t *testing.T, draft []Object, got, want tally) {
	t.Helper()
	failed := 0
	for k := range want {
		if !maps.Equal(got[k], want[k]) {
			failed++
			t.Errorf("%s: %v, want %v", k, got[k], want[k])
		}
	}
	for k := range got {
		if want[k] == nil {
			failed++
			t.Errorf("%s: %v, want none", k, got[k])
		}
	}
	if failed > 0 {
		for _, o := range draft {
			raw, _ := json.Marshal(o.Object)
			t.Logf("%s %v %s", o.Key, o.Labels, raw)
		}
	}
}

// sameWorld holds a simulated policy to one made without it.
func sameWorld(t *testing.T, sim *Simulation, want *world) {
	t.Helper()
	n := 0
	sim.After.RBAC.All(func(k rbacindex.Key, o any) bool {
		n++
		if !sameMeaning(o, want.objects[k]) {
			t.Errorf("%s is %+v, want %+v", k, o, want.objects[k])
		}
		rules, _ := rbacindex.RulesOf(o)
		wanted, _ := rbacindex.RulesOf(want.objects[k])
		if !slices.EqualFunc(rules, wanted, rbacindex.SameRule) {
			t.Errorf("rules of %s are %+v, want %+v", k, rules, wanted)
		}
		return true
	})
	if n != len(want.objects) {
		t.Errorf("%d objects, want %d", n, len(want.objects))
	}
}
