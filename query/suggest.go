package query

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/storage"
)

// subjectQueries is what the questions about subjects ask the store.
type subjectQueries interface {
	// SubjectUsage sums what a subject did, by day, with at most limit distinct uses.
	SubjectUsage(ctx context.Context, cluster, subject string, from, to time.Time, limit int) (storage.SubjectUsage, error)
	// NearSubjects returns subjects that are called much like a name.
	NearSubjects(ctx context.Context, cluster, name string, limit int) ([]string, error)
	// Recording sums up a range, in whole minutes; zero bounds leave it open.
	Recording(ctx context.Context, cluster string, from, to time.Time) (storage.Recording, error)
	// History visits the requests of a range, alike ones once; of all subjects when none is named.
	History(ctx context.Context, cluster string, from, to time.Time, subjects []string, visit func(storage.Alike) error) error
	// NewestPolicy visits the newest content of every object of the given resources.
	NewestPolicy(ctx context.Context, cluster string, resources []string, visit func(observation []byte) error) error
}

// suggestRoutes are the questions about a subject and the least roles it needs.
func (a *Service) suggestRoutes() []Question {
	return []Question{
		{"subject", []string{"cluster", "user", "from", "to"}, CostQuery, a.subject},
		{"suggest", []string{"cluster", "subject", "all", "from", "to", "includeSystem", "includeUnseen", "wildcards"}, CostHistory, a.suggest},
	}
}

// SuggestAnswer is what subjects need, and the change that leaves them that.
type SuggestAnswer struct {
	Cluster string `json:"cluster"`
	// Window is what the recording covers, and lacks.
	Window      leastpriv.Recording     `json:"window"`
	Suggestions []*leastpriv.Suggestion `json:"suggestions"` // the most excess first
	// Unseen subjects hold bindings and made no request; of all subjects only.
	Unseen []leastpriv.Unseen `json:"unseen"`
	// Plan is all suggestions in force together.
	Plan *leastpriv.Plan `json:"plan"`
}

// Wanted says for whom suggestions are made.
type Wanted struct {
	Subjects       []string // none: all
	System, Unseen bool     // also those
	wildcards      bool     // verbs may be wildcards
}

func (a *Service) suggest(ctx context.Context, q url.Values) (any, error) {
	cluster, from, to, err := window(q)
	if err != nil {
		return nil, err
	}
	want, err := wantedOf(q)
	if err != nil {
		return nil, err
	}
	st, ok := a.stateOf(ctx, cluster)
	if !ok || noPolicy(st) {
		return nil, none("nothing is known of the roles and bindings of cluster %q; list them once and import the list:\n%s", cluster, AdviceFor(cluster, "no-state").Command)
	}
	recorded, err := a.Store.Recording(ctx, cluster, from, to)
	if err != nil {
		return nil, err
	}
	if recorded.Requests == 0 {
		return nil, none("no request of cluster %q is stored in this range", cluster)
	}
	collector := leastpriv.NewCollector()
	if err := a.Store.History(ctx, cluster, from, to, want.Subjects, func(r storage.Alike) error {
		collector.ObserveMany(r.Event, r.Verdict, leastpriv.Count{Requests: r.Requests, First: r.First, Last: r.Last})
		return nil
	}); err != nil {
		return nil, err
	}
	metas := Metadata{}
	if err := a.Store.NewestPolicy(ctx, cluster, metas.resources(), func(text []byte) error {
		if o, err := state.DecodeObservation(text); err == nil { // as in the replay: what cannot be read stays unknown
			metas.Add([]state.Observation{o}, true)
		}
		return nil
	}); err != nil {
		return nil, err
	}
	recording := recordingOf(&recorded)
	recording.Describe(st)
	advisor := collector.Advise(st, Latest, leastpriv.Options{Metadata: metas.Of, Recording: recording, WildcardVerbs: want.wildcards})
	out, err := SuggestAll(ctx, collector, advisor, want, func(name string) []string {
		near, err := a.Store.NearSubjects(ctx, cluster, name, 5)
		if err != nil {
			return nil // a hint
		}
		return near
	})
	if err != nil {
		return nil, err
	}
	out.Cluster = cluster
	return out, nil
}

