package replay

import (
	"slices"
	"strconv"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/verdict"
)

// newAuthn returns the evaluator of identities for a normalised configuration, and for
// apiservers of a version where theirs does not say it.
func newAuthn(cfg Config, minor int) *authn.Evaluator {
	lag := cfg.Lag
	if lag == 0 {
		lag = -1
	}
	return authn.New(authn.Config{Minor: minor, Lag: lag})
}

// Authn returns the evaluator of identities that verdicts are made with, to ask it more of an
// event than a verdict holds.
func (eng *Engine) Authn() *authn.Evaluator { return eng.authn }

// identity judges who was authenticated, by the configuration of that time and the state.
func (t *trial) identity() {
	r := t.evaluateIdentity(t.e)
	t.v.Explained, t.v.Credential = r.Explained, r.Credential
	for i := range r.Contradictions {
		t.v.AddContradiction(r.Contradictions[i].Name, r.Contradictions[i].Evidence)
	}
	t.version()
}

// version notes an apiserver's own request that shows another version than was given.
func (t *trial) version() {
	version, minor, ok := event.Sighting(t.e)
	if !ok {
		return
	}
	if _, speaks := t.asked(t.in.cfg, t.base.At); t.differs(speaks, minor) {
		t.v.AddContradiction(authz.ContradictionVersion, "the apiserver says it is "+strconv.Quote(verdict.Clip(version))+"; given is "+
			releaseName(t.given(speaks)))
	}
}

// evaluateIdentity judges the user of an event, by what the trial is held with.
func (t *trial) evaluateIdentity(e *event.Event) authn.Result {
	var s authn.State
	if t.s != nil {
		s = t.s
	}
	r := t.in.authn.Evaluate(e, t.cfg, s)
	if len(r.Contradictions) == 0 {
		return r
	}
	// Another configuration may have held: only what contradicts all of them counts.
	for _, c := range t.otherConfigurations(e.RequestReceivedTimestamp, e.RequestReceivedTimestamp) {
		other := c.authn.Evaluate(e, c.given(), s)
		if len(r.Explained) == 0 {
			r.Explained = other.Explained
		}
		r.Contradictions = slices.DeleteFunc(r.Contradictions, func(f authn.Contradiction) bool {
			return !slices.ContainsFunc(other.Contradictions, func(o authn.Contradiction) bool { return o.Name == f.Name })
		})
	}
	return r
}

// objectRefEvidence quotes an objectRef.
func objectRefEvidence(ref *event.ObjectRef) string {
	return "objectRef names " + strconv.Quote(ref.Resource+"/"+ref.Subresource+"."+ref.APIGroup) + " " +
		strconv.Quote(ref.Namespace+"/"+ref.Name)
}
