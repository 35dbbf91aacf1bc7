package query

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/queries"
)

// SuggestAnswer says what subjects need, and which change leaves them no more. Of all subjects it has the size of each change and not the
// objects, unless changes are asked for.
type SuggestAnswer struct {
	Cluster string `json:"cluster"`
	// Window says what the recording covers, and lacks.
	Window      leastpriv.Recording     `json:"window"`
	Suggestions []*leastpriv.Suggestion `json:"suggestions"` // the most excess first
	// Unseen subjects hold bindings and made no request; of all subjects only.
	Unseen []leastpriv.Unseen `json:"unseen"`
	// Plan is all suggestions in force together.
	Plan *leastpriv.Plan `json:"plan"`
	// Texts are the changes as text, where subjects are named; null for all.
	Texts *SuggestTexts `json:"texts"`
	// Backtests say what such changes, made of a first part of the range, would have refused of the rest; null unless asked for.
	Backtests []leastpriv.Backtest `json:"backtests"`
}

// SuggestRequest asks what subjects need, and which change leaves them no more: docs/suggest.md. It names subjects, or asks for all.
// Without from and to everything stored counts. One answer is made at a time, in ten minutes at most (503, 504). 400 for a subject of
// Kubernetes itself unless includeSystem is set; 404 for an unknown subject (the text names the nearest), a cluster whose policy was never
// listed, and a range without requests.
type SuggestRequest struct {
	Asks[SuggestAnswer] `question:"suggest"`
	Cluster             string    `json:"cluster" required:"true" help:"cluster the question is about" flag:"name of the cluster; needed when there are several"`
	Subjects            []string  `json:"subject" list:"lines" help:"user names as audit events have them, separated by line breaks" flag:"sa/NAMESPACE:NAME, or a user name as audit events have it; may be repeated"`
	All                 bool      `json:"all" help:"every subject" flag:"every subject (the default)"`
	From                time.Time `json:"from" help:"only requests from this time on (RFC 3339), in whole minutes" flag:"only requests from this time on, in whole minutes"`
	To                  time.Time `json:"to" help:"only requests before this time (RFC 3339), in whole minutes" flag:"only requests before this time, in whole minutes"`
	System              bool      `json:"includeSystem" help:"also what belongs to Kubernetes itself: system:*, and what is in the namespaces kube-*"`
	Unseen              bool      `json:"includeUnseen" help:"also subjects that hold bindings and were never seen: suggest to remove all of it"`
	Changes             bool      `json:"changes" help:"of all subjects, with the objects of every change; of named ones they are always there"`
	Strict              bool      `json:"strict" help:"roles of each subject's own that hold exactly what it used, instead of the roles it holds narrowed to that"`
	NoAddedVerbs        bool      `json:"noAddedVerbs" help:"narrowed roles without the verbs that go with those used, such as watch with list"`
	Learned             bool      `json:"learned" help:"only subjects of which it is learned what they need"`
	Backtest            bool      `json:"backtest" help:"also ask what is suggested of the first 50, 70 and 90 % of the range about the rest"`
	Wildcards           string    `json:"wildcards" default:"none" enum:"none,verbs" help:"what may be written as *: none, or verbs (strict, then), where no refusal on record speaks against it"`
}

func (r SuggestRequest) check() error {
	if r.All == (len(r.Subjects) > 0) {
		return Bad("name a subject, or pass all=true, not both")
	}
	return before(r.From, r.To)
}

