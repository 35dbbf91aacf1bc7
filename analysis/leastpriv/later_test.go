package leastpriv

import (
	"context"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/verdict"
)

// TestLater cuts the recording: suggestions made of its first part, in force together, are asked about the rest, as far as the policy at
// the cut allows it. The figures are those of every subject, those of Kubernetes included.
func TestLater(t *testing.T) {
	whole := recorded(t, Options{})
	from, to := whole.collector.Recording().From, whole.collector.Recording().To
	type part struct {
		cut           time.Time
		before, after *Collector
	}
	parts := map[int]*part{}
	for _, percent := range []int{50, 70, 90} {
		parts[percent] = &part{from.Add(to.Sub(from) * time.Duration(percent) / 100), NewCollector(), NewCollector()}
	}
	if _, err := evaluate.Run(context.Background(), evaluate.Options{
		Engine: replay.New(replay.Config{}),
		States: []evaluate.Input{{Name: sample.StateName, Open: sample.OpenState}},
		Events: []evaluate.Input{{Name: sample.AuditLogName, Open: sample.OpenAuditLog}},
		Sink: func(e *event.Event, v *verdict.Verdict) error {
			for _, p := range parts {
				if e.RequestReceivedTimestamp.Before(p.cut) {
					p.before.Observe(e, v)
				} else {
					p.after.Observe(e, v)
				}
			}
			return nil
		},
	}); err != nil {
		t.Fatal(err)
	}
	for percent, p := range parts {
		for _, form := range []struct {
			name           string
			options        Options
			refused, after float64 // at most, of the requests and of today's excess
		}{{"narrow", Options{}, 0.003, 0.45}, {"no added verbs", Options{NoAddedVerbs: true}, 0.006, 0.30}} {
			a := p.before.Advise(whole.state, p.cut, form.options)
			var all []*Suggestion
			excess := Excess{}
			for _, name := range p.before.Subjects() {
				s, err := a.Suggest(name)
				if err != nil {
					t.Fatal(err)
				}
				excess.Before, excess.After = excess.Before+s.Excess.Before, excess.After+s.Excess.After
				all = append(all, s)
			}
			plan, err := a.Together(all)
			if err != nil {
				t.Fatal(err)
			}
			var changes []rbacindex.Change
			for _, r := range plan.Remove {
				changes = append(changes, rbacindex.Change{Key: r.key, Object: r.Object})
			}
			for _, o := range plan.Apply {
				changes = append(changes, change(o))
			}
			final, err := a.view.RBAC.Apply(changes...)
			if err != nil {
				t.Fatal(err)
			}
			later := p.after.Advise(whole.state, p.cut, Options{})
			var asked, refused, subjects int64
			for _, s := range all {
				before := refused
				for _, n := range later.historyOf(s.Subject).needs {
					if n.allowed(a.view.RBAC) {
						asked += n.count
						if !n.allowed(final) {
							refused += n.count
						}
					}
				}
				if refused > before {
					subjects++
				}
			}
			today, then := size(a.view.RBAC), size(final)
			t.Logf("%d %%, %s: %d of %d requests refused (%.2f %%), of %d of %d subjects; excess %d, alone %d; objects %d, then %d",
				percent, form.name, refused, asked, 100*float64(refused)/float64(asked), subjects, len(all), excess.Before, excess.After,
				today, then)
			if float64(refused) > form.refused*float64(asked) || float64(excess.After) > form.after*float64(excess.Before) || then > today {
				t.Error("that is more than suggestions may refuse, leave or add")
			}
		}
	}
}

// size counts the objects of a policy.
func size(policy *rbacindex.Snapshot) (n int) {
	policy.All(func(rbacindex.Key, any) bool {
		n++
		return true
	})
	return n
}
