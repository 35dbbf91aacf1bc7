package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/query"
)

// [SUBJECT] ─▶ api/v1/escalations ─▶ a line a subject | a block a path | json | yaml
func newEscalations(s cli.Streams) *cobra.Command {
	var from asker
	var q query.EscalationsRequest
	var output string
	c := &cobra.Command{
		Use:   "escalations [SUBJECT]",
		Short: "Say who can make itself cluster administrator, now or at a time, and how",
		Long: `Say who can make itself cluster administrator, or a member of system:masters, by rights that
lead to more rights: binding roles, escalating them, impersonation, pods that run as service
accounts, their tokens and Secrets, exec, workloads, nodes/proxy, certificates, webhooks and
admission policies. docs/escalations.md says what each takes.

Without SUBJECT: everybody who can, by the shortest path each, those with the fewest steps
first. What every member of a group can do is listed under the group. Subjects of Kubernetes itself
(system:…, service accounts of kube-system) are left out unless --include-system is given.

With SUBJECT, written as for ` + "`retrial can`" + `: its shortest paths to both, and to everybody else it
can become. A step is taken by the requests named under it, all of them, each with the binding
that allows it; a step that takes more than rights says what it presumes.`,
		Example: `  retrial escalations
  retrial escalations --include-system --limit 20
  retrial escalations alice --at 2026-11-20T11:36:00Z
  retrial escalations system:serviceaccount:shop:api -o json
  retrial escalations group:ops`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 1 && args[0] == "":
				return cli.UsageError(c, "SUBJECT is empty")
			case len(args) > 1:
				return cli.UsageError(c, "unexpected argument %q", args[1])
			}
			return nil
		},
	}
	from.bind(c)
	from.bindLog(c, s)
	cli.BindRequest(c, &q, "group", "includeSystem", "limit", "cluster", "at")
	cli.AddOutput(c, &output, "table", "json", "yaml")
	c.RunE = func(c *cobra.Command, args []string) error {
		q.Subject = strings.Join(args, "")
		answer, err := answerOne(c.Context(), &from, &q.Cluster, &q)
		if err != nil {
			return err
		}
		switch {
		case output != "table":
			return cli.PrintAs(s.Out, output, answer)
		case answer.GroupsFrom == "":
			err = printEscalations(s.Out, &answer)
		default:
			err = printReached(s.Out, &answer)
		}
		printDoubts(s.Err, &answer.Policy, answer.Hints)
		if !answer.AccountsKnown {
			fmt.Fprintln(s.Err, "hint: not all service accounts of that time are known; those that bindings name are assumed to exist")
		}
		return err
	}
	return c
}

