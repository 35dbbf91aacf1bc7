package main

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/verdict"
)

// explainRoutes are the questions about refusals.
func (a *api) explainRoutes() []route {
	return []route{{"explain-deny", []string{"auditID", "cluster", "at"}, costQuery, a.explainDeny}}
}

// mostDenials bounds the requests of an audit ID one answer explains: each looks through all
// roles and bindings, and clients may use an ID as often as they like.
const mostDenials = 20

// What refused a request, as denialJSON.By says it. The set is closed.
const (
	byAuthentication = "authentication" // nobody was found behind the request
	byImpersonation  = "impersonation"  // the requestor may not act as the user it named
	byAuthorizers    = "authorizers"    // none of the chain allows it
	byCheck          = "check"          // one behind the authorization filter
	byAdmission      = "admission"      // a plugin
	byOther          = "other"          // it was refused, and nothing known says by whom
	byNobody         = "nobody"         // it was not refused
)

// explainJSON says of the requests of an audit ID why each was refused.
type explainJSON struct {
	Requests []denialJSON `json:"requests"`
	// Truncated says that the ID has more requests than one answer explains.
	Truncated bool `json:"truncated,omitempty"`
}

// denialJSON is one request: who refused it, and what would have allowed it.
type denialJSON struct {
	Cluster    string    `json:"cluster"`
	Request    string    `json:"request,omitempty"` // identity of the request; not of one that is not stored
	APIServer  string    `json:"apiserver,omitempty"`
	AuditID    string    `json:"auditID"`
	Verb       string    `json:"verb"`
	RequestURI string    `json:"requestURI"`
	User       string    `json:"user"`
	Groups     []string  `json:"groups"`
	ActingAs   string    `json:"actingAs,omitempty"`
	Received   time.Time `json:"received"`
	Code       int32     `json:"code"`
	Message    string    `json:"message,omitempty"`

	Recorded string `json:"recorded"`
	Verdict  string `json:"verdict"`
	Class    string `json:"class"`
	// By is what refused it, a closed set; Text says it in one line.
	By   string `json:"by"`
	Text string `json:"text"`
	// At is the moment whose policy and configuration the rest is about: the request's own,
	// unless another was asked for. Replayed is the replica's decision then.
	At       time.Time `json:"at"`
	Replayed string    `json:"replayed"`
	// Chain are the authorizers in their order, each with what it would have needed. Empty when
	// nobody was there to be authorized.
	Chain []shortfallJSON `json:"chain"`
	// Checks are those that refused it behind the authorization filter, or of impersonation.
	Checks []deniedCheckJSON `json:"checks"`
	// Missing is what is not known and could change the answer.
	Missing []string `json:"missing"`
	// Plugin is the admission plugin that refused it.
	Plugin string `json:"plugin,omitempty"`
	// Identity is what the identity contradicts, or what a failed authentication shows.
	Identity []string `json:"identity"`
}

// shortfallJSON is one authorizer of the chain.
type shortfallJSON struct {
	Authorizer string       `json:"authorizer"`
	Answer     string       `json:"answer"`
	Text       string       `json:"text"`
	Almost     []string     `json:"almost,omitempty"`
	Nearest    *nearestJSON `json:"nearest,omitempty"` // of RBAC
}

// deniedCheckJSON is a check that was refused.
type deniedCheckJSON struct {
	Check    string `json:"check"`
	Asked    string `json:"asked"`
	User     string `json:"user"` // who was asked about
	Replayed string `json:"replayed"`
	// Missing is what is not held, or not known.
	Missing []string     `json:"missing"`
	Nearest *nearestJSON `json:"nearest,omitempty"`
}

// explainer explains refusals by what is known of a cluster.
type explainer struct {
	engine *replay.Engine
	st     *state.State // nil: nothing is known
	at     time.Time    // zero: the time of each request
}

