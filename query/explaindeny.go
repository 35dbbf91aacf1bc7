package query

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// MostDenials bounds the requests of an audit ID one answer explains: each looks through all roles and bindings, and clients may reuse an
// ID any number of times.
const MostDenials = 20

// What refused a request, as Denial.By says it. The set is closed.
const (
	ByAuthentication = "authentication" // nobody was found behind the request
	ByImpersonation  = "impersonation"  // the requestor may not act as the user it named
	ByAuthorizers    = "authorizers"    // none of the chain allows it
	ByCheck          = "check"          // one behind the authorization filter
	ByAdmission      = "admission"      // a plugin
	ByOther          = "other"          // it was refused, and nothing known says by whom
	ByNobody         = "nobody"         // it was not refused
)

// ExplainDenyAnswer says why each request of an audit ID was refused.
type ExplainDenyAnswer struct {
	Requests []Denial `json:"requests"` // 20 at most
	// Truncated says that the ID has more requests than one answer explains.
	Truncated bool `json:"truncated,omitempty"`
}

// Denial is one request: who refused it, and what would have allowed it.
type Denial struct {
	Cluster    string    `json:"cluster"`
	Request    string    `json:"request,omitempty"` // identity of the request
	APIServer  string    `json:"apiserver,omitempty"`
	AuditID    string    `json:"auditID"`
	Verb       string    `json:"verb"`
	RequestURI string    `json:"requestURI"`
	User       string    `json:"user"`               // who made it
	Groups     []string  `json:"groups"`             // those it was authorized with
	ActingAs   string    `json:"actingAs,omitempty"` // the user it impersonated
	Received   time.Time `json:"received"`
	Code       int32     `json:"code"`              // of the response
	Message    string    `json:"message,omitempty"` // of the response

	Recorded string `json:"recorded"` // decision of the apiserver
	Outcome  string `json:"outcome"`
	Verdict  string `json:"verdict"` // the outcome; the name will be removed in the next release
	Class    string `json:"class"`
	// By is what refused it, a closed set; Text says it in one line.
	By   string `json:"by"`
	Text string `json:"text"` // By in one line
	// At is the moment whose policy and configuration the rest is about: the request's own,
	// unless another was asked for. Replayed is the replica's decision then.
	At       time.Time `json:"at"`
	Replayed string    `json:"replayed"`
	// Chain has the authorizers in their order, each with what it would have needed; empty when nobody was authenticated.
	Chain []Shortfall `json:"chain"`
	// Checks are the checks that refused it: behind the authorization filter, or of impersonation.
	Checks []DeniedCheck `json:"checks"`
	// Missing is what is not known and could change the answer.
	Missing []string `json:"missing"`
	// Plugin is the admission plugin that refused it.
	Plugin string `json:"plugin,omitempty"`
	// PluginName is the policy, webhook or quota of the plugin that refused it, where the response names it.
	PluginName string `json:"pluginName,omitempty"`
	// Identity says what contradicts the identity, or what a failed authentication shows.
	Identity []string `json:"identity"`
}

// Shortfall is one authorizer of the chain.
type Shortfall struct {
	Authorizer string       `json:"authorizer"`
	Answer     string       `json:"answer"`            // allow, no opinion, unknown, not asked, skipped, failed, deny
	Text       string       `json:"text"`              // what it lacked
	Almost     []string     `json:"almost,omitempty"`  // lines of an ABAC policy file that differ in one thing
	Nearest    *NearestMiss `json:"nearest,omitempty"` // of RBAC
}

// DeniedCheck is a check that was refused.
type DeniedCheck struct {
	Check    string `json:"check"` // its name, as in docs/implied.md
	Asked    string `json:"asked"` // the request it is about, in words
	User     string `json:"user"`  // who was asked about
	Replayed string `json:"replayed"`
	// Missing is what is not held, or not known.
	Missing []string     `json:"missing"`
	Nearest *NearestMiss `json:"nearest,omitempty"` // what would have let it pass
}

// explainer explains refusals by what is known of a cluster.
type explainer struct {
	engine *replay.Engine
	state  *state.State // nil: nothing is known
	at     time.Time    // zero: the time of each request
}

