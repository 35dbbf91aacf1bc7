package leastpriv

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
)

// Backtest is what changes that the first part of a recording gives would have done to the rest of it.
type Backtest struct {
	Percent int       `json:"percent"` // of the window, that the changes are made of
	At      time.Time `json:"at"`      // when the rest begins
	// Requests of the rest that the roles at the cut allow. Of subjects that only the rest has, no change is made, and theirs are not
	// counted.
	Requests        int64 `json:"requests"`
	Subjects        int   `json:"subjects"`        // that made them
	Learned         int   `json:"learned"`         // of the subjects, those that were learned at the cut
	LearnedRequests int64 `json:"learnedRequests"` // theirs
	// Forms of a change, side by side; the first is none.
	Forms []BacktestForm `json:"forms"`
}

// BacktestForm is one form of a change, in force for all subjects together.
type BacktestForm struct {
	Form                   string `json:"form"`                   // today, narrow, no-added-verbs, strict or union
	Refused                int64  `json:"refused"`                // how many of the requests it refuses
	RefusedSubjects        int    `json:"refusedSubjects"`        // whose they are
	LearnedRefused         int64  `json:"learnedRefused"`         // how many of those of learned subjects it refuses
	LearnedRefusedSubjects int    `json:"learnedRefusedSubjects"` // whose they are
	// NewlyAllowed counts the distinct requests that were refused in the rest, and by the roles at the cut, and are allowed.
	NewlyAllowed int `json:"newlyAllowed"`
	// Excess of the subjects' own bindings with all changes in force, by what the first part used.
	Excess  int    `json:"excess"`
	Objects int    `json:"objects"` // roles and bindings there are then
	Lost    []Lost `json:"lost"`    // what is refused, the most often first; at most mostLost
}

// Forms of a back-test.
const (
	BacktestToday   = "today"          // roles as they were at the cut
	BacktestNarrow  = "narrow"         // the default
	BacktestNoAdded = "no-added-verbs" // narrow, without the verbs that go with those used
	BacktestStrict  = "strict"         // exactly what was used
	BacktestUnion   = "union"          // what audit2rbac makes: see union
)

// Lost is a request that a change refuses although it was made later.
type Lost struct {
	Subject string `json:"subject"`
	Access  string `json:"access"` // such as "list pods in shop"
	Count   int64  `json:"count"`
}

// mostLost bounds the requests that a form names.
const mostLost = 10

// Cuts are where a recording is cut, in percent of its window.
func Cuts() []int { return []int{50, 70, 90} }

// BacktestOf makes every form of a change for some subjects of what was recorded before a moment, by the policy of that moment, and asks it
// about what was recorded from then on. Subjects that were not seen before are left out.
func BacktestOf(before, after *Collector, st *state.State, at time.Time, subjects []string) (Backtest, error) {
	out := Backtest{At: at, Forms: []BacktestForm{}}
	later := after.Advise(st, at, Options{})
	names, learned := []string{}, map[string]bool{}
	a := before.Advise(st, at, Options{})
	for _, name := range subjects {
		if !before.Seen(name) {
			continue
		}
		base, err := a.without(name)
		if err != nil {
			return out, err
		}
		names, learned[name] = append(names, name), maturityOf(a.historyOf(name), base, at).Learned
	}
	for _, form := range []struct {
		name string
		o    Options
		make func(*Advisor, []string) (*rbacindex.Snapshot, error)
	}{
		{BacktestToday, Options{}, (*Advisor).today}, {BacktestNarrow, Options{}, (*Advisor).suggested},
		{BacktestNoAdded, Options{NoAddedVerbs: true}, (*Advisor).suggested}, {BacktestStrict, Options{Strict: true}, (*Advisor).suggested},
		{BacktestUnion, Options{}, (*Advisor).united},
	} {
		a := before.Advise(st, at, form.o)
		final, err := form.make(a, names)
		if err != nil {
			return out, fmt.Errorf("back-test of form %s: %w", form.name, err)
		}
		f := BacktestForm{Form: form.name, Excess: a.excessIn(final, names), Objects: size(final), Lost: []Lost{}}
		out.Requests, out.Subjects, out.Learned, out.LearnedRequests = 0, 0, 0, 0
		for _, name := range names {
			refused := f.Refused
			n := f.ask(name, later.historyOf(name), a.view.RBAC, final)
			if n == 0 {
				continue
			}
			out.Requests, out.Subjects = out.Requests+n, out.Subjects+1
			if refused = f.Refused - refused; refused > 0 {
				f.RefusedSubjects++
			}
			if learned[name] {
				out.Learned, out.LearnedRequests, f.LearnedRefused = out.Learned+1, out.LearnedRequests+n, f.LearnedRefused+refused
				f.LearnedRefusedSubjects += int(min(refused, 1))
			}
		}
		slices.SortStableFunc(f.Lost, func(a, b Lost) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Subject, b.Subject), strings.Compare(a.Access, b.Access))
		})
		f.Lost = f.Lost[:min(len(f.Lost), mostLost):min(len(f.Lost), mostLost)]
		out.Forms = append(out.Forms, f)
	}
	return out, nil
}

// ask asks a policy about what a subject did later, and returns how many requests that were.
func (f *BacktestForm) ask(subject string, h *history, today, final *rbacindex.Snapshot) (requests int64) {
	for i := range h.needs {
		n := &h.needs[i]
		if !n.allowed(today) {
			continue
		}
		requests += n.count
		if !n.allowed(final) {
			f.Refused += n.count
			f.Lost = append(f.Lost, Lost{subject, n.String(), n.count})
		}
	}
	for i := range h.refusals {
		if n := &h.refusals[i]; !n.allowed(today) && n.allowed(final) {
			f.NewlyAllowed++
		}
	}
	return requests
}

// size counts the objects of a policy.
func size(policy *rbacindex.Snapshot) int {
	roles, clusterRoles, bindings, clusterBindings := policy.Len()
	return roles + clusterRoles + bindings + clusterBindings
}

// excessIn returns the weight of what a policy grants the subjects by name and they did not use.
func (a *Advisor) excessIn(policy *rbacindex.Snapshot, subjects []string) (excess int) {
	own, _ := boundBy(policy)
	for _, name := range subjects {
		_, _, n, _ := a.weigh(policy, indexNeeds(a.historyOf(name).needs), own[name])
		excess += n
	}
	return excess
}

// today changes nothing.
func (a *Advisor) today([]string) (*rbacindex.Snapshot, error) { return a.view.RBAC, nil }

// suggested is the policy with the suggestions for all subjects in force.
func (a *Advisor) suggested(subjects []string) (*rbacindex.Snapshot, error) {
	var all []*Suggestion
	for _, name := range subjects {
		s, err := a.Suggest(name)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	plan, err := a.Together(all)
	if err != nil {
		return nil, err
	}
	var changes []rbacindex.Change
	for i := range plan.Remove {
		changes = append(changes, rbacindex.Change{Key: plan.Remove[i].key, Object: plan.Remove[i].Object})
	}
	for _, o := range plan.Apply {
		changes = append(changes, change(o))
	}
	final, err := a.view.RBAC.Apply(changes...)
	if err != nil {
		return nil, fmt.Errorf("put suggestions in force: %w", err)
	}
	return final, nil
}
