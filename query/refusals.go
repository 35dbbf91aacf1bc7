package query

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage/queries"
)

// Causes of refusals. The set is closed.
const (
	CauseNever         = "never-allowed"  // RBAC did not allow it before either, as far back as was looked
	CauseChange        = "policy-change"  // RBAC allowed it until a role or binding was written
	CauseAuthorizer    = "authorizer"     // one other than RBAC: a webhook refused it, or the node authorizer finds no path
	CauseAdmission     = "admission"      // a plugin
	CauseNamespace     = "namespace-gone" // the namespace is not there, or is being deleted
	CauseCheck         = "check"          // one behind the authorization filter, see docs/implied.md
	CauseImpersonation = "impersonation"  // the requestor may not act as the user it named
	CauseAnonymous     = "anonymous"      // nobody was authenticated, or it came without credentials
	CauseDrift         = "drift"          // by the policy as it is known it is allowed
	CauseUnknown       = "unknown"        // not everything is known, or nothing says who refused it
)

// RefusalsAnswer says what was refused in a range, and why.
type RefusalsAnswer struct {
	Cluster  string `json:"cluster"`
	Requests int64  `json:"requests"` // that were refused, all of them
	System   int64  `json:"system"`   // requests of Kubernetes' own subjects, which are left out
	// Known is false when no policy of the cluster is known: then no refusal is traced to a change.
	Known bool `json:"known"`
	// LookedBackTo is the moment since which the policy was asked when a request was still allowed; null when it was not.
	LookedBackTo *time.Time `json:"lookedBackTo"`
	Missing      []string   `json:"missing"`  // what is not known of the policy at that moment, and could have allowed something
	Refusals     []Refusal  `json:"refusals"` // most requests first
	// More: there are more refusals or changes than the answer has, with fewer requests.
	More bool `json:"more"`
	// Changes are the writes that made refusals, most requests first, whether or not the answer lists those.
	Changes []RefusingChange `json:"changes"`
}

// Refusal are refused requests of one subject, verb and resource, for one cause.
type Refusal struct {
	Subject        string    `json:"subject"`
	Verb           string    `json:"verb"`
	Group          string    `json:"group"`
	Resource       string    `json:"resource"`
	Subresource    string    `json:"subresource"`
	Path           string    `json:"path"`           // of requests about no resource; long tails are folded to *
	Namespaces     []string  `json:"namespaces"`     // five at most; "" is a request without one
	NamespaceCount int       `json:"namespaceCount"` // how many there are
	Requests       int64     `json:"requests"`
	First          time.Time `json:"first"`
	Last           time.Time `json:"last"`
	Recorded       string    `json:"recorded"` // decision of the apiserver
	Replayed       string    `json:"replayed"` // decision of the replica
	Outcome        string    `json:"outcome"`
	Code           int32     `json:"code"`
	// Cause is why, a closed set; it was looked for at the first request. Text says it in one line.
	Cause string `json:"cause"`
	Text  string `json:"text"`
	// Writes are what the cause policy-change names: the write since which RBAC refuses it. Several when they came into force together.
	Writes  []PolicyWrite `json:"writes,omitempty"`
	AuditID string        `json:"auditID"`          // of the first request
	User    string        `json:"user"`             // who authenticated, of the first request
	Name    string        `json:"name"`             // of the object of the first request
	Plugin  string        `json:"plugin,omitempty"` // of admission
	Check   string        `json:"check,omitempty"`  // that refused it
	Missing []string      `json:"missing"`          // of the first request
}

// RefusingChange is a write and the refusals it made.
type RefusingChange struct {
	Write    PolicyWrite `json:"write"`
	Requests int64       `json:"requests"` // refused since, in the range
	Subjects []string    `json:"subjects"` // whose they are
	Refusals []int       `json:"refusals"` // by index in the answer, of those that it lists
}

