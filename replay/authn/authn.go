package authn

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/config"
)

// Config is the evaluator's configuration. The zero value works.
type Config struct {
	// Minor is the Kubernetes minor version (32 for 1.32) of apiservers whose configuration
	// does not say it. 0 means current.
	Minor int
	// Lag is how much later than a write was answered an apiserver may still go by what was
	// before; 0 means 100 ms, negative none.
	Lag time.Duration
}

// Evaluator judges recorded identities. It is safe for concurrent use.
type Evaluator struct {
	cfg       Config
	sets      sets
	compiled  sync.Map // *config.APIServer → *compiled
	unknown   *compiled
	inquiries sync.Pool // *inquiry
}

// inquiry is what authenticators are asked with. It is used again: they are called through an
// interface, which it would otherwise be allocated for.
type inquiry struct {
	x subject
	f facts
}

// inquire begins to ask about an event.
func (ev *Evaluator) inquire(e *event.Event, cfg *config.APIServer) *inquiry {
	q, ok := ev.inquiries.Get().(*inquiry)
	if !ok {
		q = new(inquiry)
	}
	q.x, q.f = subjectOf(e, cfg, ev.cfg.Minor, ev.cfg.Lag), facts{}
	return q
}

// release lets go of what was asked about.
func (ev *Evaluator) release(q *inquiry) {
	*q = inquiry{}
	ev.inquiries.Put(q)
}

// New returns an evaluator.
func New(cfg Config) *Evaluator {
	cfg.Lag = lagOf(cfg.Lag)
	return &Evaluator{cfg: cfg, unknown: compile(nil)}
}

// Result is what is known of an identity.
type Result struct {
	// Explained names the authenticators that can have produced it, in the order in which
	// the apiserver asks them. When one produces just this identity, those that take
	// identities from elsewhere and could have produced any (a front proxy, a webhook) are
	// not listed; Answers has them. Of an aggregated server's events a front proxy is. It is empty if none can, when nobody was
	// authenticated, and when no configuration is known and the event alone tells nothing.
	// It is shared and must not be modified.
	Explained []string
	// Contradictions are what contradicts the identity, in a fixed order, nil if there are none.
	Contradictions []Contradiction
	// Credential is "JTI=<id>", "X509SHA256=<fingerprint>" or, of a legacy token,
	// "Secret=<namespace>/<name>"; "" if the event does not tell.
	Credential string
}

// Answer is what one authenticator says of an identity.
type Answer struct {
	Authenticator string `json:"authenticator"` // one of the By constants
	// Possible says that it can have produced the identity; Certain, that it produces just
	// this one.
	Possible bool `json:"possible"`
	Certain  bool `json:"certain"`
	// Why says why it cannot, or begins with "not-evaluable:" and says what would tell; empty
	// when it is certain.
	Why string `json:"why,omitempty"`
}

// Evaluate judges the authenticated user of an event (never the impersonated one). cfg is the
// apiserver's configuration of that time, nil if it is not known: then only what no
// configuration could explain is found. s may be nil. The event is only read.
func (ev *Evaluator) Evaluate(e *event.Event, cfg *config.APIServer, s State) Result {
	q := ev.inquire(e, cfg)
	defer ev.release(q)
	x, f, c := &q.x, &q.f, ev.of(cfg)
	f.contradictions = x.shape(nil)
	if x.kind == kindNobody {
		return Result{Contradictions: x.refused(f.contradictions, c)}
	}
	if s != nil {
		f.gather(x, s)
	}
	certain, possible := x.union(c, f)
	f.contradictions = x.configured(f.contradictions, c, certain, possible)
	for i := range f.contradictions {
		f.contradictions[i].Evidence = ClipEvidence(f.contradictions[i].Evidence)
	}
	r := Result{Contradictions: f.contradictions, Credential: x.credential()}
	switch {
	case certain != 0:
		r.Explained = ev.sets.names(certain)
	case cfg != nil:
		r.Explained = ev.sets.names(possible)
	}
	return r
}

// Answers asks every authenticator on its own, in order, for a person who wants to know.
func (ev *Evaluator) Answers(e *event.Event, cfg *config.APIServer, s State) []Answer {
	q := ev.inquire(e, cfg)
	defer ev.release(q)
	x, f, c := &q.x, &q.f, ev.of(cfg)
	if x.kind == kindNobody {
		return nil
	}
	if s != nil {
		f.gather(x, s)
	}
	out := make([]Answer, 0, ranks)
	for a := range ranks {
		answer, why := x.ask(a, c, f)
		out = append(out, Answer{Authenticator: union[a].name, Possible: answer != no, Certain: answer == yes, Why: why})
	}
	return out
}

// of returns a configuration as it is worked with.
func (ev *Evaluator) of(cfg *config.APIServer) *compiled {
	if cfg == nil {
		return ev.unknown
	}
	if c, ok := ev.compiled.Load(cfg); ok {
		return c.(*compiled)
	}
	c, _ := ev.compiled.LoadOrStore(cfg, compile(cfg))
	return c.(*compiled)
}

