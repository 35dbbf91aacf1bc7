package leastpriv

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/test/golden"
	"github.com/retrial-io/retrial/test/workload"
	"github.com/retrial-io/retrial/verdict"
)

// recordedPast is a recording that can be cut.
type recordedPast struct {
	name     string
	state    *state.State
	from, to time.Time
	each     func(t *testing.T, take func(*event.Event, *verdict.Verdict))
}

// at returns the moment when so many percent of the time have passed.
func (p *recordedPast) at(percent int) time.Time {
	return p.from.Add(p.to.Sub(p.from) * time.Duration(percent) / 100)
}

// parts collects the recording before each of the moments, and from it on.
func (p *recordedPast) parts(t *testing.T, cuts ...int) (before, after map[int]*Collector) {
	before, after = map[int]*Collector{}, map[int]*Collector{}
	for _, c := range cuts {
		before[c], after[c] = NewCollector(), NewCollector()
	}
	p.each(t, func(e *event.Event, v *verdict.Verdict) {
		for _, c := range cuts {
			into := after[c]
			if e.RequestReceivedTimestamp.Before(p.at(c)) {
				into = before[c]
			}
			into.Observe(e, v)
		}
	})
	return before, after
}

// bundled is the recording that comes with the product.
func bundled(t *testing.T) recordedPast {
	whole := recorded(t, Options{})
	r := whole.collector.Recording()
	return recordedPast{"The bundled recording (nine minutes)", whole.state, r.From, r.To, func(t *testing.T,
		take func(*event.Event, *verdict.Verdict)) {
		if _, err := evaluate.Run(context.Background(), evaluate.Options{
			Engine: replay.New(replay.Config{}),
			States: []evaluate.Input{{Name: sample.StateName, Open: sample.OpenState}},
			Events: []evaluate.Input{{Name: sample.AuditLogName, Open: sample.OpenAuditLog}},
			Sink: func(e *event.Event, v *verdict.Verdict) error {
				take(e, v)
				return nil
			},
		}); err != nil {
			t.Fatal(err)
		}
	}}
}

// weeksOf are five weeks of a seed.
func weeksOf(t *testing.T, seed uint64) recordedPast {
	snap, events, err := workload.Weeks{Seed: seed}.Make()
	if err != nil {
		t.Fatal(err)
	}
	st := state.New("weeks")
	if _, err := st.LoadSnapshot(*snap); err != nil {
		t.Fatal(err)
	}
	engine := replay.New(replay.Config{})
	return recordedPast{fmt.Sprintf("Five weeks of seed %d", seed), st, events[0].RequestReceivedTimestamp,
		events[len(events)-1].RequestReceivedTimestamp, func(_ *testing.T, take func(*event.Event, *verdict.Verdict)) {
			for _, e := range events {
				take(e, engine.Replay(e, st))
			}
		}}
}