// RefusalsRequest asks which requests were refused in a range, by subject, verb and resource, and for what cause; and which writes of roles
// and bindings made refusals. When a request was still allowed is asked of RBAC as it was at every change since the cluster's first stored
// request, or since the last 20,000 moments at which something changed.
type RefusalsRequest struct {
	Asks[RefusalsAnswer] `question:"refusals"`
	Cluster              string    `json:"cluster" required:"true" help:"cluster the question is about" flag:"cluster the question is about (default: the only one there is)"`
	From                 time.Time `json:"from" help:"requests at or after this time, such as 2026-11-20T11:36:00Z"`
	To                   time.Time `json:"to" help:"requests before this time"`
	Subject              string    `json:"subject" help:"only requests of this subject" flag:"only requests of this subject: sa/NAMESPACE:NAME, or a user name"`
	System               bool      `json:"includeSystem" help:"also what belongs to Kubernetes itself: system:*, and what is in the namespaces kube-*"`
	Limit                int       `json:"limit" default:"100" min:"1" max:"500" help:"most refusals of an answer, and most changes"`
}

func (r RefusalsRequest) check() error { return before(r.From, r.To) }

// Bounds of an answer.
const (
	mostBlamed     = 200   // writes whose requests are looked for, those of the most refused first
	mostRefused    = 5_000 // groups that are read, before namespaces are put together: all of them are traced to changes
	mostNamespaces = 5     // of a refusal that are named
)

// Refusals answers which requests were refused, and why.
func (a *Service) Refusals(ctx context.Context, tables Tables, q RefusalsRequest) (out RefusalsAnswer, err error) {
	f := queries.RefusalFilter{Cluster: q.Cluster, From: q.From, To: q.To, Limit: mostRefused, Own: q.System || q.Subject != ""}
	if q.Subject != "" {
		f.Subjects = []string{q.Subject}
	}
	return a.refused(ctx, tables, f, q.Limit)
}

// refused explains the refusals that a filter selects.
func (a *Service) refused(ctx context.Context, tables Tables, f queries.RefusalFilter, limit int) (out RefusalsAnswer, err error) {
	out = RefusalsAnswer{Cluster: f.Cluster, Missing: []string{}, Refusals: []Refusal{}, Changes: []RefusingChange{}}
	list, sum, err := tables.Refusals(ctx, f)
	if err != nil {
		return out, err
	}
	out.Requests, out.System, out.More = sum.Requests, sum.Own, sum.Groups > uint64(len(list))
	turns, err := a.turnsOf(ctx, tables, &out, list)
	if err != nil {
		return out, err
	}
	writes, at, err := a.writesOf(ctx, f.Cluster, list, turns)
	if err != nil {
		return out, err
	}
	places := map[string]int{}
	for i := range list {
		one := refusalOf(&list[i], turns[i], out.LookedBackTo)
		if t := turns[i]; t != nil {
			for _, c := range t.lost {
				one.Writes = append(one.Writes, writes[at[c]])
			}
		}
		out.add(one, places)
	}
	slices.SortStableFunc(out.Refusals, func(x, y Refusal) int { return cmp.Compare(y.Requests, x.Requests) })
	out.byChange(limit)
	out.More = out.More || max(len(out.Refusals), len(out.Changes)) > limit
	out.Refusals, out.Changes = out.Refusals[:min(len(out.Refusals), limit)], out.Changes[:min(len(out.Changes), limit)]
	return out, nil
}

// turnsOf asks the policy about those refusals that RBAC alone explains; the others have nil.
func (a *Service) turnsOf(ctx context.Context, tables Tables, out *RefusalsAnswer, list []queries.Refused) ([]*turn, error) {
	turns := make([]*turn, len(list))
	var asked []*turn
	for i := range list {
		r := &list[i]
		if causeOf(r) != CauseNever {
			continue
		}
		x := &r.Attributes
		turns[i] = &turn{at: r.First, attrs: rbacindex.Attributes{User: r.Subject, Groups: r.Groups, Verb: x.Verb, Namespace: x.Namespace,
			APIGroup: x.APIGroup, Resource: x.Resource, Subresource: x.Subresource, Name: x.Name, ResourceRequest: x.ResourceRequest,
			Path: x.Path}}
		asked = append(asked, turns[i])
	}
	since, _, err := a.stored(ctx, tables, out.Cluster)
	if err != nil {
		return nil, err
	}
	st, err := a.stateOf(ctx, out.Cluster, since)
	if err != nil {
		return nil, err
	}
	if out.Known = !noPolicy(st); !out.Known {
		return turns, nil
	}
	if h := st.Horizon(); h.After(since) {
		since = h
	}
	if len(asked) == 0 {
		return turns, nil
	}
	if since, err = look(ctx, st, since, asked); err != nil {
		return nil, err
	}
	out.LookedBackTo = momentOf(since)
	view := st.RBAC(since)
	var p Policy
	p.doubt(view.Doubts("", true))
	out.Missing = p.Missing[:min(len(p.Missing), mostReasons)]
	for i, t := range turns {
		if t != nil && !t.allowed && !t.unknown {
			t.gone = gone(st, &list[i])
		}
	}
	return turns, nil
}