// union asks the authenticators: those that produce just this identity, and all that can have.
// The second are asked only when there are none of the first.
func (x *subject) union(c *compiled, f *facts) (certain, possible set) {
	own := x.own()
	for a := range ranks {
		if own.has(a) {
			if answer, _ := x.ask(a, c, f); answer == yes {
				certain |= 1 << a
			}
		}
	}
	if certain != 0 {
		if x.proxied {
			if answer, _ := x.ask(requestHeader, c, f); answer != no {
				certain |= 1 << requestHeader
			}
		}
		return certain, certain
	}
	for a := range ranks {
		switch answer, _ := x.ask(a, c, f); answer {
		case yes:
			certain |= 1 << a
			possible |= 1 << a
		case open:
			possible |= 1 << a
		}
	}
	return certain, possible
}

// own returns the authenticators that can be certain of an identity of this kind.
func (x *subject) own() set {
	switch {
	case x.kind == kindLoopback:
		return 1 << loopback
	case x.kind == kindAnonymous:
		return 1 << anonymous
	case x.fingerprint:
		return 1 << x509
	case x.jti || x.legacy:
		return 1<<legacyToken | 1<<boundToken
	case x.kind == kindSystem && x.u.Username == UserUnsecured:
		return 1<<insecure | 1<<tokenFile
	case x.kind == kindBootstrap:
		return 1<<bootstrap | 1<<tokenFile | 1<<basicAuth
	}
	return 1<<tokenFile | 1<<basicAuth | 1<<boundToken
}

// configured compares the identity with the configuration.
func (x *subject) configured(out []Contradiction, c *compiled, certain, possible set) []Contradiction {
	if c.cfg == nil {
		return out
	}
	a := &c.cfg.Authentication
	if x.kind == kindAnonymous && a.Unknown == "" && a.Anonymous.Unknown == "" && !x.proxied {
		switch {
		case !a.Anonymous.Enabled:
			return append(out, Contradiction{ContradictionAnonymousDisabled, "anonymous requests are switched off"})
		case !c.takesAnonymous(x.e.RequestURI):
			return append(out, Contradiction{ContradictionAnonymousPath,
				fmt.Sprintf("anonymous requests are let in for %q alone; the path is %q", a.Anonymous.Paths, decodedPath(x.e.RequestURI))})
		}
	}
	if a.AnyToken && possible.has(anyToken) && certain == 0 {
		out = append(out, Contradiction{ContradictionAnyToken, fmt.Sprintf("user %q is what the client says", x.u.Username)})
	}
	if certain != 0 {
		return out
	}
	// A front proxy can claim any identity. It is not an excuse for one that is somebody's own.
	other := possible &^ (1 << requestHeader)
	if c.tokens != nil && x.plain() && other == 0 && x.kind != kindAnonymous && x.kind != kindLoopback {
		out = x.static(out, c, possible)
	}
	if x.jti && other == 0 && len(c.issuers) > 0 && x.kind != kindAccount {
		out = x.foreignToken(out, c)
	}
	if possible == 0 && c.complete {
		out = append(out, Contradiction{ContradictionUnattributed, fmt.Sprintf("user %q with uid %q, groups %q and credential id %q: "+
			"every configured authenticator is ruled out", x.u.Username, x.u.UID, x.u.Groups, x.credentials)})
	}
	return out
}

// static says how a user differs from the rows of the token file.
func (x *subject) static(out []Contradiction, c *compiled, possible set) []Contradiction {
	file := c.cfg.Authentication.TokenFile.File
	rows, ok := c.tokens[x.u.Username]
	if !ok {
		if possible != 0 || x.kind != kindUser {
			return out
		}
		return append(out, Contradiction{ContradictionStaticRow, fmt.Sprintf("%s has no user %q", file, x.u.Username)})
	}
	for i := range rows {
		if rows[i].uid == x.u.UID {
			return append(out, Contradiction{ContradictionStaticGroups, fmt.Sprintf("groups %q; %s gives %q the groups %q", x.u.Groups,
				file, x.u.Username, rows[i].groups)})
		}
	}
	return append(out, Contradiction{
		ContradictionStaticUID, fmt.Sprintf("uid %q; %s gives %q the uid %q", x.u.UID, file, x.u.Username, rows[0].uid)})
}

// foreignToken says why no issuer can have made a token's user.
func (x *subject) foreignToken(out []Contradiction, c *compiled) []Contradiction {
	for i := range c.issuers {
		if r, rule := c.issuers[i].produces(x); r == refusedRule {
			return append(out, Contradiction{
				ContradictionOIDCRule, fmt.Sprintf("user %q; issuer %s: %s", x.u.Username, c.issuers[i].jwt.Issuer, rule)})
		}
	}
	return append(out, Contradiction{ContradictionOIDCPrefix, fmt.Sprintf("user %q with groups %q came by %s and fits the claim mappings "+
		"of no configured issuer", x.u.Username, x.u.Groups, x.credentials[0])})
}

// maxEvidence bounds a line of evidence in bytes: it quotes what clients chose.
const maxEvidence = 1000

// ClipEvidence bounds a line of evidence.
func ClipEvidence(s string) string {
	if len(s) <= maxEvidence {
		return s
	}
	return strings.ToValidUTF8(s[:maxEvidence], "") + "…"
}
