package impersonation

import (
	"encoding/json"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apiserver/pkg/authentication/serviceaccount"

	"github.com/retrial-io/retrial/ingest/event"
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
	Policies, Requests uint64
	Permitted, Refused uint64 // by the constrained filter
	Malformed          uint64 // pieces without a user name
	Legacy             uint64 // permitted by the legacy filter
	Modes              uint64 // single modes compared
	ModesPermitted     uint64
	Indistinguishable  uint64 // single modes that refuse pieces which the event cannot tell from the apiserver's
	Comparisons        uint64
}

func (f *Figures) add(o *Figures) {
	f.Policies += o.Policies
	f.Requests += o.Requests
	f.Permitted += o.Permitted
	f.Refused += o.Refused
	f.Malformed += o.Malformed
	f.Legacy += o.Legacy
	f.Modes += o.Modes
	f.ModesPermitted += o.ModesPermitted
	f.Indistinguishable += o.Indistinguishable
	f.Comparisons += o.Comparisons
}

// perPolicy is how many requests are made on one policy.
const perPolicy = 60

// Run makes n requests and returns the first disagreement as an error.
func Run(n, seed uint64, judge Judge) (Figures, error) {
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
				failed = onPolicy(newGenerator(seed, lot), judge, &f)
				if failed != nil {
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

// engine judges as for an apiserver of a minor version with RBAC alone.
func engine(minor int) *replay.Engine {
	h := &config.History{}
	h.Add(time.Time{}, &config.APIServer{Digest: fmt.Sprint(minor), Minor: minor,
		Authorization: config.Authorization{Authorizers: []config.Authorizer{{Type: config.RBAC, Name: "rbac"}}}})
	return replay.New(replay.Config{Apiserver: func(string, string) *config.History { return h }})
}

// stateOf returns the policy as the replica holds it.
func stateOf(p *compare.Policy) (*state.State, error) {
	var items []any
	for i, o := range p.Objects() {
		raw, err := json.Marshal(o)
		if err != nil {
			return nil, err
		}
		var m map[string]any
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, err
		}
		meta := m["metadata"].(map[string]any)
		meta["uid"], meta["resourceVersion"], meta["creationTimestamp"] = fmt.Sprint("u", i), fmt.Sprint(i+1), "2020-01-01T00:00:00Z"
		k, err := keyKind(o)
		if err != nil {
			return nil, err
		}
		m["apiVersion"], m["kind"] = "rbac.authorization.k8s.io/v1", k
		items = append(items, m)
	}
	raw, err := json.Marshal(map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	if err != nil {
		return nil, err
	}
	snap, _, err := observe.ReadSnapshot(strings.NewReader(string(raw)))
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
	return s, nil
}

// onPolicy makes a policy and compares requests on it.
func onPolicy(g *generator, judge Judge, f *Figures) error {
	p := compare.NewPolicy(g.policy()...)
	s, err := stateOf(p)
	if err != nil {
		return fmt.Errorf("load the policy: %w", err)
	}
	f.Policies++
	chain := authorizers(p)
	constrained, legacy := newServer(chain, chain, true), newServer(chain, chain, false)
	single := make([]*server, len(Modes))
	for i, m := range Modes {
		single[i] = newServer(chain, only(chain, m), true)
	}
	current, before := engine(36), engine(35)
	for range perPolicy {
		a := g.ask()
		f.Requests++
		e, err := constrained.serve(&a)
		if err != nil {
			return err
		}
		f.Comparisons += 2
		if why := recorded(judge(current, e, s), e, f); why != "" {
			return disagreement(&a, e, why)
		}
		was := f.Permitted
		old, err := legacy.serve(&a)
		if err != nil {
			return err
		}
		var g Figures
		if why := recorded(judge(before, old, s), old, &g); why != "" {
			return disagreement(&a, old, "legacy filter: "+why)
		}
		f.Legacy += g.Permitted
		f.Permitted = was
		if a.as.name == "" {
			continue
		}
		for i, mode := range Modes {
			got, err := single[i].serve(&a)
			if err != nil {
				return err
			}
			f.Modes++
			f.Comparisons++
			if why := inMode(judge, current, s, got, &a, mode, f); why != "" {
				return disagreement(&a, got, "mode "+mode+" alone: "+why)
			}
		}
	}
	return nil
}

func disagreement(a *ask, e *event.Event, why string) error {
	raw := event.AppendJSON(nil, e)
	return fmt.Errorf("%s %s by %+v as %+v: %s\n%s", a.method, a.path, a.by, a.as, why, raw)
}

// recorded compares a verdict with the event the real filter left.
func recorded(v *verdict.Verdict, e *event.Event, f *Figures) string {
	for i, name := range v.Identity {
		if name == implied.ContradictionMismatch || name == implied.ContradictionUnauthorized || name == "impersonation-mode-mismatch" {
			return name + ": " + v.Evidence[i]
		}
	}
	c := v.Impersonation
	switch {
	case e.ImpersonatedUser != nil:
		f.Permitted++
		if c == nil || c.Replayed != verdict.DecisionAllow || c.Recorded != verdict.DecisionAllow {
			return fmt.Sprintf("permitted, ours %+v", c)
		}
		if v.Outcome != verdict.OutcomeMatch {
			return fmt.Sprintf("%s %s: %s", v.Outcome, v.Class, v.Cause)
		}
	case e.Code() == 400:
		f.Malformed++
		if v.Class != verdict.ClassImpersonationBad || c == nil || c.Replayed != verdict.DecisionForbid {
			return fmt.Sprintf("malformed, ours %s %+v", v.Class, c)
		}
	case e.Code() == 403 && len(e.Annotations) == 0:
		f.Refused++
		if v.Class != verdict.ClassImpersonationDenied || c == nil || c.Replayed != verdict.DecisionForbid ||
			c.Recorded != verdict.DecisionForbid {
			return fmt.Sprintf("refused, ours %s %+v", v.Class, c)
		}
		if mode := strings.TrimPrefix(c.Mode, "impersonate:"); c.Mode != "legacy" && !slices.Contains(Modes, mode) {
			return "refused by an unknown mode: " + c.Mode
		}
	default:
		if c != nil {
			return fmt.Sprintf("nobody is impersonated, ours %+v", c)
		}
		if v.Outcome != verdict.OutcomeMatch {
			return fmt.Sprintf("%s %s: %s", v.Outcome, v.Class, v.Cause)
		}
	}
	return ""
}

// inMode compares one mode by itself. Where the real filter refuses, an event is made up that
// says it permitted: the replica has to see that it cannot have.
func inMode(judge Judge, eng *replay.Engine, s *state.State, e *event.Event, a *ask, mode string, f *Figures) string {
	if e.ImpersonatedUser != nil {
		f.ModesPermitted++
		constraint := ""
		if e.AuthenticationMetadata != nil {
			constraint = e.AuthenticationMetadata.ImpersonationConstraint
		}
		if constraint != strings.TrimSuffix("impersonate:"+mode, ":") && !(mode == "" && constraint == "") {
			return "permitted as " + constraint
		}
		if u := acting(&a.as, mode); !slices.Equal(u.Groups, e.ImpersonatedUser.Groups) || u.Username != e.ImpersonatedUser.Username ||
			u.UID != e.ImpersonatedUser.UID {
			return fmt.Sprintf("becomes %+v, supposed %+v", e.ImpersonatedUser, u)
		}
		if c := judge(eng, e, s).Impersonation; c == nil || c.Replayed != verdict.DecisionAllow {
			return fmt.Sprintf("permitted, ours %+v", c)
		}
		return ""
	}
	forged := *e
	forged.ResponseStatus = &event.Status{Code: 200}
	forged.Annotations = event.Pairs{{Key: event.AnnotationDecision, Value: "allow"}}
	forged.ImpersonatedUser = acting(&a.as, mode)
	if mode != "" {
		forged.AuthenticationMetadata = &event.AuthenticationMetadata{ImpersonationConstraint: "impersonate:" + mode}
	}
	c := judge(eng, &forged, s).Impersonation
	if c == nil || c.Replayed == verdict.DecisionNone {
		return fmt.Sprintf("refused, ours %+v", c)
	}
	if c.Replayed == verdict.DecisionAllow {
		if hidden(&a.as) {
			f.Indistinguishable++
			return ""
		}
		return fmt.Sprintf("refused, ours allows %+v", forged.ImpersonatedUser)
	}
	return ""
}

// acting returns the user a request becomes in a mode.
func acting(p *person, mode string) *event.User {
	u := &event.User{Username: p.name, UID: p.uid, Groups: slices.Clone(p.groups)}
	for _, key := range sortedKeys(p.extra) {
		u.Extra = append(u.Extra, event.ExtraEntry{Key: strings.ToLower(key), Values: p.extra[key]})
	}
	namespace, _, err := serviceaccount.SplitUsername(p.name)
	switch {
	case err == nil && len(p.groups) == 0:
		u.Groups = serviceaccount.MakeGroupNames(namespace)
	case strings.HasSuffix(mode, "-node") && strings.HasPrefix(p.name, "system:node:"):
		u.Groups = []string{"system:nodes"}
	}
	add := "system:authenticated"
	if p.name == "system:anonymous" {
		add = "system:unauthenticated"
	}
	if !slices.Contains(u.Groups, add) && (add == "system:unauthenticated" || !slices.Contains(u.Groups, "system:unauthenticated")) {
		u.Groups = append(u.Groups, add)
	}
	return u
}

// hidden reports whether groups were asked for that look like those the apiserver adds, or as many
// as make it try all at once.
func hidden(p *person) bool {
	add := "system:authenticated"
	if p.name == "system:anonymous" {
		add = "system:unauthenticated"
	}
	if n := len(p.groups); n > 0 && p.groups[n-1] == add || n == 3 {
		return true
	}
	namespace, _, err := serviceaccount.SplitUsername(p.name)
	return err == nil && len(p.groups) >= 2 && slices.Equal(p.groups[:2], serviceaccount.MakeGroupNames(namespace)) ||
		strings.HasPrefix(p.name, "system:node:") && len(p.groups) > 0
}

func sortedKeys(m map[string][]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