// gone reports whether the namespace of a request was not there, or was being deleted.
func gone(st *state.State, r *queries.Refused) bool {
	if r.Attributes.Namespace == "" {
		return false
	}
	switch st.Namespace(r.Attributes.Namespace, r.First, r.First) {
	case state.NamespaceAbsent, state.NamespaceTerminating:
		return true
	}
	return false
}

// writesOf looks for who did the changes, each once, those of the most refused first; at has the place of each.
func (a *Service) writesOf(ctx context.Context, cluster string, list []queries.Refused, turns []*turn) (writes []PolicyWrite,
	at map[change]int, err error) {
	at, made := map[change]int{}, map[change]int64{}
	for i, t := range turns {
		for n := 0; t != nil && n < len(t.lost); n++ {
			c := t.lost[n]
			if made[c] == 0 {
				at[c], writes = len(writes), append(writes, writeOf(c.key, &c.v))
			}
			made[c] += list[i].Requests
		}
	}
	traced := map[int]queries.Written{}
	most := func(x, y change) int { return cmp.Or(cmp.Compare(made[y], made[x]), at[x]-at[y]) }
	for _, c := range slices.SortedFunc(maps.Keys(at), most) {
		if of, ok := writtenOf(&c.v); ok && len(traced) < mostBlamed {
			traced[at[c]] = of
		}
	}
	return writes, at, a.trace(ctx, cluster, writes, traced)
}

// causeOf says why requests were refused, as far as their records tell: CauseNever stands for what is left to RBAC.
func causeOf(r *queries.Refused) string {
	switch {
	case r.Subject == "" || r.Subject == kubenames.Anonymous:
		return CauseAnonymous
	case r.Class == "impersonation-refused":
		return CauseImpersonation
	case r.Recorded == "forbid":
		return causeOfForbidden(r)
	case r.Plugin == "NamespaceLifecycle":
		return CauseNamespace
	case r.Plugin != "":
		return CauseAdmission
	case r.Check != "":
		return CauseCheck
	}
	return CauseUnknown
}

// causeOfForbidden is causeOf for what the authorizers refused.
func causeOfForbidden(r *queries.Refused) string {
	switch {
	case r.Outcome == "indeterminate":
		return CauseUnknown
	case r.Replayed == NotDecided:
		return CauseUnknown
	case r.Replayed == Allowed && r.Outcome == "drift":
		return CauseDrift
	case r.Replayed == Allowed, strings.HasPrefix(r.Subject, kubenames.NodePrefix):
		return CauseAuthorizer
	}
	return CauseNever
}

// refusalOf writes a refusal down; back is how far was looked back.
func refusalOf(r *queries.Refused, t *turn, back *time.Time) Refusal {
	x := &r.Attributes
	out := Refusal{Subject: r.Subject, Verb: x.Verb, Group: x.APIGroup, Resource: x.Resource, Subresource: x.Subresource, Path: r.Path,
		Namespaces: []string{x.Namespace}, NamespaceCount: 1, Requests: r.Requests, First: r.First, Last: r.Last, Recorded: r.Recorded,
		Replayed: r.Replayed, Outcome: r.Outcome, Code: r.Code, Cause: causeOf(r), AuditID: r.AuditID, User: r.User, Name: x.Name,
		Plugin: strings.TrimSpace(r.Plugin + " " + r.PluginName), Check: r.Check, Missing: append([]string{}, r.Missing...)}
	if t != nil {
		switch {
		case back == nil:
			out.Cause, out.Missing = CauseUnknown, append(out.Missing, "the policy")
		case t.unknown:
			out.Cause, out.Missing = CauseUnknown, append(out.Missing, "when it was allowed: the policy changed too often since")
		case t.allowed:
			out.Cause = CauseDrift
		case t.gone:
			out.Cause = CauseNamespace
		case len(t.lost) > 0:
			out.Cause = CauseChange
		}
	}
	out.Text = causeText(&out, back)
	return out
}