// explain says why a request was refused. v is its stored verdict; nil: it is judged here.
func (x *explainer) explain(cluster string, e *event.Event, v *verdict.Verdict) denialJSON {
	if v == nil {
		v = x.engine.Replay(e, x.st)
	}
	at := x.at
	if at.IsZero() {
		at = e.RequestReceivedTimestamp
	}
	user := e.EffectiveUser()
	out := denialJSON{
		Cluster: cluster, APIServer: e.Server, AuditID: e.AuditID, Verb: e.Verb, RequestURI: e.RequestURI,
		User: e.User.Username, Groups: slices.Concat([]string{}, user.Groups), Received: e.RequestReceivedTimestamp,
		Code: e.Code(), Message: statusMessage(e), Recorded: v.Recorded.String(), Verdict: v.Outcome.String(), Class: v.Class,
		At: at.UTC(), Chain: []shortfallJSON{}, Checks: []deniedCheckJSON{}, Missing: []string{}, Identity: []string{},
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
	d := x.engine.ExplainDeny(e, x.st, at, mostNearest)
	out.Replayed, out.Missing = d.Verdict.Replayed.String(), append(out.Missing, d.Verdict.Missing...)
	for i := range d.Chain {
		out.Chain = append(out.Chain, shortfallOf(&d.Chain[i]))
	}
	x.blame(&out, e, v, d.Verdict)
	return out
}

func shortfallOf(s *authz.Shortfall) shortfallJSON {
	one := shortfallJSON{Authorizer: s.Authorizer, Answer: s.Answer, Text: s.Text, Almost: s.Almost}
	if s.RBAC != nil {
		one.Nearest = nearestOf(*s.RBAC)
	}
	return one
}

// blame says who refused a request: the record decides that, the replica says what it lacked.
// then is the replica's decision at the moment that was asked for.
func (x *explainer) blame(out *denialJSON, e *event.Event, v, then *verdict.Verdict) {
	im := v.Impersonation
	switch code := e.Code(); {
	case code == http.StatusUnauthorized && e.User.Username == "":
		out.By, out.Text = byAuthentication, unauthenticated(e)
		out.Chain = []shortfallJSON{}
	case im != nil && im.Recorded == verdict.DecisionForbid:
		out.By, out.Text = byImpersonation, e.User.Username+" may not act as the user it named"
		if im.Cause != "" {
			out.Text += ": " + im.Cause
		}
		x.checks(out, e, v, then)
		out.Chain = []shortfallJSON{} // the request itself was never authorized
	case v.Recorded == verdict.DecisionForbid:
		out.By, out.Text = byAuthorizers, "no authorizer allowed it"
		if v.RecordedReason != "" {
			out.Text += "; the apiserver gives as the reason: " + v.RecordedReason
		}
		switch {
		case v.Outcome == verdict.OutcomeIndeterminate:
			out.Text += ". The replica cannot say, for want of what is not known"
		case v.Outcome == verdict.OutcomeAmbiguous:
			out.Text += ". The policy was changing at that moment: " + v.Cause
		case v.Outcome == verdict.OutcomeDrift && v.Replayed == verdict.DecisionAllow:
			out.Text += ". By the policy as it is known it is allowed: this is drift"
		case v.Replayed == verdict.DecisionAllow:
			out.Text += ". All others allow it: a webhook refused it"
		}
	case code == http.StatusForbidden && x.checks(out, e, v, then) > 0:
		out.By, out.Text = byCheck, "the authorizers allowed it; a check behind them refused it"
	case v.Admission.Recorded == verdict.AdmissionRejected:
		out.By, out.Plugin = byAdmission, v.Admission.Plugin
		out.Text = "the authorizers allowed it; an admission plugin refused it"
		if out.Plugin != "" {
			out.Text = "the authorizers allowed it; the admission plugin " + out.Plugin + " refused it"
		}
	case code == http.StatusForbidden:
		out.By, out.Text = byOther, "the authorizers allowed it, and it was refused behind them: the message says why"
	case v.Recorded == verdict.DecisionNone && v.Replayed == verdict.DecisionForbid:
		out.By, out.Text = byOther, "no decision is recorded; by the policy no authorizer allows it"
	default:
		out.By, out.Text = byNobody, "it was not refused"
		if then.Authorizer != "" && then.Replayed == verdict.DecisionAllow {
			out.Text += "; " + then.Authorizer + " allows it"
		}
	}
}

// unauthenticated says what the answer to a request without a user tells.
func unauthenticated(e *event.Event) string {
	reason, attempted, _ := authn.Refusal(e)
	switch reason {
	case authn.RefusedCredentials:
		return "nobody was authenticated: credentials were sent and refused: " + strings.Join(attempted, ", ")
	case authn.RefusedNoCredentials:
		return "nobody was authenticated: no credentials were sent, and requests without any are not let in"
	}
	return "nobody was authenticated; the apiserver's answer does not tell which credentials were sent, or why they were refused"
}

// checks adds those that the response shows refused, and returns how many.
func (x *explainer) checks(out *denialJSON, e *event.Event, v, then *verdict.Verdict) int {
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
		one := deniedCheckJSON{Check: c.Check, User: u.Username, Replayed: answer.Replayed.String(), Missing: slices.Concat([]string{}, answer.Missing)}
		if a.Verb != "" {
			asked := questionJSON{Verb: a.Verb, Group: a.APIGroup, Resource: a.Resource, Subresource: a.Subresource, Namespace: a.Namespace, Name: a.Name, Path: a.Path}
			one.Asked = asked.text()
		}
		if x.st != nil && a.Verb != "" && answer.Replayed != verdict.DecisionAllow {
			one.Nearest = nearestOf(x.st.RBAC(out.At).RBAC.NearestMiss(&rbacindex.Attributes{
				User: u.Username, Groups: u.Groups, Verb: a.Verb, Namespace: a.Namespace, APIGroup: a.APIGroup, Resource: a.Resource,
				Subresource: a.Subresource, Name: a.Name, ResourceRequest: a.ResourceRequest, Path: a.Path,
			}, mostNearest))
		}
		out.Checks = append(out.Checks, one)
	}
	return len(out.Checks)
}