// Suggest answers with the least roles that subjects need.
func (a *Service) Suggest(ctx context.Context, q SuggestRequest) (out SuggestAnswer, err error) {
	cluster, from, to := q.Cluster, q.From, q.To
	st, err := a.stateOf(ctx, cluster, Latest)
	if err != nil {
		return out, err
	}
	if noPolicy(st) && a.Empty {
		return out, errEmptyLog
	}
	if noPolicy(st) && a.Offline {
		return out, Bad("--state is missing: what a subject holds is not in the log; get it with\n  %s\nor pass --from-empty if the log "+
			"begins with the cluster's first start", strings.TrimSuffix(StateListing, " > state.json"))
	}
	if noPolicy(st) {
		return out, none("nothing is known of the roles and bindings of cluster %q; list them once and import the list:\n%s", cluster,
			AdviceFor(cluster, "no-state").Command)
	}
	recorded, err := a.Store.Recording(ctx, cluster, from, to)
	if err != nil {
		return out, err
	}
	if recorded.Requests == 0 && a.Offline {
		return out, none("no request of this time is in the log")
	}
	if recorded.Requests == 0 {
		return out, none("no request of cluster %q is stored in this range", cluster)
	}
	collector, err := a.collect(ctx, cluster, from, to, q.Subjects)
	if err != nil {
		return out, err
	}
	metas := metadata{}
	if err := a.Store.NewestPolicy(ctx, cluster, policyResources, func(text []byte) error {
		if o, err := observe.Decode(text); err == nil { // as in the replay: what cannot be read stays unknown
			metas.add(&o)
		}
		return nil
	}); err != nil {
		return out, err
	}
	// What was refused or allowed is looked at by the policy of its time.
	if st, err = a.Replay.State(ctx, cluster, recorded.First); err != nil {
		return out, err
	}
	recording := recordingOf(&recorded)
	recording.Describe(st)
	wild := q.Wildcards == "verbs"
	advisor := collector.Advise(st, Latest, leastpriv.Options{Metadata: func(k rbacindex.Key) metav1.ObjectMeta { return metas[k] },
		Recording: recording, Strict: q.Strict || wild, NoAddedVerbs: q.NoAddedVerbs, WildcardVerbs: wild})
	out = SuggestAnswer{Cluster: cluster, Window: advisor.Recording(), Suggestions: []*leastpriv.Suggestion{}, Unseen: []leastpriv.Unseen{}}
	if err = a.suggest(ctx, &out, collector, advisor, &q, st); err == nil && q.Backtest {
		err = a.backtest(ctx, &out, &q, st, &recorded)
	}
	return out, err
}

// collect returns what subjects, or all if none is named, did in a range.
func (a *Service) collect(ctx context.Context, cluster string, from, to time.Time, subjects []string) (*leastpriv.Collector, error) {
	c := leastpriv.NewCollector()
	return c, a.Store.History(ctx, cluster, from, to, subjects, func(r codec.Alike) error {
		c.ObserveMany(r.Event, r.Verdict, leastpriv.Count{Requests: r.Requests, First: r.First, Last: r.Last})
		return nil
	})
}

// backtest cuts the range in time and asks what is suggested of each first part about the rest.
func (a *Service) backtest(ctx context.Context, out *SuggestAnswer, q *SuggestRequest, st *state.State, r *queries.Recording) error {
	names := make([]string, 0, len(out.Suggestions))
	for _, s := range out.Suggestions {
		names = append(names, s.Subject)
	}
	for _, percent := range leastpriv.Cuts() {
		at := r.First.Add(r.Last.Sub(r.First) * time.Duration(percent) / 100).Truncate(time.Minute)
		if !at.After(r.First) {
			return Bad("a recording of %s is too short for a back-test, which cuts it at whole minutes",
				r.Last.Sub(r.First).Round(time.Second))
		}
		first, err := a.collect(ctx, q.Cluster, q.From, at, q.Subjects)
		if err != nil {
			return err
		}
		rest, err := a.collect(ctx, q.Cluster, at, q.To, q.Subjects)
		if err != nil {
			return err
		}
		b, err := leastpriv.BacktestOf(first, rest, st, at, names)
		if err != nil {
			return err
		}
		b.Percent = percent
		out.Backtests = append(out.Backtests, b)
	}
	return nil
}

