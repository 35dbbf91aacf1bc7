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

// ─▶ api/v1/hygiene ─▶ a line a flaw | json | yaml
func newHygiene(s cli.Streams) *cobra.Command {
	var from asker
	var q query.HygieneRequest
	c := &cobra.Command{
		Use:   "hygiene",
		Short: "List what is idle, dangling or open to everybody in a policy, now or at a time",
		Long: `List what is wrong with a cluster's roles and bindings: bindings to roles or service accounts
that do not exist, bindings and rules that others cover, bindings that name nobody, roles that
nobody binds, and what is given to everybody beyond what Kubernetes itself gives.

What is marked idle does nothing: all of it can be removed together, and no decision changes.
No cluster knows which users and groups exist.`,
		Example: `  retrial hygiene
  retrial hygiene --at 2026-11-20T11:36:00Z -o json
  retrial hygiene --include-system`,
		Args: cli.NoArgs,
	}
	from.bind(c, s, &q, "includeSystem", "cluster", "at")
	c.RunE = onePage(&from, &q.Cluster, &q, printHygiene)
	return c
}

func printHygiene(p *cli.Page, a *query.HygieneAnswer) {
	p.Printf("%s\n\n", fmt.Sprintf("The policy of cluster %s%s: %s", a.Cluster, asOf(a.At), phrase.Number(len(a.Flaws), "flaw")))
	if len(a.Flaws) > 0 {
		p.Table("FLAW\tOBJECT\tIDLE\tWHAT")
	}
	for _, f := range a.Flaws {
		p.Named(f.Object)
		object, idle := f.Object, "no"
		if f.Rule != nil {
			object += " rule " + strconv.Itoa(*f.Rule)
		}
		if f.Role != "" {
			object += " → " + f.Role
		}
		if f.Idle {
			idle = "yes"
		}
		what := f.Text
		if len(f.Subjects) > 0 {
			what += ": " + strings.Join(f.Subjects, ", ")
		}
		if len(f.By) > 0 {
			what += ": " + strings.Join(f.By, ", ")
		}
		p.Printf("%s\t%s\t%s\t%s\n", f.Kind, object, idle, what)
	}
	if a.System > 0 {
		p.Printf("\nLeft out: %s of what Kubernetes itself installs; --include-system lists them\n", phrase.Number(a.System, "flaw"))
	}
	printDoubts(p, &a.Policy, nil)
	if !a.AccountsKnown {
		p.Hint("hint: not all service accounts of that time are known; bindings to missing ones are not listed")
	}
}