// explainDeny answers for the stored requests of an audit ID.
func (a *api) explainDeny(ctx context.Context, q url.Values) (any, error) {
	id := q.Get("auditID")
	if id == "" {
		return nil, bad("auditID is missing")
	}
	at, err := instant(q, "at")
	if err != nil {
		return nil, err
	}
	rows, truncated, err := a.refusals(ctx, q.Get("cluster"), id)
	if err != nil {
		return nil, err
	}
	out := explainJSON{Requests: []denialJSON{}, Truncated: truncated}
	engine := replay.New(replay.Config{Version: a.version, Apiserver: a.apiserver})
	states := map[string]*state.State{}
	for i := range rows {
		r := &rows[i]
		if _, ok := states[r.Cluster]; !ok {
			states[r.Cluster], _ = a.stateOf(ctx, r.Cluster)
		}
		x := explainer{engine, states[r.Cluster], at}
		one := x.explain(r.Cluster, r.Event, r.Verdict)
		one.Request = r.Request.String()
		out.Requests = append(out.Requests, one)
	}
	return out, nil
}

// refusals reads the requests of an audit ID: of each the last stage, with its verdict.
func (a *api) refusals(ctx context.Context, cluster, id string) (rows []verdict.Row, truncated bool, err error) {
	size := 0
	err = a.store.VisitWhy(ctx, cluster, id, func(row verdict.Row) error {
		n := len(rows)
		if n > 0 && rows[n-1].Request == row.Request && rows[n-1].Cluster == row.Cluster {
			if row.Verdict == nil {
				row.Verdict = rows[n-1].Verdict
			}
			rows[n-1] = row
			return nil
		}
		if size += row.Size; n == mostDenials || n > 0 && size > whyBytes {
			truncated = true
			return errEnough
		}
		rows = append(rows, row)
		return nil
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return rows, truncated, err
}

func statusMessage(e *event.Event) string {
	if e.ResponseStatus == nil {
		return ""
	}
	return e.ResponseStatus.Message
}