// printEscalations prints everybody who reaches a goal.
func printEscalations(out io.Writer, a *query.EscalationsAnswer) error {
	fmt.Fprintf(out, "%s\n\n", safe.Text(fmt.Sprintf("Who can become cluster administrator, in cluster %s%s: %s", a.Cluster, asOf(a.At),
		phrase.Number(a.Count, "subject"))))
	w := cli.Table(out, "")
	if len(a.Paths) > 0 {
		fmt.Fprintln(w, "SUBJECT\tSTEPS\tPRESUMES\tPATH")
	}
	for _, p := range a.Paths {
		path := p.Text
		if len(p.Steps) == 0 && len(p.Holds) == 0 {
			path = "is " + p.To.Text() + query.PerhapsText(p.Doubted)
		}
		fmt.Fprintf(w, "%s\t%d\t%d\t%s\n", safe.Text(p.From.Text()), len(p.Steps), p.Presumptions, safe.Text(path))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if n := a.Count - len(a.Paths); n > 0 {
		fmt.Fprintf(out, "and %d more; --limit lists more\n", n)
	}
	if a.System > 0 {
		fmt.Fprintf(out, "\nLeft out: %s of Kubernetes itself; --include-system lists them\n", phrase.Number(a.System, "subject"))
	}
	if a.TooLargeCount == 0 {
		return nil
	}
	fmt.Fprintf(out, "\nToo large to check: %s, which may reach it too, or by fewer steps (ask for each by name)\n",
		phrase.Number(a.TooLargeCount, "subject"))
	for _, n := range a.TooLarge {
		fmt.Fprintf(out, "  %s\n", safe.Text(n.Text()))
	}
	if n := a.TooLargeCount - len(a.TooLarge); n > 0 {
		fmt.Fprintf(out, "  and %d more; --limit lists more\n", n)
	}
	return nil
}

// printReached prints what one subject reaches, step by step.
func printReached(out io.Writer, a *query.EscalationsAnswer) error {
	w := cli.Table(out, "")
	if a.Subject != "" {
		fmt.Fprintf(w, "SUBJECT\t%s\n", safe.Text(a.Subject))
	}
	from := map[string]string{"requests": "as its requests carried them", "asked": "as asked", "name": "by its name alone",
		"unknown": "by its name; those of its requests are not known: name them with --group"}[a.GroupsFrom]
	if a.GroupsSeen != nil {
		from += ", last " + a.GroupsSeen.UTC().Format(time.RFC3339)
	}
	fmt.Fprintf(w, "GROUPS\t%s (%s)\n", safe.Text(list(a.Groups)), from)
	fmt.Fprintf(w, "POLICY\t%s\n", safe.Text("cluster "+a.Cluster+asOf(a.At)))
	if err := w.Flush(); err != nil {
		return err
	}
	switch {
	case a.TooLargeCount > 0:
		fmt.Fprintln(out, "\nToo large to check: it may reach more than is told here, or by fewer steps.")
	case len(a.Paths) == 0:
		fmt.Fprintln(out, "\nIt reaches neither cluster-admin nor system:masters.")
	}
	for i := range a.Paths {
		if err := printPath(out, &a.Paths[i]); err != nil {
			return err
		}
	}
	if a.ReachCount == 0 {
		return nil
	}
	fmt.Fprintf(out, "\nIt can become %s\n", phrase.Number(a.ReachCount, "other"))
	w = cli.Table(out, "")
	for _, p := range a.Reaches {
		fmt.Fprintf(w, "  %s\t%d\t%d\t%s\n", safe.Text(p.To.Text()), len(p.Steps), p.Presumptions, safe.Text(p.Text))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if n := a.ReachCount - len(a.Reaches); n > 0 {
		fmt.Fprintf(out, "  and %d more; --limit lists more\n", n)
	}
	return nil
}

func printPath(out io.Writer, p *query.Path) error {
	fmt.Fprintf(out, "\n%s\n",
		safe.Text(fmt.Sprintf("To %s in %s%s", p.To.Text(), phrase.Number(len(p.Steps), "step"), query.PerhapsText(p.Doubted))))
	w := cli.Table(out, "")
	for i, s := range p.Steps {
		what := s.Edge
		if s.Namespace != "" {
			what += " in " + s.Namespace
		}
		for _, r := range s.Roles {
			what += " of " + r.Role
		}
		fmt.Fprintf(w, "  %d\t%s\t→ %s\n", i+1, safe.Text(what), safe.Text(s.To.Text()))
		printNeeded(w, s.Requests)
		for _, x := range s.Presumes {
			fmt.Fprintf(w, "\t  presumes\t%s\n", safe.Text(x))
		}
	}
	if len(p.Holds) > 0 {
		fmt.Fprintf(w, "  \t%s\thas all rights\n", safe.Text(p.LastText()))
		printNeeded(w, p.Holds)
	}
	return w.Flush()
}

func printNeeded(w io.Writer, requests []query.Needed) {
	for _, r := range requests {
		asked := query.AccessRequest{Verb: r.Verb, Resource: r.Resource, Group: r.Group, Subresource: r.Subresource, Namespace: r.Namespace,
			Name: r.Name}
		by := r.Role
		if len(r.Grants) > 0 {
			by = r.Grants[0].Binding + " → " + r.Grants[0].Role + " rule " + strconv.Itoa(r.Grants[0].Rule)
			if n := len(r.Grants) - 1; n > 0 {
				by += fmt.Sprintf(", and %d more", n)
			}
		}
		fmt.Fprintf(w, "\t  %s\t%s\n", safe.Text(asked.Text()), safe.Text(by))
	}
}
