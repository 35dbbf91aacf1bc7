package main

import (
	"bufio"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/query"
)

type suggestOptions struct {
	asker
	query.SuggestRequest
	final, force bool
	minWindow    time.Duration
}

// api/v1/suggest of the server, the store or a log (see asker) ─▶ SuggestAnswer ─▶ table | json | yaml
func newSuggest(s cli.Streams) *cobra.Command {
	var o suggestOptions
	c := &cobra.Command{
		Use:   "suggest [--subject USER | --all] [--state FILE|DIR --events FILE...]",
		Short: "Suggest the least roles a subject needs, with a proof",
		Long: `Suggest for each subject the roles it holds, narrowed to what it was recorded using: objects to
apply, bindings and roles to remove, and the way back. The proof replays the subject's whole recorded
history against the final state. docs/suggest.md has the rules.

A narrowed role keeps its scope and names, so that what comes next week in a new namespace is allowed,
and the verbs that go with those used, such as watch with list; --no-added-verbs leaves these out.
--strict suggests roles of the subject's own that hold exactly what was used.

The running server is asked about everything it has stored of the cluster, or what lies between --from
and --to; with none running the command reads the store itself. With --state and --events neither is
needed: the log is replayed here; --from-empty takes the place of --state where nothing was before it.

-o table ranks subjects by the weight of what they hold and never used; json is the change set; yaml
are the objects to apply, with the removals as comments. YAML from a recording shorter than --min-window
is refused without --force: what happens once a month is not in it. So is YAML for subjects that are
still learning; --learned leaves them out.

--backtest cuts the recording in time instead, and says what changes made of the first part would have
refused of the rest, beside today's roles and those that audit2rbac makes.`,
		Example: `  retrial suggest
  retrial suggest --subject sa/ci:runner -o yaml
  retrial suggest --state state.json --events audit.log --all -o json | jq '.[] | select(.proof.holds)'`,
		Args: cli.NoArgsBut("subjects are named with --subject"),
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.bind(c, s, &o.SuggestRequest, "cluster", "subject", "all", "from", "to", "includeSystem", "includeUnseen", "strict",
		"noAddedVerbs", "wildcards", "learned", "backtest")
	f := c.Flags()
	f.Lookup("apiserver-config").Hidden = false
	f.BoolVar(&o.final, "final", false, "print all RBAC objects that concern the subjects as they are after the change (-o yaml or json)")
	cli.DurationVar(c, &o.minWindow, "min-window", 7*24*time.Hour, "shortest recording YAML is made from")
	f.BoolVar(&o.force, "force", false, "make YAML from a shorter recording, or although a proof does not hold")
	return c
}

// check returns an error for flags that make no sense together, before anything is read.
func (o *suggestOptions) check() error {
	usage := func(format string, args ...any) error {
		return cli.ExitWith(cli.ExitUsage, fmt.Errorf(format, args...))
	}
	switch {
	case o.All && len(o.Subjects) > 0:
		return usage("--all and --subject exclude each other")
	case slices.ContainsFunc(o.Subjects, func(name string) bool { return strings.Contains(name, "\n") }):
		return usage("--subject: a name with a line break cannot be asked for; use --all")
	case o.Backtest && o.output == "yaml":
		return usage("--backtest makes no YAML: use -o table or json")
	case o.final && o.output == "table":
		return usage("--final prints objects: add -o yaml or -o json")
	}
	for i, name := range o.Subjects {
		user, err := cli.User("--subject", name)
		if err != nil {
			return err
		}
		o.Subjects[i] = user
	}
	if o.minWindow < 0 {
		return usage("--min-window %s: must not be negative", config.Duration(o.minWindow))
	}
	return nil
}

func (o *suggestOptions) run(ctx context.Context) error {
	if err := o.check(); err != nil {
		return err
	}
	began, q := time.Now(), o.SuggestRequest
	q.All, q.Changes = len(q.Subjects) == 0, o.output != "table"
	answer, err := answerOne(ctx, &o.asker, &q.Cluster, &q)
	if err != nil {
		return err
	}
	if err := o.allowed(&answer); err != nil {
		return err
	}
	if err := o.print(&answer); err != nil {
		return err
	}
	if len(answer.Suggestions) == 0 {
		fmt.Fprintln(o.Err, "hint: RBAC decided nothing about anybody but Kubernetes itself in this recording; --include-system adds that")
		return nil
	}
	if o.Backtest {
		return nil
	}
	before, after := 0, 0
	for _, one := range answer.Suggestions {
		before, after = before+one.Excess.Before, after+one.Excess.After
	}
	fmt.Fprintf(o.Err, "subjects: %d, in %.1f s; excess %d, after the changes %d; %s\n", len(answer.Suggestions),
		time.Since(began).Seconds(), before, after, answer.Verdict())
	return nil
}

// allowed returns an error if YAML must not be made; with --force it warns instead.
func (o *suggestOptions) allowed(answer *query.SuggestAnswer) error {
	if seen := answer.Window.To.Sub(answer.Window.From); seen < o.minWindow {
		short := fmt.Sprintf("the recording covers %s, less than --min-window %s: what happens more rarely is not in it",
			seen.Round(time.Second), config.Duration(o.minWindow))
		if o.output == "yaml" && !o.force {
			return fmt.Errorf("%s; record for longer, or --force", short)
		}
		fmt.Fprintln(o.Err, "hint:", short)
	}
	if err := o.learned(answer); err != nil {
		return err
	}
	if o.output == "yaml" && !answer.Plan.Holds && !o.force {
		return fmt.Errorf("%s: see -o table, or --force", answer.Verdict())
	}
	return nil
}

// learned returns an error if YAML is wanted for subjects that are still learning.
func (o *suggestOptions) learned(answer *query.SuggestAnswer) error {
	if o.output != "yaml" || o.force || o.final {
		return nil
	}
	var learning []*query.Suggestion
	for _, s := range answer.Suggestions {
		if s.Changes() && s.Seen && !s.Maturity.Learned {
			learning = append(learning, s)
		}
	}
	if len(learning) == 0 {
		return nil
	}
	first := learning[0]
	if len(answer.Suggestions) == 1 {
		return fmt.Errorf("%s is still learning: %s; record for longer, or --force", first.Subject, first.Maturity.Why)
	}
	return fmt.Errorf("%d of %d subjects are still learning, such as %s: %s; --learned leaves them out, or --force", len(learning),
		len(answer.Suggestions), first.Subject, first.Maturity.Why)
}

func (o *suggestOptions) print(answer *query.SuggestAnswer) error {
	switch {
	case o.final && o.output == "json":
		return cli.PrintAs(o.Out, "json", map[string]any{"apiVersion": "v1", "kind": "List", "items": answer.Plan.Final})
	case o.output == "yaml":
		out := bufio.NewWriterSize(o.Out, 1<<16)
		if err := answer.WriteYAML(out, o.final); err != nil {
			return err //nolint:wrapcheck // it says what failed
		}
		if err := out.Flush(); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
		return nil
	}
	if o.Backtest {
		return o.show(answer.Backtests, func(p *cli.Page) { backtestTable(p, answer) })
	}
	return o.show(answer.Suggestions, func(p *cli.Page) { suggestTable(p, answer) })
}

// backtestTable shows the forms of changes side by side, and what the default would have refused.
func backtestTable(p *cli.Page, answer *query.SuggestAnswer) {
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

// suggestTable ranks the subjects; of a single one it also says what is unused and what its groups keep.
func suggestTable(p *cli.Page, answer *query.SuggestAnswer) {
	p.Printf("WINDOW  %s\n", query.RecordingText(&answer.Window))
	for i, g := range answer.Window.Gaps {
		p.Printf("%-6s  %s\n", nth("GAPS", i), g)
	}
	p.Printf("\n")
	p.Table("SUBJECT\tEXCESS\tAFTER\tBY GROUPS\tREQUESTS\tJUDGED\tMATURITY\tAPPLY\tREMOVE\tPROOF")
	listed := map[string]bool{}
	for _, s := range answer.Suggestions {
		listed[s.Subject] = true
		p.Named(s.Subject)
		maturity := "learning"
		if s.Maturity.Learned {
			maturity = "learned"
		}
		p.Printf("%s\t%d\t%d\t%d\t%d\t%.1f %%\t%s\t%d\t%d\t%s\n", s.Subject, s.Excess.Before, s.Excess.After, s.Excess.Kept,
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
