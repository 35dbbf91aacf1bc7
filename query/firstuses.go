package query

import (
	"context"
	"fmt"
	"time"

	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// FirstUsesAnswer says what was done, and which bindings were used, for the first time in a range.
type FirstUsesAnswer struct {
	Cluster string    `json:"cluster"`
	From    time.Time `json:"from"`
	// Since is the cluster's first stored request: the baseline is from then to From. Null when nothing is stored.
	Since *time.Time `json:"since"`
	// Baseline says what that makes of the answer: "enough"; "short", when it is shorter than the range, so that much of what is listed is
	// only not known from before; "none", when nothing is stored from before the range: then nothing is listed, as all would be new.
	Baseline string     `json:"baseline"`
	Text     string     `json:"text"`     // the same in words
	Uses     []FirstUse `json:"uses"`     // what subjects asked for, the earliest first
	MoreUses bool       `json:"moreUses"` // there are more
	// Grants are bindings that let something pass for the first time, the earliest first.
	Grants     []FirstGrant `json:"grants"`
	MoreGrants bool         `json:"moreGrants"` // there are more
	// Unnamed counts requests of the days of the range that are not counted by what they asked for: of these none is known to be the first.
	Unnamed int64 `json:"unnamed"`
}

// FirstUse is something a subject asked for the first time. Generated parts of names are folded to *.
type FirstUse struct {
	Subject     string    `json:"subject"`
	Verb        string    `json:"verb"`
	Group       string    `json:"group"`
	Resource    string    `json:"resource"`
	Subresource string    `json:"subresource"`
	Namespace   string    `json:"namespace"`
	Name        string    `json:"name"`
	Path        string    `json:"path"`
	Requests    int64     `json:"requests"`  // all that were made since
	Allowed     int64     `json:"allowed"`   // requests of those, as recorded
	Forbidden   int64     `json:"forbidden"` // requests of those, as recorded
	First       time.Time `json:"first"`
	Last        time.Time `json:"last"`
}

// FirstGrant is a binding, for one of its subjects, that let a request or a check pass for the first time.
type FirstGrant struct {
	verdict.GrantNames           // with the first rule that did
	Requests           int64     `json:"requests"` // and checks behind requests, all since
	First              time.Time `json:"first"`
	Last               time.Time `json:"last"`
}

// FirstUsesRequest asks what was done for the first time in a range, and which bindings were used for the first time, against everything
// that is stored from before.
type FirstUsesRequest struct {
	Asks[FirstUsesAnswer] `question:"first-uses"`
	Cluster               string    `json:"cluster" required:"true" help:"cluster the question is about" flag:"cluster the question is about (default: the only one there is)"`
	From                  time.Time `json:"from" required:"true" help:"first at or after this time, such as 2026-11-20T11:36:00Z"`
	To                    time.Time `json:"to" help:"first before this time (default: the newest that is stored)"`
	Subject               string    `json:"subject" help:"only what this subject did" flag:"only what this subject did: sa/NAMESPACE:NAME, or a user name"`
	System                bool      `json:"includeSystem" help:"also what belongs to Kubernetes itself: system:*, and what is in the namespaces kube-*"`
	Limit                 int       `json:"limit" default:"100" min:"1" max:"1000" help:"most of each list"`
}

func (r FirstUsesRequest) check() error { return before(r.From, r.To) }

// FirstUses answers what was done for the first time.
func (a *Service) FirstUses(ctx context.Context, tables Tables, q FirstUsesRequest) (out FirstUsesAnswer, err error) {
	out = FirstUsesAnswer{Cluster: q.Cluster, From: q.From, Uses: []FirstUse{}, Grants: []FirstGrant{}}
	since, last, err := a.stored(ctx, tables, q.Cluster)
	if err != nil {
		return out, err
	}
	out.Since = momentOf(since)
	end := q.To
	if end.IsZero() || last.Before(end) {
		end = last
	}
	out.Baseline, out.Text = baselineOf(since, q.From, end)
	if out.Baseline == "none" {
		return out, nil
	}
	f := queries.FirstFilter{Cluster: q.Cluster, From: q.From, To: q.To, Own: q.System || q.Subject != "", Limit: q.Limit + 1}
	if q.Subject != "" {
		f.Subjects = []string{q.Subject}
	}
	uses, err := tables.FirstUses(ctx, f)
	if err != nil {
		return out, err
	}
	for _, u := range uses[:min(len(uses), q.Limit)] {
		out.Uses = append(out.Uses, FirstUse(u))
	}
	out.MoreUses = len(uses) > q.Limit
	if out.Unnamed, err = tables.Unnamed(ctx, q.Cluster, q.From, q.To); err != nil || q.Subject != "" {
		return out, err
	}
	grants, err := tables.FirstGrants(ctx, f)
	if err != nil {
		return out, err
	}
	for _, g := range grants[:min(len(grants), q.Limit)] {
		out.Grants = append(out.Grants, FirstGrant{g.Grant.Names(), g.Requests, g.First, g.Last})
	}
	out.MoreGrants = len(grants) > q.Limit
	return out, nil
}

// stored returns when the first request of a cluster that is stored came, and the end of the last minute that has any; zero for none.
func (a *Service) stored(ctx context.Context, tables Tables, cluster string) (first, last time.Time, err error) {
	clusters, err := a.Store.Clusters(ctx)
	if err != nil {
		return first, last, err
	}
	for i := range clusters {
		if clusters[i].Name == cluster {
			last = clusters[i].Last.Add(time.Minute)
			first, err = tables.Earliest(ctx, cluster)
		}
	}
	return first, last, err
}

// baselineOf says what is stored from before a range.
func baselineOf(since, from, to time.Time) (baseline, text string) {
	switch before := from.Sub(since); {
	case since.IsZero():
		return "none", "nothing is stored of this cluster"
	case before <= 0:
		return "none", fmt.Sprintf("nothing is stored from before %s: everything since would be new; the first request came at %s",
			from.UTC().Format(time.RFC3339), since.UTC().Format(time.RFC3339))
	case before < to.Sub(from):
		return "short", fmt.Sprintf("compared with what is stored since %s, a shorter time than the range: what was done only now and "+
			"then may be listed as new", since.UTC().Format(time.RFC3339))
	}
	return "enough", "compared with what is stored since " + since.UTC().Format(time.RFC3339)
}
