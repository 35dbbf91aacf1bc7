package main

import (
	"cmp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
)

// [--id AUDIT-ID] ─▶ api/v1/policy-changes ─▶ a line a write; of one what it changed, and what came of it | json | yaml
func newPolicyChanges(s cli.Streams) *cobra.Command {
	var from asker
	var q query.PolicyChangesRequest
	var revert bool
	c := &cobra.Command{
		Use:   "policy-changes [--since TIME] [--id AUDIT-ID]",
		Short: "List who wrote roles and bindings, and what came of it",
		Long: `List the writes to roles and bindings, newest first: when, by whom, and whether anybody can do
something since that they could not do before, or the reverse.

With --id, say of one write what was gained and lost, which requests were refused for it in the
hour after, what the subjects it concerns did for the first time in that hour, and how to take the
write back: commands that make each object again what it was before, and what they undo besides.
--revert prints these commands alone.`,
		Example: `  retrial policy-changes --since yesterday
  retrial policy-changes --id 5c7f1c3e-0d44-4c4a-8f2e-1f6e9a1f2b10
  retrial policy-changes --id 5c7f1c3e-0d44-4c4a-8f2e-1f6e9a1f2b10 --revert > revert.sh`,
		Args: cli.NoArgs,
	}
	from.bind(c, s, &q, "cluster", "from", "to", "id", "limit")
	c.Flags().BoolVar(&revert, "revert", false, "with --id: print the commands that take the write back, and nothing else")
	c.RunE = onePage(&from, &q.Cluster, &q, func(p *cli.Page, a *query.PolicyChangesAnswer) {
		if !revert {
			printPolicyChanges(p, a)
		} else if a.Detail != nil {
			printRevert(p, a.Detail.Revert)
		}
	})
	cli.Before(c, func([]string) error {
		if revert && q.ID == "" {
			return cli.UsageError(c, "--revert goes with --id")
		}
		return nil
	})
	return c
}

// printRevert prints how to take a write back. What it would undo besides is told apart, and once more in the commands.
func printRevert(p *cli.Page, r *query.PolicyRevert) {
	p.Table("")
	for line := range strings.Lines(r.Text) {
		p.Printf("%s\n", strings.TrimSuffix(line, "\n"))
	}
	for _, w := range r.Warnings {
		p.Hint("warning: %s", w)
	}
}

func printPolicyChanges(p *cli.Page, a *query.PolicyChangesAnswer) {
	if len(a.Changes) == 0 {
		p.Printf("No role or binding of cluster %s was written in that time.\n", a.Cluster)
	} else {
		p.Table("TIME\tBY\tVERB\tOBJECT\tCODE\tCHANGES ACCESS\tAUDIT ID")
	}
	for i := range a.Changes {
		x := &a.Changes[i]
		p.Named(cmp.Or(x.AuditID, x.Object))
		by := cmp.Or(x.User, "(no stored request)")
		if x.ActingAs != "" {
			by += " as " + x.ActingAs
		}
		p.Printf("%s\t%s\t%s\t%s\t%d\t%s\t%s\n", x.Time.UTC().Format(time.RFC3339Nano), by, x.Verb, x.Object, x.Code, x.Effect, x.AuditID)
	}
	if d := a.Detail; d != nil {
		printPolicyChange(p, d)
	}
	if a.More {
		p.Hint("hint: there are older ones; ask for a shorter time, or for more with --limit")
	}
	if !a.Known {
		p.Hint("warning: no policy of the cluster is known: what its changes effect is not, either")
	}
}

// printPolicyChange shows what one write changed, and what came of it.
func printPolicyChange(p *cli.Page, d *query.PolicyChangeDetail) {
	if d.Access == nil {
		p.Printf("\nIt is not known to have changed any object.\n")
		printRevert(p, d.Revert)
		return
	}
	printChanged(p, &query.ChangesAnswer{Subjects: d.Access.Subjects})
	if len(d.Refusals) > 0 {
		p.Table("\nREFUSED SINCE\tSUBJECT\tVERB\tWHAT\tNAMESPACE\tAUDIT ID OF THE FIRST")
	}
	for i := range d.Refusals {
		r := &d.Refusals[i]
		p.Printf("%d\t%s\t%s\t%s\t%s\t%s\n", r.Requests, r.Subject, r.Verb, refusedWhat(r), refusedWhere(r), r.AuditID)
	}
	printFirstUses(p, d.FirstUses)
	p.Printf("\nUntil %s: %s refused for it, %s of the same subjects for other causes\n", d.Until.UTC().Format(time.RFC3339),
		phrase.Number(refusedIn(d.Refusals), "request"), phrase.Number(int(d.OtherRefusals), "request"))
	if d.Revert.Text != "" {
		p.Printf("\nTo take it back:\n\n")
	}
	printRevert(p, d.Revert)
	if d.More {
		p.Hint("hint: more came of it than one answer holds; ask retrial refusals and retrial first-uses")
	}
}

func refusedIn(list []query.Refusal) (n int) {
	for i := range list {
		n += int(list[i].Requests)
	}
	return n
}

// printFirstUses lists what was asked for the first time.
func printFirstUses(p *cli.Page, list []query.FirstUse) {
	if len(list) > 0 {
		p.Table("\nFIRST\tSUBJECT\tVERB\tWHAT\tNAMESPACE\tNAME\tREQUESTS\tREFUSED")
	}
	for i := range list {
		u := &list[i]
		what := whatAsked(u.Resource, u.Group, u.Subresource, u.Path)
		p.Printf("%s\t%s\n", u.First.UTC().Format(time.RFC3339Nano), strings.Join([]string{u.Subject, u.Verb, what, u.Namespace, u.Name,
			number(u.Requests), number(u.Forbidden)}, "\t"))
	}
}