// explain says why a request was refused. v is its stored verdict; nil: it is judged here.
func (x *explainer) explain(cluster string, e *event.Event, v *verdict.Verdict) Denial {
	if v == nil {
		v = x.engine.Replay(e, x.state)
	}
	at := x.at
	if at.IsZero() {
		at = e.RequestReceivedTimestamp
	}
	user := e.EffectiveUser()
	out := Denial{
		Cluster: cluster, APIServer: e.Server, AuditID: e.AuditID, Verb: e.Verb, RequestURI: e.RequestURI,
		User: e.User.Username, Groups: slices.Concat([]string{}, user.Groups), Received: e.RequestReceivedTimestamp,
		Code: e.Code(), Message: StatusMessage(e), Recorded: v.Recorded.String(), Outcome: v.Outcome.String(), Verdict: v.Outcome.String(),
		Class: v.Class, At: at.UTC(), Chain: []Shortfall{}, Checks: []DeniedCheck{}, Missing: []string{}, Identity: []string{},
	}
	if e.ImpersonatedUser != nil {
		out.ActingAs = e.ImpersonatedUser.Username
	}
	for i, name := range v.Identity {
		if i < len(v.Evidence) && v.Evidence[i] != "" {
			name += ": " + v.Evidence[i]
		}
		out.Identity = append(out.Identity, name)
	}
	d := x.engine.ExplainDeny(e, x.state, at, mostNearest)
	out.Replayed, out.Missing = d.Verdict.Replayed.String(), append(out.Missing, d.Verdict.Missing...)
	for i := range d.Chain {
		s := &d.Chain[i]
		one := Shortfall{Authorizer: s.Authorizer, Answer: s.Answer, Text: s.Text, Almost: s.Almost}
		if s.RBAC != nil {
			one.Nearest = nearestOf(*s.RBAC)
		}
		out.Chain = append(out.Chain, one)
	}
	x.blame(&out, e, v, d.Verdict)
	return out
}

// blame says who refused a request: the record decides that, the replica says what it lacked.
// then is the replica's decision at the moment that was asked for.
func (x *explainer) blame(out *Denial, e *event.Event, v, then *verdict.Verdict) {
	im := v.Impersonation
	switch code := e.Code(); {
	case code == codeUnauthorized && e.User.Username == "":
		out.By, out.Text = ByAuthentication, unauthenticated(e)
		out.Chain = []Shortfall{}
	case im != nil && im.Recorded == verdict.DecisionForbid:
		out.By, out.Text = ByImpersonation, e.User.Username+" may not act as the user it named"
		if im.Cause != "" {
			out.Text += ": " + im.Cause
		}
		x.checks(out, e, v, then)
		out.Chain = []Shortfall{} // the request itself was never authorized
	case v.Recorded == verdict.DecisionForbid:
		out.By, out.Text = ByAuthorizers, "no authorizer allowed it"
		if v.RecordedReason != "" {
			out.Text += "; the apiserver gives as the reason: " + v.RecordedReason
		}
		switch {
		case v.Outcome == verdict.OutcomeIndeterminate:
			out.Text += ". The replica cannot say why: not everything is known"
		case v.Outcome == verdict.OutcomeAmbiguous:
			out.Text += ". The policy was changing at that moment: " + v.Cause
		case v.Outcome == verdict.OutcomeDrift && v.Replayed == verdict.DecisionAllow:
			out.Text += ". By the policy as it is known it is allowed: this is drift"
		case v.Replayed == verdict.DecisionAllow:
			out.Text += ". All others allow it: a webhook refused it"
		}
	case code == codeForbidden && x.checks(out, e, v, then) > 0:
		out.By, out.Text = ByCheck, "the authorizers allowed it; a check behind them refused it"
	case v.Admission.Recorded == verdict.AdmissionRejected:
		out.By, out.Text = ByAdmission, "the authorizers allowed it; an admission plugin refused it"
		if a := v.Admission.Refusal(); a != nil {
			out.Plugin, out.PluginName = a.Plugin, a.Name
			out.Text = "the authorizers allowed it; the admission plugin " + strings.TrimSpace(a.Plugin+" "+a.Name) + " refused it"
		}
	case code == codeForbidden:
		out.By, out.Text = ByOther, "the authorizers allowed it, and it was refused behind them: the message says why"
	case v.Recorded == verdict.DecisionNone && v.Replayed == verdict.DecisionForbid:
		out.By, out.Text = ByOther, "no decision is recorded; by the policy no authorizer allows it"
	default:
		out.By, out.Text = ByNobody, "it was not refused"
		if then.Authorizer != "" && then.Replayed == verdict.DecisionAllow {
			out.Text += "; " + then.Authorizer + " allows it"
		}
	}
}

// unauthenticated says what the response to a request without a user shows.
func unauthenticated(e *event.Event) string {
	reason, attempted, _ := authn.Refusal(e)
	switch reason {
	case authn.RefusedCredentials:
		return "nobody was authenticated: credentials were sent and refused: " + strings.Join(attempted, ", ")
	case authn.RefusedNoCredentials:
		return "nobody was authenticated: no credentials were sent, and anonymous requests are not allowed"
	}
	return "nobody was authenticated; the apiserver's answer does not tell which credentials were sent, or why they were refused"
}

