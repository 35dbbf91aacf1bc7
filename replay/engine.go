// Package replay gives a recorded request its second trial: Engine.Replay takes an Event
// and the State of its cluster and returns a Verdict, the decision the replica reaches,
// every grant behind it, and how that compares with what the apiserver recorded.
//
// The package is pure: no I/O, no clock. The engine decides blind: authorization
// annotations and the response status are read only after the replica's own decision
// stands, to compare with it.
package replay

import (
	"cmp"
	"strconv"
	"sync"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/admission"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/implied"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// DefaultLag is the apiserver's cache lag assumed when Config.Lag is zero: how much later
// than a write was answered an authorizer may still decide by what was before. Measured
// lags are milliseconds.
const DefaultLag = 100 * time.Millisecond

// Config is the replica's configuration. The zero value works.
type Config struct {
	// Lag widens an event's window to the past, see DefaultLag. Negative means none.
	Lag time.Duration
	// Version names the replica's code in every verdict; empty means "dev".
	Version string
	// KubernetesMinor is the minor version (32 for 1.32) of apiservers whose configuration is
	// not known. 0 means what their logs show, and the current one where they do not.
	KubernetesMinor int
	// Apiserver returns what is known of an apiserver's configuration over time, nil for
	// nothing: then the chain is taken to be node, rbac, and what depends on the
	// authenticators stays open. server is the event's Server: the apiserver of the cluster
	// that sent it, often "". May be nil itself. It is called once an event and must be cheap
	// and safe for concurrent use.
	Apiserver func(cluster, server string) *config.History
}

// Engine replays events. It is immutable and safe for concurrent use.
type Engine struct {
	cfg     Config
	config  string    // Config, as verdicts carry it
	options string    // the part of it that no apiserver's configuration changes
	trials  sync.Pool // *trial
	authn   *authn.Evaluator
	chains  chains // of the configurations seen
	grants  *grantMemory
}

// buffers are what one replay works with and nothing of it outlives.
type buffers struct {
	grants, other []rbacindex.Grant
	reason        []byte
	ends          []int
	releases      []int
}

// New returns an engine.
func New(cfg Config) *Engine {
	switch {
	case cfg.Lag == 0:
		cfg.Lag = DefaultLag
	case cfg.Lag < 0:
		cfg.Lag = 0
	}
	cfg.Version = cmp.Or(cfg.Version, "dev")
	options := ";lag=" + cfg.Lag.String()
	if cfg.KubernetesMinor > 0 {
		options += ";kubernetes=1." + strconv.Itoa(cfg.KubernetesMinor)
	}
	return &Engine{
		cfg: cfg, config: "authorizers=" + verdict.AuthorizerNode + "," + verdict.AuthorizerRBAC + options, options: options,
		authn: newAuthn(cfg, cfg.KubernetesMinor), grants: newGrantMemory(),
		trials: sync.Pool{New: func() any {
			return &trial{bufs: buffers{
				grants: make([]rbacindex.Grant, 0, 16), other: make([]rbacindex.Grant, 0, 16), reason: make([]byte, 0, 256),
			}}
		}},
	}
}

// Version returns the version of the replica's code.
func (eng *Engine) Version() string { return eng.cfg.Version }

// ConfigVersion returns the configuration as verdicts carry it: equal strings decide alike.
func (eng *Engine) ConfigVersion() string { return eng.config }

// Aggregated reports whether an apiserver of a cluster is known to be an aggregated one, by
// the name its events carry.
func (eng *Engine) Aggregated(cluster, server string) bool {
	if eng.cfg.Apiserver == nil || server == "" {
		return false
	}
	aggregated := false
	eng.cfg.Apiserver(cluster, server).Visit(func(_ time.Time, cfg *config.APIServer) {
		aggregated = aggregated || cfg != nil && cfg.Source != ""
	})
	return aggregated
}

// Judged reports whether a verdict may be reached on this stage of a request. The stages
// of one request are one verdict; the first stage seen for which Judged holds carries it.
// RequestReceived is recorded before authorization and is never judged.
func Judged(e *event.Event) bool { return e.Stage != event.StageRequestReceived }

// Replay gives the event its second trial against the state of its cluster. s may be nil:
// then only what needs no policy can be decided. The event is only read; the verdict shares
// strings with it.
//
// The replica's decision and grants are those at requestReceivedTimestamp and depend on
// user, verb, requestURI and state alone. What the event records of the decision is read
// afterwards.
//
// Of a request from before the state's horizon nothing is known: see Kept.
func (eng *Engine) Replay(e *event.Event, s *state.State) *verdict.Verdict {
	return eng.ReplayWithin(nil, e, s)
}

// ReplayWithin is Replay within what is left of an allowance, nil for none: an event that would
// take more is indeterminate, of class ClassCostly, or lacks the answers of checks behind it.
func (eng *Engine) ReplayWithin(a *Allowance, e *event.Event, s *state.State) *verdict.Verdict {
	of, kept := asOf(s, e.RequestReceivedTimestamp)
	v := eng.replay(a, e, of, kept)
	if _, still := asOf(s, e.RequestReceivedTimestamp); still != kept {
		of, kept = asOf(s, e.RequestReceivedTimestamp) // it was forgotten meanwhile
		v = eng.replay(a, e, of, kept)
	}
	return v
}

// replay is ReplayWithin; kept reports whether the state reaches back to the request.
func (eng *Engine) replay(a *Allowance, e *event.Event, s *state.State, kept bool) *verdict.Verdict {
	v := &verdict.Verdict{}
	t := eng.begin(e, s, v)
	t.steps = a.event()
	given := t.steps.Left()
	defer func() {
		a.spend(given, t.steps.Left())
		t.end()
	}()
	t.base = t.momentAt(e.RequestReceivedTimestamp)
	decided := t.decide()
	t.impersonation()
	if decided {
		t.impliedChecks()
	}
	t.identity()
	t.binds()

	// From here on the record may be read.
	rec := readRecord(e)
	v.Recorded, v.RecordedReason = rec.decision, rec.reason
	t.compare(&rec, decided)
	t.impersonationContradictions()
	t.refusedImpersonation(&rec)
	if decided {
		t.impliedRecord(&rec)
		t.review()
	}
	t.admission(&rec)
	if !kept {
		t.forgotten()
	}
	return v
}

// trial is one replay under way.
type trial struct {
	eng  *Engine
	e    *event.Event
	s    *state.State
	v    *verdict.Verdict
	bufs buffers
	// admitted is what admission is asked about; here, so that asking allocates nothing.
	admitted admission.Request

	uriErr error
	base   moment
	// history is the apiserver's configuration over time, nil if not known; in the one when
	// the request came, and cfg what it says, nil if it was not given.
	history *config.History
	in      *configured
	cfg     *config.APIServer
	view    state.View   // what base points to
	ans     authz.Answer // at base; its grants live in bufs.grants
	// checks are those behind the authorization filter, answered in the verdict's Implied;
	// policy is what they are derived with.
	checks []implied.Check
	policy policyAt
	steps  rbacindex.Steps // left of eventSteps
	listed int             // grants of all lists, see eventGrants
}

// begin sets out to judge an event against a state into an empty verdict; [trial.end] is due.
func (eng *Engine) begin(e *event.Event, s *state.State, v *verdict.Verdict) *trial {
	t := eng.trials.Get().(*trial)
	t.eng, t.e, t.s, t.v = eng, e, s, v
	t.steps = (*Allowance)(nil).event()
	v.Engine = eng.cfg.Version
	if s != nil {
		v.Revision = s.Revision() // before the policy is taken: a change in between must count as a later one
	}
	t.attributes()
	return t
}

// end lets the trial rest, which keeps no event alive.
func (t *trial) end() {
	eng := t.eng
	*t = trial{bufs: t.bufs}
	eng.trials.Put(t)
}

// attributes rebuilds the request and notes where the event contradicts itself.
func (t *trial) attributes() {
	t.v.Attributes, t.uriErr = request.Of(t.e.Verb, t.e.RequestURI)
	if t.uriErr != nil {
		t.v.Attributes = verdict.Attributes{Verb: t.e.Verb}
		return
	}
	if t.v.Attributes.Verb != t.e.Verb {
		t.v.AddContradiction(authn.ContradictionVerb,
			"recorded "+strconv.Quote(t.e.Verb)+", by the URI "+strconv.Quote(t.v.Attributes.Verb))
	}
	if objectRefContradicts(t.e.ObjectRef, &t.v.Attributes) {
		t.v.AddContradiction(authn.ContradictionObjectRef, objectRefEvidence(t.e.ObjectRef))
	}
}

// decide reaches the replica's decision. false means that there was nobody or nothing to
// decide about.
func (t *trial) decide() bool {
	u := t.e.EffectiveUser()
	if t.uriErr != nil || u.Username == "" {
		return false
	}
	t.ans = t.base.chain.Authorize(u, &t.v.Attributes, &t.base.Moment, t.bufs.grants)
	t.bufs.grants = keep(t.bufs.grants, t.ans.RBAC.Grants)
	t.v.Replayed, t.v.Authorizer = t.ans.Decision, t.ans.Authorizer
	if t.ans.Decision == verdict.DecisionForbid {
		t.v.Errors = t.ans.RBAC.Errors()
	}
	if t.v.Chain = t.ans.Steps(); t.ans.Decision == verdict.DecisionNone {
		t.v.Missing = t.ans.Missing()
	}
	if t.ans.ByRBAC() {
		t.v.Grants = t.words(t.ans.RBAC.Grants)
	}
	return true
}

// keep returns the larger of a buffer and the slice Authorize returned, so that a buffer
// that had to grow stays grown.
func keep(buf, used []rbacindex.Grant) []rbacindex.Grant {
	if cap(used) > cap(buf) {
		return used[:0]
	}
	return buf
}

// detach appends plain copies of grants, as many as the bytes for their reasons suffice for and
// one at least. All reasons are cut from one string.
func (b *buffers) detach(dst []verdict.Grant, grants []rbacindex.Grant) []verdict.Grant {
	if len(grants) == 0 {
		return dst
	}
	if dst == nil {
		dst = make([]verdict.Grant, 0, len(grants))
	}
	text := b.reason[:0]
	for i := range grants {
		if text = grants[i].AppendReason(text); i > 0 && len(text) > mostWording {
			grants, text = grants[:i], text[:b.ends[i-1]]
			break
		}
		b.ends = append(b.ends, len(text))
	}
	reasons, from := string(text), 0
	for i := range grants {
		g := &grants[i]
		dst = append(dst, verdict.Grant{
			BindingKind: g.BindingKind().String(), BindingNamespace: g.BindingNamespace(), Binding: g.Binding(),
			RoleKind: g.RoleKind().String(), Role: g.Role(),
			SubjectKind: g.SubjectKind(), SubjectNamespace: g.SubjectNamespace(), Subject: g.Subject(),
			Rule: g.Rule(), Reason: reasons[from:b.ends[i]],
		})
		from = b.ends[i]
	}
	b.reason, b.ends = text[:0], b.ends[:0]
	return dst
}

// window returns the time in which the apiserver may have taken its policy from: from the
// cache lag before the request arrived to its first stage after authorization. The end of
// a watch, a log stream or a connection says nothing about when it was authorized.
func (t *trial) window() (from, to time.Time) {
	received := t.e.RequestReceivedTimestamp
	from, to = received.Add(-t.eng.cfg.Lag), t.e.StageTimestamp
	if t.base.chain.Delegated() {
		from = from.Add(-authz.DelegationCache)
	}
	if to.Before(received) || (t.e.Stage != event.StageResponseStarted && request.LongRunning(&t.v.Attributes)) {
		to = received.Add(t.eng.cfg.Lag)
	}
	return from, to
}