// TestDocsLeastPrivilege cuts recordings in time: changes in every form are made of the first part and asked about the rest. It keeps
// docs/least-privilege.md, and holds narrowed roles to what they may refuse, leave and add.
func TestDocsLeastPrivilege(t *testing.T) {
	var b strings.Builder
	pasts := []recordedPast{bundled(t), weeksOf(t, 1), weeksOf(t, 2), weeksOf(t, 3)}
	for i := range pasts {
		p := &pasts[i]
		fmt.Fprintf(&b, "\n### %s\n\n| made of | form | refused of later requests | subjects with a refusal | the same of learned "+
			"ones | newly allowed | excess, of today's | objects, today and then |\n"+
			"| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |\n",
			p.name)
		before, after := p.parts(t, append(Cuts(), 80)...)
		for _, percent := range Cuts() {
			r, err := BacktestOf(before[percent], after[percent], p.state, p.at(percent), before[percent].Subjects())
			if err != nil {
				t.Fatal(err)
			}
			hold(t, fmt.Sprintf("%s, %d %%", p.name, percent), &r)
			today := r.Forms[0]
			for _, f := range r.Forms {
				fmt.Fprintf(&b, "| %d %% | %s | %d of %d (%.2f %%) | %d of %d | %d of %d; %d of %d | %d | %.0f %% | %d, %d |\n",
					percent, f.Form, f.Refused, r.Requests, 100*float64(f.Refused)/float64(r.Requests), f.RefusedSubjects, r.Subjects,
					f.LearnedRefused, r.LearnedRequests, f.LearnedRefusedSubjects, r.Learned, f.NewlyAllowed,
					100*float64(f.Excess)/float64(today.Excess), today.Objects, f.Objects)
			}
		}
		other, lines := unlike(t, before[80], before[90], p.state, p.at(80), p.at(90))
		fmt.Fprintf(&b, "\nA tenth of the log later, between 80 and 90 %%, %.1f %% of the subjects get another suggestion. The median "+
			"change is %d lines long, the longest %d.\n", 100*other, lines[len(lines)/2], lines[len(lines)-1])
	}
	const begin, end = "<!-- figures: rewritten by make golden -->\n", "<!-- end of figures -->\n"
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "least-privilege.md"))
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(page), begin)
	_, tail, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatal("docs/least-privilege.md has no place for the figures")
	}
	golden.File(t, "docs/least-privilege.md", head+begin+b.String()+"\n"+end+tail)
}

// hold holds narrowed roles to their bounds.
func hold(t *testing.T, what string, r *Backtest) {
	bounds := map[string]struct{ refused, excess float64 }{ // at most, of the requests and of today's excess
		BacktestNarrow: {0.003, 0.45}, BacktestNoAdded: {0.015, 0.40},
	}
	today := r.Forms[0]
	for _, f := range r.Forms {
		t.Logf("%s, %s: %d of %d requests refused (%.2f %%), of %d of %d subjects; excess %d of %d; objects %d, then %d; new %d",
			what, f.Form, f.Refused, r.Requests, 100*float64(f.Refused)/float64(r.Requests), f.RefusedSubjects, r.Subjects, f.Excess,
			today.Excess, today.Objects, f.Objects, f.NewlyAllowed)
		most, narrowed := bounds[f.Form]
		if narrowed && (float64(f.Refused) > most.refused*float64(r.Requests) || float64(f.Excess) > most.excess*float64(today.Excess) ||
			f.Objects > today.Objects || f.NewlyAllowed > 0) {
			t.Errorf("%s, %s: that is more than narrowed roles may refuse, leave, add or allow; first of all %v", what, f.Form, f.Lost)
		}
		if f.Form == BacktestNarrow && float64(f.LearnedRefused) > 0.005*float64(r.LearnedRequests) {
			t.Errorf("%s: %d of %d requests of learned subjects are refused", what, f.LearnedRefused, r.LearnedRequests)
		}
	}
	if today.Refused > 0 || r.Requests == 0 || r.Forms[3].Refused == 0 {
		t.Errorf("%s: today's roles refuse %d of %d, exact ones %d", what, today.Refused, r.Requests, r.Forms[3].Refused)
	}
}

// unlike returns the share of the subjects of a part whose suggestion is another one in a longer part, and how many lines of YAML the
// changes of the longer part have, in order.
func unlike(t *testing.T, shorter, longer *Collector, st *state.State, at, later time.Time) (share float64, lines []int) {
	texts := func(c *Collector, at time.Time) map[string]string {
		out := map[string]string{}
		a := c.Advise(st, at, Options{})
		for _, name := range c.Subjects() {
			s, err := a.Suggest(name)
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, o := range s.Apply {
				doc, err := yaml.Marshal(o)
				if err != nil {
					t.Fatal(err)
				}
				text += string(doc)
			}
			for i := range s.Remove {
				text += s.Remove[i].key.String() + "\n"
			}
			out[name] = text
		}
		return out
	}
	first, then := texts(shorter, at), texts(longer, later)
	other := 0
	for name, text := range first {
		if text != then[name] {
			other++
		}
	}
	for _, text := range then {
		lines = append(lines, strings.Count(text, "\n"))
	}
	slices.Sort(lines)
	return float64(other) / float64(len(first)), lines
}
