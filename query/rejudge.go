package query

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/verdict"
)

// Rejudger is what questions ask whoever judges stored requests again.
type Rejudger interface {
	// Rejudge begins a job, or returns the one that does the same already.
	Rejudge(ctx context.Context, want verdict.Rejudge) (verdict.RejudgeJob, error)
	// Rejudges returns every job there was.
	Rejudges(ctx context.Context) ([]verdict.RejudgeJob, error)
}

// RejudgeJob is a job, as answers tell it.
type RejudgeJob struct {
	ID          string                `json:"id"`
	Cluster     string                `json:"cluster"`
	From        time.Time             `json:"from"`
	To          time.Time             `json:"to"`
	Where       []string              `json:"where"`
	DryRun      bool                  `json:"dryRun"`
	Asked       time.Time             `json:"asked"`
	Engine      string                `json:"engine"`
	Done        bool                  `json:"done"`
	Share       float64               `json:"share"` // of the work, 0 to 1
	Interrupted int                   `json:"interrupted,omitempty"`
	Report      verdict.RejudgeReport `json:"report"`
}

// RejudgeOf returns a job as answers tell it.
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

// selectable are the keys of --where and where the values go.
func selectable(r *verdict.Rejudge) map[string]*[]string {
	return map[string]*[]string{"user": &r.Users, "verb": &r.Only.Verbs, "resource": &r.Only.Resources, "namespace": &r.Only.Namespaces,
		"class": &r.Only.Classes, "verdict": &r.Only.Outcomes}
}

// WhereWords writes a selection the way --where takes it, sorted.
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
	list := selectable(r)[key]
	if !ok || list == nil {
		return Bad("where %q: write user=, verb=, resource=, namespace=, class= or verdict= and a value", condition)
	}
	switch key {
	case "verdict":
		if !slices.Contains(outcomeNames(), value) {
			return Bad("where verdict=%s: verdicts are %s", value, strings.Join(outcomeNames(), ", "))
		}
	case "class":
		if verdict.Explain(value) == "" {
			return Bad("where class=%s: there is no such class; see docs/verdicts.md", value)
		}
	}
	if !slices.Contains(*list, value) {
		*list = append(*list, value)
		slices.Sort(*list)
	}
	return nil
}

func outcomeNames() (names []string) {
	for o := verdict.OutcomeNotJudged; o <= verdict.OutcomeIndeterminate; o++ {
		names = append(names, o.String())
	}
	return names
}

// rejudgeJobs answers which jobs there were, the newest first.
func (a *Service) rejudgeJobs(ctx context.Context, q url.Values) (any, error) {
	out := struct {
		Jobs []RejudgeJob `json:"jobs"`
	}{Jobs: []RejudgeJob{}}
	if a.Rejudges == nil {
		return out, nil
	}
	list, err := a.Rejudges.Rejudges(ctx)
	if err != nil {
		return nil, err
	}
	cluster, id := q.Get("cluster"), q.Get("id")
	for i := len(list) - 1; i >= 0; i-- {
		if (cluster == "" || list[i].Cluster == cluster) && (id == "" || list[i].ID == id) {
			out.Jobs = append(out.Jobs, RejudgeOf(&list[i]))
		}
	}
	slices.SortStableFunc(out.Jobs, func(x, y RejudgeJob) int { return y.Asked.Compare(x.Asked) })
	return out, nil
}

// AskRejudge begins a job, or returns the one that does the same already.
func (a *Service) AskRejudge(ctx context.Context, q url.Values) (job verdict.RejudgeJob, err error) {
	var want verdict.Rejudge
	if want.Cluster, want.From, want.To, err = window(q); err != nil {
		return job, err
	}
	if want.From.IsZero() {
		return job, Bad("from is missing: say since when")
	}
	want.DryRun = q.Get("dryRun") == "true"
	if text := q.Get("where"); text != "" {
		var list []string
		if err := json.Unmarshal([]byte(text), &list); err != nil {
			return job, Bad("where: write a JSON list of conditions")
		}
		for _, condition := range list {
			if err := selectWhere(&want, condition); err != nil {
				return job, err
			}
		}
	}
	if !want.To.IsZero() && !want.From.Before(want.To) {
		return job, Bad("the range from %s to %s is empty", want.From.Format(time.RFC3339), want.To.Format(time.RFC3339))
	}
	job, err = a.Rejudges.Rejudge(ctx, want)
	if errors.Is(err, verdict.ErrRejudging) {
		return job, Bad("%w: wait for it, or ask for the same; `retrial rejudge --list` shows it", err)
	}
	return job, err
}