// policyPatience is how long a question waits for a server that has just started, and still
// reads the policy.
const policyPatience = 10 * time.Second

// stateOf returns what is known of a cluster. Where that is nothing, it may be that the
// Replay has not got that far.
func (a *Service) stateOf(ctx context.Context, cluster string) (*state.State, bool) {
	if st, ok := a.Replay.State(cluster); ok && !noPolicy(st) {
		return st, true
	}
	ctx, cancel := context.WithTimeout(ctx, policyPatience)
	defer cancel()
	// Whether it got there or not: the question is answered by what is known now.
	_ = a.settled(ctx)
	return a.Replay.State(cluster)
}

// noPolicy tells whether no kind of RBAC object was ever listed: what a log shows of them
// alone is too little to take anything away.
func noPolicy(st *state.State) bool { return len(st.RBAC(Latest).UnknownKinds) == 4 }

// wantedOf reads for whom suggestions are wanted.
func wantedOf(q url.Values) (w Wanted, err error) {
	all := false
	for name, into := range map[string]*bool{"all": &all, "includeSystem": &w.System, "includeUnseen": &w.Unseen} {
		text, err := oneOf(q, name, "true", "false")
		if err != nil {
			return w, err
		}
		*into = text == "true"
	}
	wildcards, err := oneOf(q, "wildcards", "none", "verbs")
	if err != nil {
		return w, err
	}
	w.wildcards = wildcards == "verbs"
	if subject := q.Get("subject"); subject != "" {
		w.Subjects = strings.Split(subject, "\n")
	}
	switch {
	case all == (len(w.Subjects) > 0):
		return w, Bad("say who is meant: subject, or all=true")
	case slices.Contains(w.Subjects, ""):
		return w, Bad("subject: a name is empty")
	}
	return w, nil
}

// recordingOf is what the store says of a range, as suggestions carry it.
func recordingOf(r *storage.Recording) leastpriv.Recording {
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

// SuggestAll makes the suggestions that are wanted, and joins them. near finds names like
// one that is unknown.
func SuggestAll(ctx context.Context, collector *leastpriv.Collector, advisor *leastpriv.Advisor, want Wanted, near func(string) []string) (*SuggestAnswer, error) {
	out := &SuggestAnswer{Window: advisor.Recording(), Suggestions: []*leastpriv.Suggestion{}, Unseen: []leastpriv.Unseen{}}
	names := slices.Compact(slices.Sorted(slices.Values(want.Subjects)))
	if len(names) == 0 {
		names = slices.DeleteFunc(collector.Subjects(), func(name string) bool { return !want.System && collector.System(name) })
		out.Unseen = slices.DeleteFunc(advisor.Unseen(), func(u leastpriv.Unseen) bool { return !want.System && collector.System(u.Subject) })
		if want.Unseen {
			for _, u := range out.Unseen {
				names = append(names, u.Subject)
			}
		}
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		one, err := advisor.Suggest(name)
		if errors.Is(err, leastpriv.ErrUnknownSubject) {
			return nil, unknownSubject(name, collector.Seen(name), near)
		}
		if err != nil {
			return nil, err
		}
		if one.System && !want.System {
			return nil, Bad("%q belongs to Kubernetes itself; taking rights from it can break the cluster: add --include-system (includeSystem=true) if that is meant", name)
		}
		out.Suggestions = append(out.Suggestions, one)
	}
	sort.SliceStable(out.Suggestions, func(i, j int) bool {
		a, b := out.Suggestions[i].Excess, out.Suggestions[j].Excess
		return a.Before-a.After > b.Before-b.After
	})
	var err error
	out.Plan, err = advisor.Together(out.Suggestions)
	return out, err
}

func unknownSubject(name string, seen bool, near func(string) []string) error {
	if seen {
		return none("%q made requests, but RBAC decided none of them: there is nothing to suggest", name)
	}
	hint := "; a subject is a user name as events have it, such as system:serviceaccount:NAMESPACE:NAME"
	if list := near(name); len(list) > 0 {
		for i := range list {
			list[i] = fmt.Sprintf("%q", list[i])
		}
		hint = "; did you mean " + strings.Join(list, ", ") + "?"
	}
	return none("no request of %q is recorded, and no binding names it%s", name, hint)
}
