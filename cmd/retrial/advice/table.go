// Package advice prints suggestions: as tables, and as a directory.
package advice

import (
	"fmt"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
)

// Backtests shows the forms of changes side by side, and what the default would have refused.
func Backtests(p *cli.Page, answer *query.SuggestAnswer) {
	p.Printf("WINDOW  %s\n\n", query.RecordingText(&answer.Window))
	p.Table("MADE OF\tFORM\tREFUSED LATER\tOF SUBJECTS\tOF LEARNED ONES\tNEWLY ALLOWED\tEXCESS\tOBJECTS")
	for i := range answer.Backtests {
		b := &answer.Backtests[i]
		for _, f := range b.Forms {
			p.Printf("%d %%\t%s\t%d of %d\t%d of %d\t%d of %d\t%d\t%d\t%d\n", b.Percent, f.Form, f.Refused, b.Requests, f.RefusedSubjects,
				b.Subjects, f.LearnedRefused, b.LearnedRequests, f.NewlyAllowed, f.Excess, f.Objects)
		}
	}
	for i := range answer.Backtests {
		b := &answer.Backtests[i]
		for _, f := range b.Forms {
			if f.Form != query.BacktestDefault || len(f.Lost) == 0 {
				continue
			}
			p.Printf("\nNarrowed roles made of the first %d %% would have refused, after %s:\n", b.Percent, b.At.Format(time.RFC3339))
			for _, l := range f.Lost {
				p.Printf("  %d  %s: %s\n", l.Count, l.Subject, l.Access)
			}
		}
	}
}

// Table ranks the subjects; of a single one it also says what is unused and what its groups keep.
func Table(p *cli.Page, answer *query.SuggestAnswer) {
	p.Printf("WINDOW  %s\n", query.RecordingText(&answer.Window))
	for i, g := range answer.Window.Gaps {
		p.Printf("%-6s  %s\n", map[bool]string{true: "GAPS"}[i == 0], g)
	}
	p.Printf("\n")
	p.Table("SUBJECT\tEXCESS\tAFTER\tBY GROUPS\tREQUESTS\tJUDGED\tMATURITY\tAPPLY\tREMOVE\tPROOF")
	listed := map[string]bool{}
	for _, s := range answer.Suggestions {
		listed[s.Subject] = true
		p.Named(s.Subject)
		name := s.Subject
		if s.What == query.SuggestedGroup {
			name = "group " + name
		}
		maturity := "learning"
		if s.Maturity.Learned {
			maturity = "learned"
		}
		p.Printf("%s\t%d\t%d\t%d\t%d\t%.1f %%\t%s\t%d\t%d\t%s\n", name, s.Excess.Before, s.Excess.After, s.Excess.Kept,
			s.Window.Requests, 100*s.Window.Coverage, maturity, s.Size.Apply, s.Size.Remove, query.ProofText(s))
	}
	for _, u := range answer.Unseen {
		if !listed[u.Subject] {
			p.Printf("%s\t%d\t\t\t0\t\t\t\t\tnever seen: all of it is unused (--include-unseen)\n", u.Subject, u.Excess)
		}
	}
	if len(answer.Suggestions) != 1 {
		return
	}
	s := answer.Suggestions[0]
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			p.Printf("\n%s\n", title)
		}
		for _, l := range lines {
			p.Printf("  %s\n", l)
		}
	}
	var unused, keeps []string
	for _, u := range s.Unused {
		more := ""
		if u.More > 0 {
			more = fmt.Sprintf(" and %d more", u.More)
		}
		if u.TooLarge && len(u.Unused) == 0 {
			more = "too large to weigh"
		}
		unused = append(unused,
			fmt.Sprintf("%d  %s, rule %d of %s: %s%s", u.Excess, u.Binding, u.Rule, u.Role, strings.Join(u.Unused, ", "), more))
	}
	for _, k := range s.Keeps {
		keeps = append(keeps, query.KeptText(&k))
	}
	if !s.Maturity.Learned {
		section("Still learning:", []string{s.Maturity.Why})
	}
	section("Granted and never used, by weight:", unused)
	section("Kept although never used:", s.KeptTexts())
	section("What groups go on giving:", keeps)
	section("Where the proof fails:", s.Proof.Failures)
	section("Gaps:", s.Gaps)
}