// recordingOf returns the recording of a range in the form of suggestions.
func recordingOf(r *queries.Recording) leastpriv.Recording {
	out := leastpriv.Recording{From: r.First, To: r.Last, Requests: r.Requests, Unjudged: map[string]int64{}, Truncated: r.Truncated,
		DeadLetters: r.DeadLetters, Dropped: r.Dropped}
	for _, c := range r.Classes {
		switch c.Outcome {
		case "match", "drift", "ambiguous":
			out.Judged += c.Requests
		}
		if c.Outcome != "match" {
			out.Unjudged[strings.TrimSpace(c.Outcome+" "+c.Class)] += c.Requests
		}
	}
	return out
}

// suggest makes the suggestions that are wanted, and joins them.
func (a *Service) suggest(ctx context.Context, out *SuggestAnswer, collector *leastpriv.Collector, advisor *leastpriv.Advisor,
	q *SuggestRequest, st *state.State) (err error) {
	names := slices.Compact(slices.Sorted(slices.Values(q.Subjects)))
	if len(names) == 0 {
		names = slices.DeleteFunc(collector.Subjects(), func(name string) bool { return !q.System && collector.System(name) })
		out.Unseen = slices.DeleteFunc(advisor.Unseen(), func(u leastpriv.Unseen) bool { return !q.System && collector.System(u.Subject) })
		if q.Unseen {
			for _, u := range out.Unseen {
				names = append(names, u.Subject)
			}
		}
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		one, err := advisor.Suggest(name)
		switch {
		case errors.Is(err, leastpriv.ErrUnknownSubject) && collector.Seen(name):
			return none("%q made requests, but RBAC decided none of them: there is nothing to suggest", name)
		case errors.Is(err, leastpriv.ErrUnknownSubject):
			hint := "; a subject is a user name as events have it, such as system:serviceaccount:NAMESPACE:NAME"
			if near, err := a.near(ctx, q.Cluster, name, st.RBAC(Latest).RBAC); err == nil && len(near) > 0 {
				hint = didYouMean(quoted(near))
			}
			return none("no request of %q is recorded, and no binding names it%s", name, hint)
		case err != nil:
			return err
		case one.System && !q.System:
			return Bad("%q belongs to Kubernetes itself; taking rights from it can break the cluster: add --include-system "+
				"(includeSystem=true) if that is meant", name)
		}
		if one.Maturity.Learned || !q.Learned {
			out.Suggestions = append(out.Suggestions, one)
		}
	}
	slices.SortStableFunc(out.Suggestions, func(a, b *leastpriv.Suggestion) int {
		return cmp.Compare(b.Excess.Before-b.Excess.After, a.Excess.Before-a.Excess.After)
	})
	if out.Plan, err = advisor.Together(out.Suggestions); err != nil || q.Changes && q.All {
		return err
	}
	if !q.All {
		out.Texts, err = out.texts()
		return err
	}
	for _, one := range out.Suggestions {
		one.Counted()
	}
	out.Plan.Counted()
	return nil
}

// metadata keeps labels, annotations and owners of RBAC objects, which the state does not: for the rollback, and to name who writes them.
type metadata map[rbacindex.Key]metav1.ObjectMeta

// policyResources are the resources of the objects of a policy.
var policyResources = []string{ //nolint:gochecknoglobals // constant table
	kept.ClusterRoleBindings, kept.ClusterRoles, kept.RoleBindings, kept.Roles,
}

// add takes the metadata of an observation in place of an earlier one's.
func (m metadata) add(o *observe.Observation) {
	kind := kept.ResourceOf(o.Resource).RBACKind()
	if kind == 0 || len(o.Object) == 0 {
		return
	}
	var object struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if json.Unmarshal(o.Object, &object) == nil {
		m[rbacindex.Key{Kind: kind, Namespace: strings.Clone(o.Namespace), Name: strings.Clone(o.Name)}] =
			metav1.ObjectMeta{Labels: object.Metadata.Labels, Annotations: object.Metadata.Annotations,
				OwnerReferences: object.Metadata.OwnerReferences}
	}
}