// checks adds the checks that the response shows as refused, and returns how many.
func (x *explainer) checks(out *Denial, e *event.Event, v, then *verdict.Verdict) int {
	for i := range v.Implied {
		c := &v.Implied[i]
		if c.Recorded != verdict.DecisionForbid {
			continue
		}
		u := e.EffectiveUser()
		if c.ByRequestor() {
			u = &e.User
		}
		a, answer := &c.Attributes, c
		for j := range then.Implied { // its answer at the moment that was asked for
			if other := &then.Implied[j]; other.Check == c.Check && other.Attributes == *a {
				answer = other
			}
		}
		one := DeniedCheck{Check: c.Check, User: u.Username, Replayed: answer.Replayed.String(),
			Missing: slices.Concat([]string{}, answer.Missing)}
		if a.Verb != "" {
			asked := AccessRequest{Verb: a.Verb, Group: a.APIGroup, Resource: a.Resource, Subresource: a.Subresource,
				Namespace: a.Namespace, Name: a.Name, Path: a.Path}
			one.Asked = asked.Text()
		}
		if x.state != nil && a.Verb != "" && answer.Replayed != verdict.DecisionAllow {
			one.Nearest = nearestOf(x.state.RBAC(out.At).RBAC.NearestMiss(&rbacindex.Attributes{
				User: u.Username, Groups: u.Groups, Verb: a.Verb, Namespace: a.Namespace, APIGroup: a.APIGroup, Resource: a.Resource,
				Subresource: a.Subresource, Name: a.Name, ResourceRequest: a.ResourceRequest, Path: a.Path,
			}, mostNearest))
		}
		out.Checks = append(out.Checks, one)
	}
	return len(out.Checks)
}

// ExplainDenyRequest asks why the requests of an audit ID were refused.
type ExplainDenyRequest struct {
	Asks[ExplainDenyAnswer] `question:"explain-deny"`
	AuditID                 string    `json:"auditID" required:"true" help:"audit ID of the requests"`
	Cluster                 string    `json:"cluster" help:"look in this cluster only: audit IDs are chosen by clients and may be reused" flag:"look in this cluster only: audit IDs are chosen by clients and may be reused; with --events its name (default \"evaluate\")"`
	At                      time.Time `json:"at" help:"by the policy of this time (RFC 3339), instead of the request's own" flag:"by the policy of this time, instead of the request's own"`
}

// ExplainDeny answers why requests were refused.
func (a *Service) ExplainDeny(ctx context.Context, q ExplainDenyRequest) (out ExplainDenyAnswer, err error) {
	rows, truncated, err := a.refusals(ctx, q.Cluster, q.AuditID)
	if err != nil {
		return out, err
	}
	out = ExplainDenyAnswer{Requests: []Denial{}, Truncated: truncated}
	engine := a.engine()
	states := map[string]*state.State{}
	since := q.At // or when the first of them came
	for i := range rows {
		if at := rows[i].Event.RequestReceivedTimestamp; since.IsZero() || at.Before(since) {
			since = at
		}
	}
	for i := range rows {
		r := &rows[i]
		if _, ok := states[r.Cluster]; !ok {
			if states[r.Cluster], err = a.stateOf(ctx, r.Cluster, since); err != nil {
				return out, err
			}
		}
		x := explainer{engine: engine, state: states[r.Cluster], at: q.At}
		one := x.explain(r.Cluster, r.Event, r.Verdict)
		one.Request = r.Request.String()
		out.Requests = append(out.Requests, one)
	}
	return out, nil
}

// refusals reads the requests of an audit ID: of each the last stage, with its verdict.
func (a *Service) refusals(ctx context.Context, cluster, id string) (rows []verdict.Row, truncated bool, err error) {
	size := 0
	err = a.Store.VisitWhy(ctx, cluster, id, func(row verdict.Row) error {
		n := len(rows)
		if n > 0 && rows[n-1].Request == row.Request && rows[n-1].Cluster == row.Cluster {
			if row.Verdict == nil {
				row.Verdict = rows[n-1].Verdict
			}
			rows[n-1] = row
			return nil
		}
		if size += row.Size; n == MostDenials || n > 0 && size > WhyBytes {
			truncated = true
			return ErrEnough
		}
		rows = append(rows, row)
		return nil
	})
	if errors.Is(err, ErrEnough) {
		err = nil
	}
	return rows, truncated, err
}

// Codes of responses by which a request was refused.
const (
	codeUnauthorized = 401
	codeForbidden    = 403
)

// StatusMessage returns the message of an event's response status, "" without one.
func StatusMessage(e *event.Event) string {
	if e.ResponseStatus == nil {
		return ""
	}
	return e.ResponseStatus.Message
}
