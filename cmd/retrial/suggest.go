package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/query"
)

// suggestOptions are the flags of suggest.
type suggestOptions struct {
	from asker
	query.SuggestRequest
	final, force      bool
	output, minWindow string
	window            time.Duration
}

// api/v1/suggest of the server, the store or a log (see asker) ─▶ SuggestAnswer ─▶ table | json | yaml
func newSuggest(s cli.Streams) *cobra.Command {
	var o suggestOptions
	c := &cobra.Command{
		Use:   "suggest [--subject USER | --all] [--state FILE|DIR --events FILE...]",
		Short: "Suggest the least roles a subject needs, with a proof",
		Long: `Suggest for each subject the roles that hold what it was recorded using and nothing else: objects
to apply, bindings to remove, and the way back. The proof replays the subject's whole recorded history
against the final state. docs/suggest.md has the rules.

The running server is asked about everything it has stored of the cluster, or what lies between --from
and --to; with none running the command reads the store itself. With --state and --events neither is
needed: the log is replayed here; --from-empty takes the place of --state where nothing was before it.

-o table ranks subjects by the weight of what they hold and never used; json is the change set; yaml
are the objects to apply, with the removals as comments. YAML from a recording shorter than --min-window
is refused without --force: what happens once a month is not in it.`,
		Example: `  retrial suggest
  retrial suggest --subject system:serviceaccount:ci:runner -o yaml
  retrial suggest --state state.json --events audit.log --all -o json | jq '.[] | select(.proof.holds)'`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.UsageError(c, "unexpected argument %q: subjects are named with --subject", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), s) },
	}
	o.from.bind(c, "apiserver-config")
	o.from.bindLog(c, s)
	f := c.Flags()
	cli.BindRequest(c, &o.SuggestRequest, "cluster", "subject", "all", "from", "to", "includeSystem", "includeUnseen", "wildcards")
	f.BoolVar(&o.final, "final", false, "print all RBAC objects that concern the subjects as they are after the change (-o yaml or json)")
	f.StringVar(&o.minWindow, "min-window", "7d", "shortest recording YAML is made from")
	f.BoolVar(&o.force, "force", false, "make YAML from a shorter recording, or although a proof does not hold")
	cli.AddOutput(c, &o.output, "table", "json", "yaml")
	return c
}

// check refuses what cannot be meant, before anything is read.
func (o *suggestOptions) check() error {
	usage := func(format string, args ...any) error {
		return cli.ExitWith(cli.ExitUsage, fmt.Errorf(format, args...))
	}
	switch {
	case o.All && len(o.Subjects) > 0:
		return usage("--all and --subject exclude each other")
	case slices.ContainsFunc(o.Subjects, func(name string) bool { return strings.Contains(name, "\n") }):
		return usage("--subject: a name with a line break cannot be asked for; use --all")
	case o.final && o.output == "table":
		return usage("--final prints objects: add -o yaml or -o json")
	}
	d, err := config.ParseDuration(o.minWindow)
	if err != nil || d < 0 {
		return usage("--min-window %q: want a duration such as 12h or 7d", o.minWindow)
	}
	o.window = time.Duration(d)
	return nil
}

func (o *suggestOptions) run(ctx context.Context, s cli.Streams) error {
	if err := o.check(); err != nil {
		return err
	}
	began := time.Now()
	answer, err := o.answer(ctx)
	if err != nil {
		return err
	}
	if err := o.allowed(s, answer); err != nil {
		return err
	}
	out := bufio.NewWriterSize(s.Out, 1<<16)
	if err := o.print(out, answer); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	if len(answer.Suggestions) == 0 {
		fmt.Fprintln(s.Err, "hint: RBAC decided nothing about anybody but Kubernetes itself in this recording; --include-system adds that")
		return nil
	}
	before, after := 0, 0
	for _, one := range answer.Suggestions {
		before, after = before+one.Excess.Before, after+one.Excess.After
	}
	fmt.Fprintf(s.Err, "subjects: %d, in %.1f s; excess %d, after the changes %d; %s\n", len(answer.Suggestions), time.Since(began).Seconds(), before, after, verdictOn(answer))
	return nil
}

// answer asks the server, the store, or a log.
func (o *suggestOptions) answer(ctx context.Context) (*query.SuggestAnswer, error) {
	q := o.SuggestRequest
	q.All = len(q.Subjects) == 0
	answer, err := answerOne(ctx, &o.from, &q.Cluster, &q)
	return &answer, err
}

func verdictOn(answer *query.SuggestAnswer) string {
	failed := 0
	for _, one := range answer.Suggestions {
		if !one.Proof.Holds {
			failed++
		}
	}
	switch {
	case failed > 0:
		return fmt.Sprintf("%d proofs do not hold", failed)
	case !answer.Plan.Holds:
		return "every proof holds alone, not all of them together"
	}
	return "every proof holds, also with all suggestions in force together"
}

// allowed says whether YAML may be made, and warns of what would forbid it.
func (o *suggestOptions) allowed(s cli.Streams, answer *query.SuggestAnswer) error {
	if seen := answer.Window.To.Sub(answer.Window.From); seen < o.window {
		short := fmt.Sprintf("the recording covers %s, less than --min-window %s: what happens more rarely is not in it", seen.Round(time.Second), o.minWindow)
		if o.output == "yaml" && !o.force {
			return fmt.Errorf("%s; record for longer, or --force", short)
		}
		fmt.Fprintln(s.Err, "hint:", short)
	}
	if o.output == "yaml" && !answer.Plan.Holds && !o.force {
		return fmt.Errorf("%s: see -o table, or --force", verdictOn(answer))
	}
	return nil
}

// print writes the suggestions in the form asked for.
func (o *suggestOptions) print(w io.Writer, answer *query.SuggestAnswer) error {
	switch {
	case o.final && o.output == "json":
		return cli.PrintAs(w, "json", map[string]any{"apiVersion": "v1", "kind": "List", "items": answer.Plan.Final})
	case o.final:
		return finalYAML(w, answer)
	case o.output == "json":
		return cli.PrintAs(w, "json", answer.Suggestions)
	case o.output == "yaml":
		return suggestYAML(w, answer)
	}
	return suggestTable(w, answer)
}

// comment writes one line of a YAML comment; nothing in it can end the line.
func comment(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, strings.TrimRight("# "+safe.Text(fmt.Sprintf(format, args...)), " "))
}
