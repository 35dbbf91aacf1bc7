package query

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/query/known"
	"github.com/retrial-io/retrial/query/past"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage/queries"
)

// SuggestAnswer says what subjects need, and which change leaves them no more. Of all subjects it has the size of each change and not the
// objects, unless changes are asked for.
type SuggestAnswer struct {
	Cluster string `json:"cluster"`
	// Read says when an answer that is kept was made, up to an hour ago; zero unless that was asked for, of all subjects.
	Read time.Time `json:"read"`
	// Window says what the recording covers, and lacks.
	Window      leastpriv.Recording     `json:"window"`
	Suggestions []*leastpriv.Suggestion `json:"suggestions"` // the most excess first
	// Unseen subjects hold bindings and made no request; of all subjects only.
	Unseen []leastpriv.Unseen `json:"unseen"`
	// Plan is all suggestions in force together.
	Plan *leastpriv.Plan `json:"plan"`
	// Texts are the changes as text, where subjects are named; null for all.
	Texts  *SuggestTexts       `json:"texts"`
	policy *rbacindex.Snapshot // that it was made by

	// Backtests say what such changes, made of a first part of the range, would have refused of the rest; null unless asked for.
	Backtests []leastpriv.Backtest `json:"backtests"`
}

// SuggestRequest asks what subjects need, and which change leaves them no more: docs/suggest.md. It names subjects, a namespace, a group,
// a role or a binding, or asks for all. Without from and to everything counts that was ever counted, also after its events are past
// retention; a range, strict and backtest read the events that are stored. One answer is made at a time, in ten minutes at most (503,
// 504). 400 for a subject of Kubernetes itself unless includeSystem is set; 404 for an unknown subject (the text names the nearest), a
// cluster whose policy was never listed, and a range without requests.
type SuggestRequest struct {
	Asks[SuggestAnswer] `question:"suggest"`
	Cluster             string    `json:"cluster" required:"true" help:"cluster the question is about" flag:"name of the cluster; needed when there are several"`
	Subjects            []string  `json:"subject" list:"lines" help:"user names as audit events have them, separated by line breaks; * stands for any letters, ? for one" flag:"sa/NAMESPACE:NAME, or a user name as audit events have it; * stands for any letters; may be repeated"`
	All                 bool      `json:"all" help:"every subject" flag:"every subject (the default)"`
	From                time.Time `json:"from" help:"only requests from this time on (RFC 3339), in whole minutes" flag:"only requests from this time on, in whole minutes, from the events that are stored"`
	To                  time.Time `json:"to" help:"only requests before this time (RFC 3339), in whole minutes" flag:"only requests before this time, in whole minutes, from the events that are stored"`
	System              bool      `json:"includeSystem" help:"also what belongs to Kubernetes itself: system:*, and what is in the namespaces kube-*"`
	Unseen              bool      `json:"includeUnseen" help:"also subjects that hold bindings and were never seen: suggest to remove all of it"`
	Group               string    `json:"group" help:"a group: its roles narrowed to what anybody in it used that they allow" flag:"suggest for this group: its roles narrowed to what anybody in it used that they allow"`
	Role                string    `json:"role" help:"a role, narrowed to what anybody used that it allows: KIND/NAME, KIND/NAMESPACE/NAME, or a name that no other role has" flag:"suggest for this role, narrowed to what anybody used that it allows: KIND/NAME, KIND/NAMESPACE/NAME or NAME"`
	Binding             string    `json:"binding" help:"a binding, its role narrowed to what anybody used that it allows: named as a role is" flag:"suggest for this binding, its role narrowed to what anybody used that it allows: KIND/NAME, KIND/NAMESPACE/NAME or NAME"`
	Namespace           string    `json:"namespace" help:"the service accounts of a namespace; * stands for any letters, ? for one" flag:"the service accounts of this namespace; * stands for any letters, ? for one"`
	Changes             bool      `json:"changes" help:"of all subjects, with the objects of every change; of named ones they are always there"`
	Strict              bool      `json:"strict" help:"roles of each subject's own that hold exactly what it used, instead of the roles it holds narrowed to that"`
	NoAddedVerbs        bool      `json:"noAddedVerbs" help:"narrowed roles without the verbs that go with those used, such as watch with list"`
	Kept                bool      `json:"kept" help:"of all subjects: the answer may be one that was made an hour ago at most, and is kept for the next such question"`
	Learned             bool      `json:"learned" help:"only subjects of which it is learned what they need"`
	Backtest            bool      `json:"backtest" help:"also ask what is suggested of the first 50, 70 and 90 % of the range about the rest"`
	Wildcards           string    `json:"wildcards" default:"none" enum:"none,verbs" help:"what may be written as *: none, or verbs (strict, then), where no refusal on record speaks against it"`
}

