package main

import (
	"bufio"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/cmd/retrial/advice"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/phrase"
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
		Use:   "suggest [--subject USER | --group NAME | --role NAME | --binding NAME] [--state FILE|DIR --events FILE...]",
		Short: "Suggest the least roles a subject needs, with a proof",
		Long: `Suggest for each subject the roles it holds, narrowed to what it was recorded using: objects to
apply, bindings and roles to remove, and the way back. The proof replays the subject's whole recorded
history against the final state. docs/suggest.md has the rules.

A narrowed role keeps its scope and names, so that what comes next week in a new namespace is allowed,
and the verbs that go with those used, such as watch with list; --no-added-verbs leaves these out.
--strict suggests roles of the subject's own that hold exactly what was used.

Besides subjects, by name or as a pattern with * and ?, a group, a role or a binding can be asked about:
its roles are narrowed to what anybody used of them, whoever else gives that too.

The running server is asked about everything it has stored of the cluster, or what lies between --from
and --to; with none running the command reads the store itself. With --state and --events neither is
needed: the log is replayed here; --from-empty takes the place of --state where nothing was before it.

-o table ranks subjects by the weight of what they hold and never used; json is the change set; yaml
are the objects to apply, with the removals as comments. -o dir=PATH writes the change as a directory to
review, merge and apply: new objects, patches that fail where an object has changed since, removals, the
way back, a file for each owner of what Helm, Argo CD, Flux or an operator writes, and README.md, which
says in which order. YAML and a directory are refused without --force from a recording shorter than
--min-window (what happens once a month is not in it) and for subjects that are still learning;
--learned leaves these out.

--backtest cuts the recording in time instead, and says what changes made of the first part would have
refused of the rest, beside today's roles and those that audit2rbac makes.`,
		Example: `  retrial suggest
  retrial suggest --subject sa/ci:runner -o yaml
  retrial suggest --learned -o dir=narrower
  retrial suggest --group developers
  retrial suggest --role ClusterRole/edit-everything -o yaml
  retrial suggest --namespace 'team-*'
  retrial suggest --state state.json --events audit.log --all -o json | jq '.[] | select(.proof.holds)'`,
		Args: cli.NoArgsBut("subjects are named with --subject"),
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context()) },
	}
	o.bindForms(c, s, &o.SuggestRequest, append(cli.AnswerForms(), "dir=PATH"), "cluster", "subject", "all", "from", "to",
		"includeSystem", "includeUnseen", "strict", "noAddedVerbs", "wildcards", "learned", "backtest",
		"group", "role", "binding", "namespace")
	f := c.Flags()
	f.Lookup("apiserver-config").Hidden = false
	f.BoolVar(&o.final, "final", false, "print all RBAC objects that concern the subjects as they are after the change (-o yaml or json)")
	cli.DurationVar(c, &o.minWindow, "min-window", 7*24*time.Hour, "shortest recording that YAML or a directory is made from")
	f.BoolVar(&o.force, "force", false, "make YAML or a directory from a shorter recording, of subjects that are learning, "+
		"or although a proof does not hold; replace an earlier directory")
	return c
}

// directory returns where the change is written as one; "" if it is printed.
func (o *suggestOptions) directory() string {
	path, _ := strings.CutPrefix(o.output, "dir=")
	if path == o.output {
		return ""
	}
	return filepath.Clean(path)
}

// writes reports whether what is made is to be applied.
func (o *suggestOptions) writes() bool { return o.output == "yaml" || o.directory() != "" }

// named counts the ways in which what is asked about is named.
func (o *suggestOptions) named() int {
	return min(len(o.Subjects), 1) + len(slices.DeleteFunc([]string{o.Namespace, o.Group, o.Role, o.Binding}, func(s string) bool {
		return s == ""
	}))
}

// check returns an error for flags that make no sense together, before anything is read.
func (o *suggestOptions) check() error {
	usage := func(format string, args ...any) error {
		return cli.ExitWith(cli.ExitUsage, fmt.Errorf(format, args...))
	}
	switch {
	case o.All && o.named() > 0, o.named() > 1:
		return usage("--all, --subject, --namespace, --group, --role and --binding exclude each other")
	case slices.ContainsFunc(o.Subjects, func(name string) bool { return strings.Contains(name, "\n") }):
		return usage("--subject: a name with a line break cannot be asked for; use --all")
	case o.Backtest && o.writes():
		return usage("--backtest makes nothing to apply: use -o table or json")
	case o.final && o.output != "yaml" && o.output != "json":
		return usage("--final prints objects: add -o yaml or -o json")
	}
	for i, name := range o.Subjects {
		user, err := cli.User("--subject", name)
		if group, _ := strings.CutPrefix(name, "group/"); err != nil && group != name && group != "" {
			return usage("%w; for what a group gives use --group %s", err, phrase.Shorten(group))
		}
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
	q.All, q.Changes = o.named() == 0, o.output != "table"
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
		if o.writes() && !o.force {
			return fmt.Errorf("%s; record for longer, or --force", short)
		}
		fmt.Fprintln(o.Err, "hint:", short)
	}
	if err := o.learned(answer); err != nil {
		return err
	}
	if o.writes() && !answer.Plan.Holds && !o.force {
		return fmt.Errorf("%s: see -o table, or --force", answer.Verdict())
	}
	return nil
}

// learned returns an error if something to apply is wanted for subjects that are still learning.
func (o *suggestOptions) learned(answer *query.SuggestAnswer) error {
	if !o.writes() || o.force || o.final {
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
	case o.directory() != "":
		files, err := advice.Directory(o.directory(), answer, o.force)
		if err == nil {
			fmt.Fprintf(o.Err, "wrote %s; begin with %s\n", phrase.Number(files, "file"), filepath.Join(o.directory(), "README.md"))
		}
		return err //nolint:wrapcheck // it says what failed
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
		return o.show(answer.Backtests, func(p *cli.Page) { advice.Backtests(p, answer) })
	}
	return o.show(answer.Suggestions, func(p *cli.Page) { advice.Table(p, answer) })
}
