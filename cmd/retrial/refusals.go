package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
)

// ─▶ api/v1/refusals ─▶ a line a refusal, a line a write that made some | json | yaml
func newRefusals(s cli.Streams) *cobra.Command {
	var from asker
	var q query.RefusalsRequest
	c := &cobra.Command{
		Use:   "refusals [--since TIME] [--subject SUBJECT]",
		Short: "List what was refused, by subject, verb and resource, and why",
		Long: `List the refused requests of a range: who asked for what, how often, and for what cause. RBAC is
asked as it was at every change before the first of them: it never allowed the request, or it did
until a role or binding was written, which is named with who wrote it and when.

The other causes: an authorizer other than RBAC, an admission plugin, a check behind the
authorizers, impersonation, a namespace that is gone, no credentials, drift.`,
		Example: `  retrial refusals --since yesterday
  retrial refusals --since 24h --subject sa/ci:deployer -o json`,
		Args: cli.NoArgs,
	}
	from.bind(c, s, &q, "cluster", "from", "to", "subject", "includeSystem", "limit")
	asked := onePage(&from, &q.Cluster, &q, printRefusals)
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if q.Subject, err = cli.User("--subject", q.Subject); err != nil {
			return err
		}
		return asked(c, args)
	}
	return c
}

func printRefusals(p *cli.Page, a *query.RefusalsAnswer) {
	p.Printf("Refused in cluster %s: %s\n", a.Cluster, phrase.Number(int(a.Requests), "request"))
	if len(a.Refusals) > 0 {
		p.Table("\nREQUESTS\tSUBJECT\tVERB\tWHAT\tNAMESPACE\tLAST\tCAUSE\tAUDIT ID OF THE FIRST")
	}
	for i := range a.Refusals {
		r := &a.Refusals[i]
		p.Named(r.AuditID)
		p.Printf("%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Requests, cmp.Or(r.Subject, "(nobody)"), r.Verb, refusedWhat(r), refusedWhere(r),
			r.Last.UTC().Format(time.RFC3339), r.Cause+": "+r.Text, r.AuditID)
	}
	if len(a.Changes) > 0 {
		p.Table("\nSINCE THE WRITE OF\t\tBY\tIN FORCE BY\tREFUSED\tOF\tAUDIT ID")
	}
	for i := range a.Changes {
		c := &a.Changes[i]
		w := &c.Write
		said, more := firstTen(c.Subjects)
		p.Printf("%s\t%s\t%s\t%s\t%d\t%s\t%s\n", w.Object, cmp.Or(w.Verb, w.What), w.User, w.NotAfter.UTC().Format(time.RFC3339Nano),
			c.Requests, strings.Join(said, ", ")+more, w.AuditID)
	}
	if a.More {
		p.Hint("hint: there are more; ask for a shorter time, for one --subject, or for more with --limit")
	}
	if a.System > 0 {
		p.Hint("hint: left out: %s of Kubernetes' own subjects; --include-system lists them", phrase.Number(int(a.System), "request"))
	}
	if !a.Known {
		p.Hint("warning: no policy of the cluster is known: no refusal is traced to a change")
	}
	if len(a.Missing) > 0 {
		said, more := firstTen(a.Missing)
		p.Hint("warning: more may have been allowed at first; not known then: %s%s", strings.Join(said, ", "), more)
	}
}

// whatAsked is what a request is about: a resource, or a path.
func whatAsked(resource, group, subresource, path string) string {
	if resource == "" {
		return path
	}
	w := query.ResourceWord{Name: resource, Group: group, Sub: subresource}
	return w.String()
}

func refusedWhat(r *query.Refusal) string {
	return whatAsked(r.Resource, r.Group, r.Subresource, r.Path)
}

func refusedWhere(r *query.Refusal) string {
	text := strings.Join(r.Namespaces, ", ")
	if more := r.NamespaceCount - len(r.Namespaces); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}