// causeText says a cause in one line.
func causeText(r *Refusal, back *time.Time) string {
	switch r.Cause {
	case CauseNever:
		return "RBAC allowed it at no moment since " + back.Format(time.RFC3339)
	case CauseChange:
		return "RBAC allowed it until a change of the policy"
	case CauseAuthorizer:
		if strings.HasPrefix(r.Subject, kubenames.NodePrefix) {
			return "the node authorizer finds no path from the node to it"
		}
		return "the authorizers that are replayed allow it: a webhook refused it"
	case CauseAdmission:
		return "the admission plugin " + r.Plugin + " refused it"
	case CauseNamespace:
		return "the namespace is not there, or is being deleted"
	case CauseCheck:
		return "the authorizers allowed it; the check " + r.Check + " behind them refused it"
	case CauseImpersonation:
		return r.User + " may not act as the user it named"
	case CauseAnonymous:
		if r.Subject == "" {
			return "nobody was authenticated"
		}
		return "it came without credentials"
	case CauseDrift:
		return "by the policy as it is known it is allowed: see retrial drift"
	}
	if len(r.Missing) > 0 {
		return "not known: " + strings.Join(r.Missing, ", ")
	}
	return "the record does not tell; retrial explain-deny shows the response"
}

// add adds a refusal to those that differ from it in the namespace alone; places has the place of each.
func (a *RefusalsAnswer) add(r Refusal, places map[string]int) {
	same := fmt.Sprintf("%q %d", []string{r.Subject, r.Verb, r.Group, r.Resource, r.Subresource, r.Path, r.Recorded, r.Replayed, r.Outcome,
		r.Cause, r.Plugin, r.Check}, r.Code)
	for _, w := range r.Writes {
		same += fmt.Sprintf(" %q %d", w.Object, w.NotAfter.UnixNano())
	}
	i, ok := places[same]
	if !ok {
		places[same], a.Refusals = len(a.Refusals), append(a.Refusals, r)
		return
	}
	o := &a.Refusals[i]
	o.Requests += r.Requests
	if !slices.Contains(o.Namespaces, r.Namespaces[0]) {
		o.NamespaceCount++
		if len(o.Namespaces) < mostNamespaces {
			o.Namespaces = append(o.Namespaces, r.Namespaces[0])
		}
	}
	if r.Last.After(o.Last) {
		o.Last = r.Last
	}
	if r.First.Before(o.First) {
		o.First, o.AuditID, o.User, o.Name, o.Missing, o.Text = r.First, r.AuditID, r.User, r.Name, r.Missing, r.Text
	}
}

// byChange gathers the refusals by the writes that made them. So many refusals are listed.
func (a *RefusalsAnswer) byChange(listed int) {
	for i := range a.Refusals {
		r := &a.Refusals[i]
		for _, w := range r.Writes {
			at := slices.IndexFunc(a.Changes, func(c RefusingChange) bool { return c.Write == w }) // copies of one
			if at < 0 {
				at, a.Changes = len(a.Changes), append(a.Changes, RefusingChange{Write: w, Subjects: []string{}, Refusals: []int{}})
			}
			c := &a.Changes[at]
			c.Requests += r.Requests
			if i < listed {
				c.Refusals = append(c.Refusals, i)
			}
			if !slices.Contains(c.Subjects, r.Subject) {
				c.Subjects = append(c.Subjects, r.Subject)
			}
		}
	}
	slices.SortStableFunc(a.Changes, func(x, y RefusingChange) int { return cmp.Compare(y.Requests, x.Requests) })
}
