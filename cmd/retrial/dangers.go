package main

import (
	"cmp"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
)

// ─▶ api/v1/dangers ─▶ a line a subject, danger and scope | json | yaml
func newDangers(s cli.Streams) *cobra.Command {
	var from asker
	var q query.DangersRequest
	c := &cobra.Command{
		Use:   "dangers [--unused] [--danger ID]",
		Short: "List who holds what is dangerous, by which bindings, and when it was last used",
		Long: `List the subjects that hold cluster-admin, may read Secrets, escalate, bind, impersonate, run
commands in pods, approve certificates, write webhooks, and the other rights that lead to more;
by which bindings, how often each was used in the days from --since, and when last. What is held by
being in a group stands under the group.`,
		Example: `  retrial dangers
  retrial dangers --unused --danger cluster-admin
  retrial dangers --since 7d -o json`,
		Args: cli.NoArgs,
	}
	from.bind(c, s, &q, "cluster", "at", "from", "to", "danger", "unused", "includeSystem", "limit")
	c.RunE = onePage(&from, &q.Cluster, &q, printDangers)
	return c
}

func printDangers(p *cli.Page, a *query.DangersAnswer) {
	since := "nothing is stored of its requests"
	if a.Since != nil {
		since = "requests are stored since " + a.Since.UTC().Format(time.RFC3339)
	}
	p.Printf("The policy of cluster %s%s; %s\n", a.Cluster, asOf(a.At), since)
	if len(a.Holders) > 0 {
		p.Table("\nDANGER\tSUBJECT\tSCOPE\tREQUESTS\tLAST USED\tBY\tUSED BY")
	}
	for i := range a.Holders {
		h := &a.Holders[i]
		p.Named(nodeName(h.Kind, h.Namespace, h.Name))
		last := "never"
		if h.Last != nil {
			last = h.Last.UTC().Format(time.RFC3339)
		}
		var by []string
		for _, g := range h.Grants {
			text := g.Binding + " → " + g.Role
			if len(g.Names) > 0 {
				text += " named " + list(g.Names)
			}
			if len(by) == 0 || by[len(by)-1] != text {
				by = append(by, text)
			}
		}
		p.Printf("%s\t%s\t%s\t%d\t%s\t%s\t%s\n", h.Danger, query.Node{Kind: h.Kind, Namespace: h.Namespace, Name: h.Name}.Text(),
			cmp.Or(h.Scope, "(cluster)"), h.Requests, last, strings.Join(by, ", "), strings.Join(h.Users, ", "))
	}
	if len(a.Holders) == 0 {
		p.Printf("\nNobody, as far as is known.\n")
	}
	if a.More > 0 {
		p.Hint("hint: %d more; ask for one --danger, or for more with --limit", a.More)
	}
	if a.System > 0 {
		p.Hint("hint: left out: %d that Kubernetes gives itself; --include-system lists them", a.System)
	}
	printDoubts(p, &a.Policy, nil)
}
