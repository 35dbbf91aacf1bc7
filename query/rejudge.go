package query

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/verdict"
)

// RejudgeJob is a job, as answers show it.
type RejudgeJob struct {
	ID          string                `json:"id"`
	Cluster     string                `json:"cluster"`
	From        time.Time             `json:"from"`
	To          time.Time             `json:"to"`
	Where       []string              `json:"where"`                 // conditions, sorted
	DryRun      bool                  `json:"dryRun"`                // nothing was changed
	Asked       time.Time             `json:"asked"`                 // when
	Engine      string                `json:"engine"`                // version of the replica then
	Done        bool                  `json:"done"`                  // every partition is
	Share       float64               `json:"share"`                 // of the work, 0 to 1
	Interrupted int                   `json:"interrupted,omitempty"` // how often somebody went on where another had stopped: what changed in those steps may be missing from the report
	Report      verdict.RejudgeReport `json:"report"`                // what was judged again, and what changed
}

// RejudgeOf returns a job as answers show it.
func RejudgeOf(j *verdict.RejudgeJob) RejudgeJob {
	out := RejudgeJob{ID: j.ID, Cluster: j.Cluster, From: j.From, To: j.To, Where: WhereWords(j.Rejudge), DryRun: j.DryRun, Asked: j.Asked,
		Engine: j.Engine, Done: j.Done(), Share: j.Share(), Report: j.Report()}
	for i := range j.Progress {
		out.Interrupted += j.Progress[i].Interrupted
	}
	if out.Report.Transitions == nil {
		out.Report.Transitions = []verdict.Transition{}
	}
	return out
}

// selectable returns the keys of --where and where their values go.
func selectable(r *verdict.Rejudge) map[string]*[]string {
	return map[string]*[]string{"subject": &r.Users, "verb": &r.Only.Verbs, "resource": &r.Only.Resources, "namespace": &r.Only.Namespaces,
		"class": &r.Only.Classes, "outcome": &r.Only.Outcomes}
}

// WhereWords returns a selection as --where takes it, sorted.
func WhereWords(r verdict.Rejudge) []string {
	out := []string{}
	for key, list := range selectable(&r) {
		for _, v := range *list {
			out = append(out, key+"="+v)
		}
	}
	slices.Sort(out)
	return out
}

// selectWhere adds a condition key=value. Values of one key are alternatives.
func selectWhere(r *verdict.Rejudge, condition string) error {
	key, value, ok := strings.Cut(condition, "=")
	switch key { // names of before, which will be removed in the next release
	case "user":
		key = "subject"
	case "verdict":
		key = "outcome"
	}
	list := selectable(r)[key]
	if !ok || list == nil {
		return Bad("invalid where %q: want subject=, verb=, resource=, namespace=, class= or outcome= and a value", condition)
	}
	switch key {
	case "outcome":
		if !slices.Contains(verdict.OutcomeNames(), value) {
			return Bad("invalid where outcome=%s: want one of %s", value, strings.Join(verdict.OutcomeNames(), ", "))
		}
	case "class":
		if verdict.Explain(value) == "" {
			return Bad("invalid where class=%s: see docs/verdicts.md for the classes", value)
		}
	}
	if !slices.Contains(*list, value) {
		*list = append(*list, value)
		slices.Sort(*list)
	}
	return nil
}

// RejudgeJobsRequest asks for the jobs that judged stored requests again.
type RejudgeJobsRequest struct {
	Asks[RejudgeJobsAnswer] `question:"rejudge"`
	Cluster                 string `json:"cluster" help:"jobs of this cluster"`
	ID                      string `json:"id" help:"the job of this ID"`
}

// RejudgeJobsAnswer lists jobs, the newest first.
type RejudgeJobsAnswer struct {
	Jobs []RejudgeJob `json:"jobs"` // newest first
}

// RejudgeJobs answers with the jobs so far.
func (a *Service) RejudgeJobs(ctx context.Context, q RejudgeJobsRequest) (RejudgeJobsAnswer, error) {
	out := RejudgeJobsAnswer{Jobs: []RejudgeJob{}}
	if a.Rejudges == nil {
		return out, nil
	}
	list, err := a.Rejudges.Rejudges(ctx)
	if err != nil {
		return out, err
	}
	for i := len(list) - 1; i >= 0; i-- {
		if (q.Cluster == "" || list[i].Cluster == q.Cluster) && (q.ID == "" || list[i].ID == q.ID) {
			out.Jobs = append(out.Jobs, RejudgeOf(&list[i]))
		}
	}
	slices.SortStableFunc(out.Jobs, func(x, y RejudgeJob) int { return y.Asked.Compare(x.Asked) })
	return out, nil
}

// RejudgeRequest starts judging stored requests again. The same request returns the job under way; a different one is refused meanwhile.
type RejudgeRequest struct {
	Asks[RejudgeJob] `question:"rejudge"`
	Cluster          string    `json:"cluster" required:"true" help:"cluster whose requests are judged again" flag:"only this cluster (default: every cluster)"`
	From             time.Time `json:"from" name:"since" required:"true" help:"requests from this time on" flag:"requests from this time on, such as 2026-11-20T11:00:00Z"`
	To               time.Time `json:"to" name:"until" help:"requests before this time (default: now)"`
	Where            []string  `json:"where" list:"json" help:"only requests with key=value, keys user, verb, resource, namespace, class and verdict: values of one key are alternatives, different keys restrict each other" flag:"only requests with KEY=VALUE, may be repeated"`
	DryRun           bool      `json:"dryRun" help:"count what would change, and change nothing"`
	Action
}

// check also parses the conditions.
func (r RejudgeRequest) check() error {
	if _, err := r.want(); err != nil {
		return err
	}
	return before(r.From, r.To)
}

func (r *RejudgeRequest) want() (verdict.Rejudge, error) {
	want := verdict.Rejudge{Cluster: r.Cluster, From: r.From, To: r.To, DryRun: r.DryRun}
	for _, condition := range r.Where {
		if err := selectWhere(&want, condition); err != nil {
			return want, err
		}
	}
	return want, nil
}

// Rejudge starts a job, or returns the one that does the same already.
func (a *Service) Rejudge(ctx context.Context, q RejudgeRequest) (out RejudgeJob, err error) {
	if a.Rejudges == nil {
		return out, ErrRefused
	}
	want, err := q.want()
	if err != nil {
		return out, err
	}
	job, err := a.Rejudges.Rejudge(ctx, want)
	if errors.Is(err, verdict.ErrRejudging) {
		return out, Bad("%w: wait for it, or ask for the same; `retrial rejudge --list` shows it", err)
	}
	if err != nil {
		return out, err
	}
	return RejudgeOf(&job), nil
}
