package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
)

// [SUBJECT] ─▶ api/v1/escalations ─▶ a line a subject | a block a path | json | yaml
func newEscalations(s cli.Streams) *cobra.Command {
	var from asker
	var q query.EscalationsRequest
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
  retrial escalations sa/shop:api -o json
  retrial escalations group/ops`,
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
	from.bind(c, s, &q, "group", "includeSystem", "limit", "cluster", "at")
	c.ValidArgsFunction = from.completing("subject")
	asked := onePage(&from, &q.Cluster, &q, func(p *cli.Page, answer *query.EscalationsAnswer) {
		if answer.GroupsFrom == "" {
			printEscalations(p, answer)
		} else {
			printReached(p, answer)
		}
		printDoubts(p, &answer.Policy, answer.Hints)
		if !answer.AccountsKnown {
			p.Hint("hint: not all service accounts of that time are known; those that bindings name are assumed to exist")
		}
	})
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if q.Subject, err = cli.Subject("SUBJECT", strings.Join(args, "")); err != nil {
			return err
		}
		return asked(c, args)
	}
	return c
}

// printEscalations prints everybody who reaches a goal.
func printEscalations(p *cli.Page, a *query.EscalationsAnswer) {
	p.Printf("%s\n\n", fmt.Sprintf("Who can become cluster administrator, in cluster %s%s: %s", a.Cluster, asOf(a.At),
		phrase.Number(a.Count, "subject")))
	if len(a.Paths) > 0 {
		p.Table("SUBJECT\tSTEPS\tPRESUMES\tPATH")
	}
	for _, x := range a.Paths {
		p.Named(nodeName(x.From.Kind, x.From.Namespace, x.From.Name))
		path := x.Text
		if len(x.Steps) == 0 && len(x.Holds) == 0 {
			path = "is " + x.To.Text() + query.PerhapsText(x.Doubted)
		}
		p.Printf("%s\t%d\t%d\t%s\n", x.From.Text(), len(x.Steps), x.Presumptions, path)
	}
	if n := a.Count - len(a.Paths); n > 0 {
		p.Printf("and %d more; --limit lists more\n", n)
	}
	if a.System > 0 {
		p.Printf("\nLeft out: %s of Kubernetes itself; --include-system lists them\n", phrase.Number(a.System, "subject"))
	}
	if a.TooLargeCount == 0 {
		return
	}
	p.Printf("\nToo large to check: %s, which may reach it too, or by fewer steps (ask for each by name)\n",
		phrase.Number(a.TooLargeCount, "subject"))
	for _, n := range a.TooLarge {
		p.Printf("  %s\n", n.Text())
	}
	if n := a.TooLargeCount - len(a.TooLarge); n > 0 {
		p.Printf("  and %d more; --limit lists more\n", n)
	}
}

// printReached prints what one subject reaches, step by step.
func printReached(p *cli.Page, a *query.EscalationsAnswer) {
	printWho(p, a.Subject, list(a.Groups), a.GroupsFrom, a.GroupsSeen, false)
	p.Printf("POLICY\t%s\n", "cluster "+a.Cluster+asOf(a.At))
	switch {
	case a.TooLargeCount > 0:
		p.Printf("\nToo large to check: it may reach more than is told here, or by fewer steps.\n")
	case len(a.Paths) == 0:
		p.Printf("\nIt reaches neither cluster-admin nor system:masters.\n")
	}
	for i := range a.Paths {
		printPath(p, &a.Paths[i])
	}
	if a.ReachCount == 0 {
		return
	}
	p.Printf("\nIt can become %s\n", phrase.Number(a.ReachCount, "other"))
	for _, x := range a.Reaches {
		p.Named(nodeName(x.To.Kind, x.To.Namespace, x.To.Name))
		p.Printf("  %s\t%d\t%d\t%s\n", x.To.Text(), len(x.Steps), x.Presumptions, x.Text)
	}
	if n := a.ReachCount - len(a.Reaches); n > 0 {
		p.Printf("  and %d more; --limit lists more\n", n)
	}
}

func printPath(p *cli.Page, path *query.Path) {
	p.Printf("\n%s\n",
		fmt.Sprintf("To %s in %s%s", path.To.Text(), phrase.Number(len(path.Steps), "step"), query.PerhapsText(path.Doubted)))
	for i, s := range path.Steps {
		what := s.Edge
		if s.Namespace != "" {
			what += " in " + s.Namespace
		}
		for _, r := range s.Roles {
			what += " of " + r.Role
		}
		p.Printf("  %d\t%s\t→ %s\n", i+1, what, s.To.Text())
		printNeeded(p, s.Requests)
		for _, x := range s.Presumes {
			p.Printf("\t  presumes\t%s\n", x)
		}
	}
	if len(path.Holds) > 0 {
		p.Printf("  \t%s\thas all rights\n", path.LastText())
		printNeeded(p, path.Holds)
	}
}

func printNeeded(p *cli.Page, requests []query.Needed) {
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
		p.Printf("\t  %s\t%s\n", asked.Text(), by)
	}
}