func (r SuggestRequest) check() error {
	if err := r.checkTarget(); err != nil {
		return err
	}
	if r.Kept && (r.Backtest || !r.From.IsZero() || !r.To.IsZero()) {
		return Bad("what is kept has no range and no back-test: leave out from, to and backtest, or kept")
	}
	return before(r.From, r.To)
}

// Suggest answers with the least roles that subjects need.
func (a *Service) Suggest(ctx context.Context, q SuggestRequest) (out SuggestAnswer, err error) {
	if !q.Kept || !q.All || q.Changes || a.Now == nil {
		return a.suggestNow(ctx, &q)
	}
	key := fmt.Sprintf("%q", []any{q.Cluster, q.System, q.Unseen, q.Strict, q.NoAddedVerbs, q.Wildcards, q.Learned})
	kept, at, err := a.kept.Answer(ctx, key, a.Now(), func(ctx context.Context, have any) (any, error) {
		if have, ok := have.(SuggestAnswer); ok && a.holds(ctx, &have) {
			return have, nil
		}
		return a.suggestNow(ctx, &q)
	})
	if err != nil {
		return out, err
	}
	out = kept.(SuggestAnswer)
	out.Read = at
	return out, nil
}

// Renew makes anew what pages have asked for, before what is kept is too old. Call it every minute.
func (a *Service) Renew(ctx context.Context) error { return a.kept.Renew(ctx, a.Now()) }

// holds reports whether neither what is counted nor the policy has changed since an answer was made.
func (a *Service) holds(ctx context.Context, have *SuggestAnswer) bool {
	st, err := a.stateOf(ctx, have.Cluster, Latest)
	if err != nil || st.RBAC(Latest).RBAC != have.policy {
		return false
	}
	recorded, _, err := a.Store.Counted(ctx, have.Cluster)
	now := (&past.Past{Recorded: recorded}).Recording()
	return err == nil && now.Requests == have.Window.Requests && now.Judged == have.Window.Judged && now.To.Equal(have.Window.To)
}

func (a *Service) suggestNow(ctx context.Context, q *SuggestRequest) (out SuggestAnswer, err error) {
	cluster := q.Cluster
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
	did, err := a.past(ctx, q, st.RBAC(Latest).RBAC)
	if err != nil {
		return out, err
	}
	if did.Recorded.Requests == 0 && a.Offline {
		return out, none("no request of this time is in the log")
	}
	if did.Recorded.Requests == 0 {
		return out, none("no request of cluster %q is stored in this range", cluster)
	}
	// What was refused or allowed is looked at by the policy of its time.
	if st, err = a.Replay.State(ctx, cluster, did.Since); err != nil {
		return out, err
	}
	recording := did.Recording()
	recording.Describe(st, did.Since)
	wild := q.Wildcards == "verbs"
	advisor := did.Collector.Advise(st, Latest, leastpriv.Options{Metadata: did.Metadata, Recording: recording, Strict: q.Strict || wild,
		NoAddedVerbs: q.NoAddedVerbs, WildcardVerbs: wild})
	out = SuggestAnswer{Cluster: q.Cluster, Window: advisor.Recording(), policy: st.RBAC(Latest).RBAC,
		Suggestions: []*leastpriv.Suggestion{}, Unseen: []leastpriv.Unseen{}}
	if err = a.suggest(ctx, &out, did.Collector, advisor, q, st); err == nil && q.Backtest {
		err = a.backtest(ctx, &out, q, st, &did.Recorded)
	}
	return out, err
}

// past returns what is asked about: all that rollups count, and from events what they do not tell, which is a range of time and each name.
func (a *Service) past(ctx context.Context, q *SuggestRequest, policy *rbacindex.Snapshot) (*past.Past, error) {
	if q.Strict || q.Wildcards == "verbs" || q.Backtest || !q.From.IsZero() || !q.To.IsZero() {
		return past.Read(ctx, a.Store, q.Cluster, q.From, q.To, q.read())
	}
	return past.Count(ctx, a.Store, q.Cluster, q.read(), policy)
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
		first, err := past.Collect(ctx, a.Store, q.Cluster, q.From, at, q.read())
		if err != nil {
			return err
		}
		rest, err := past.Collect(ctx, a.Store, q.Cluster, at, q.To, q.read())
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

// suggest makes the suggestions that are wanted, and joins them.
func (a *Service) suggest(ctx context.Context, out *SuggestAnswer, collector *leastpriv.Collector, advisor *leastpriv.Advisor,
	q *SuggestRequest, st *state.State) (err error) {
	if q.targets() {
		return out.suggestFor(advisor, q, st.RBAC(Latest).RBAC)
	}
	names, err := q.names(collector, advisor, st.RBAC(Latest).RBAC)
	if err != nil {
		return err
	}
	if q.All {
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
			if slices.Contains(known.Groups(st.RBAC(Latest).RBAC), name) {
				return none("%q is a group: ask for it with --group (group=)", name)
			}
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
