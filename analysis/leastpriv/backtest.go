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
	names, rest := []string{}, []laterUse{}
	a := before.Advise(st, at, Options{})
	for _, name := range subjects {
		if !before.Seen(name) {
			continue
		}
		base, err := a.without(name)
		if err != nil {
			return out, err
		}
		q := laterUseOf(name, later.historyOf(name), a.view.RBAC)
		q.learned = maturityOf(a.historyOf(name), base, at).Learned
		names, rest = append(names, name), append(rest, q)
		if q.requests == 0 {
			continue
		}
		out.Requests, out.Subjects = out.Requests+q.requests, out.Subjects+1
		if q.learned {
			out.LearnedRequests, out.Learned = out.LearnedRequests+q.requests, out.Learned+1
		}
	}
	for _, form := range []struct {
		name               string
		strict, companions bool
		make               func(*Advisor, []string) (*rbacindex.Snapshot, error)
	}{
		{BacktestToday, false, true, (*Advisor).today}, {BacktestNarrow, false, true, (*Advisor).suggested},
		{BacktestNoAdded, false, false, (*Advisor).suggested}, {BacktestStrict, true, true, (*Advisor).suggested},
		{BacktestUnion, false, true, (*Advisor).united},
	} {
		a.strict, a.companions, a.steps = form.strict, form.companions, allSteps
		final, err := form.make(a, names)
		if err != nil {
			return out, fmt.Errorf("back-test of form %s: %w", form.name, err)
		}
		f := BacktestForm{Form: form.name, Excess: a.excessIn(final, names), Objects: size(final), Lost: []Lost{}}
		for i := range rest {
			f.ask(&rest[i], final)
		}
		slices.SortStableFunc(f.Lost, func(a, b Lost) int {
			return cmp.Or(cmp.Compare(b.Count, a.Count), strings.Compare(a.Subject, b.Subject), strings.Compare(a.Access, b.Access))
		})
		f.Lost = f.Lost[:min(len(f.Lost), mostLost):min(len(f.Lost), mostLost)]
		out.Forms = append(out.Forms, f)
	}
	return out, nil
}

// laterUse is what a subject asked for later: what the roles at the cut allow, and what they and the record refuse.
type laterUse struct {
	subject         string
	learned         bool
	needs, refusals []*need
	requests        int64 // of the needs
}

func laterUseOf(subject string, h *history, today *rbacindex.Snapshot) laterUse {
	q := laterUse{subject: subject}
	for i := range h.needs {
		if n := &h.needs[i]; n.allowed(today) {
			q.needs, q.requests = append(q.needs, n), q.requests+n.count
		}
	}
	for i := range h.refusals {
		if n := &h.refusals[i]; !n.allowed(today) {
			q.refusals = append(q.refusals, n)
		}
	}
	return q
}

// ask asks a policy about what a subject did later.
func (f *BacktestForm) ask(q *laterUse, final *rbacindex.Snapshot) {
	refused := int64(0)
	for _, n := range q.needs {
		if !n.allowed(final) {
			refused += n.count
			f.Lost = append(f.Lost, Lost{q.subject, n.String(), n.count})
		}
	}
	for _, n := range q.refusals {
		if n.allowed(final) {
			f.NewlyAllowed++
		}
	}
	if refused == 0 {
		return
	}
	f.Refused, f.RefusedSubjects = f.Refused+refused, f.RefusedSubjects+1
	if q.learned {
		f.LearnedRefused, f.LearnedRefusedSubjects = f.LearnedRefused+refused, f.LearnedRefusedSubjects+1
	}
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
		_, _, n, _ := a.weigh(policy, a.indexOf(name), own[name])
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
	change := roleChange{write: plan.Apply, remove: plan.Remove}
	final, err := a.view.RBAC.Apply(change.changes()...)
	if err != nil {
		return nil, fmt.Errorf("put suggestions in force: %w", err)
	}
	return final, nil
}
