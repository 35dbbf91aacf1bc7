package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/query"
)

// VERB RESOURCE [NAME] | VERB /path ─▶ api/v1/who-can ─▶ a line a grant | json | yaml
func newWhoCan(s cli.Streams) *cobra.Command {
	var from asker
	var q query.WhoCanRequest
	var output, sub string
	c := &cobra.Command{
		Use:   "who-can VERB RESOURCE [NAME] | VERB /PATH",
		Short: "Say who may make a request, now or at a time, with every grant",
		Long: `Say who may make a request: every user, group and service account that RBAC grants it to, each
with every binding and rule that does.

RESOURCE is the plural name, with its group and subresource where there is one: pods,
deployments.apps, pods/exec, deployments.apps/scale. A dot at the end is the core group. Short
names, singulars and kinds of Kubernetes' own resources, and of those that rules name, are read
as kubectl reads them. The cluster is not asked what exists: any other name needs its group.
NAME may be written behind a slash: pods/web-0.

Without --namespace the answer is who can cluster-wide; with it, RoleBindings there are added.
Without NAME it is who can for every name.

Members of system:masters always can. What the Node authorizer and webhooks allow is not in it.`,
		Example: `  retrial who-can list secrets
  retrial who-can create pods/exec -n shop
  retrial who-can update deployments.apps/scale web --namespace shop --at 2026-11-20T11:36:00Z
  retrial who-can get /metrics
  retrial who-can '*' '*.*'`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 || args[0] == "":
				return cli.UsageError(c, "VERB is missing")
			case len(args) == 1 || args[1] == "":
				return cli.UsageError(c, "RESOURCE or /PATH is missing")
			case len(args) > 3:
				return cli.UsageError(c, "unexpected argument %q", args[3])
			}
			return nil
		},
	}
	from.bind(c)
	from.bindLog(c, s)
	cli.BindRequest(c, &q, "namespace", "allNamespaces", "cluster", "at")
	c.Flags().StringVar(&sub, "subresource", "", "subresource, where one behind a slash is not known to be one")
	cli.AddOutput(c, &output, "table", "json", "yaml")
	c.RunE = func(c *cobra.Command, args []string) error {
		what, err := whatIsAsked(c, args[1:], q.Namespace, sub, q.AllNamespaces)
		if err != nil {
			return err
		}
		q.Verb, q.Resource, q.Name, q.Path = args[0], what.resource, what.name, what.path
		answer, err := answerOne(c.Context(), &from, &q.Cluster, &q)
		if err != nil {
			return err
		}
		return cli.Show(s.Out, output, answer, func() error { return printWhoCan(s.Out, s.Err, &answer) })
	}
	return c
}

// subresources are those of Kubernetes' own resources; anything else behind a slash on the command line is a name.
var subresources = []string{"approval", "attach", "binding", "bindings", "driver", "ephemeralcontainers", "eviction", "exec", "finalize",
	"log", "portforward", "proxy", "resize", "scale", "status", "token"}

// asked is what a request is about: a path, or a resource and a name.
type asked struct{ resource, name, path string }

// whatIsAsked parses the arguments behind VERB.
func whatIsAsked(c *cobra.Command, args []string, namespace, sub string, all bool) (out asked, err error) {
	what := args[0]
	if strings.HasPrefix(what, "/") {
		if len(args) > 1 || namespace != "" || sub != "" || all {
			return out, cli.UsageError(c, "%q is a path: it has neither name, namespace nor subresource", what)
		}
		return asked{path: what}, nil
	}
	if namespace != "" && all {
		return out, cli.UsageError(c, "--namespace and --all-namespaces exclude each other")
	}
	name := ""
	if len(args) > 1 {
		name = args[1]
	}
	if head, tail, ok := strings.Cut(what, "/"); ok {
		first, _, _ := strings.Cut(tail, ".")
		switch {
		case strings.Contains(tail, "/"): // the answer will say what is wrong with it
		case slices.Contains(subresources, first) && sub == "":
		case name != "":
			return out, cli.UsageError(c, "two names: %q and %q; if the first is a subresource, use --subresource", tail, name)
		default:
			what, name = head, tail
		}
	}
	if sub != "" {
		if strings.Contains(what, "/") {
			return out, cli.UsageError(c, "two subresources: %q and %q", what, sub)
		}
		what += "/" + sub
	}
	return asked{resource: what, name: name}, nil
}

func printWhoCan(out, hints io.Writer, a *query.WhoCanAnswer) error {
	fmt.Fprintf(out, "%s\n\n", safe.Text(fmt.Sprintf("Who can %s, in cluster %s%s", a.Text(), a.Cluster, asOf(a.At))))
	w := cli.Table(out, "SUBJECT\tWHERE\tBINDING\tROLE\tRULE")
	for _, s := range a.Subjects {
		subject, where := s.Kind+" "+s.Name, strings.TrimPrefix(s.Scope, "namespace:")
		if s.Namespace != "" {
			subject = s.Kind + " " + s.Namespace + "/" + s.Name
		}
		for i, g := range s.Grants {
			if i > 0 {
				subject, where = "", ""
			}
			if g.Kind == query.KindSuperuser {
				fmt.Fprintf(w, "%s\t%s\t-\tneeds no grant\t-\n", safe.Text(subject), safe.Text(where))
				continue
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\n", safe.Text(subject), safe.Text(where), safe.Text(g.Binding), safe.Text(g.Role), g.Rule)
		}
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if a.InNamespaces > 0 {
		fmt.Fprintf(hints, "hint: RoleBindings allow it to %d more, each in one namespace: add --all-namespaces\n", a.InNamespaces)
	}
	printDoubts(hints, &a.Policy, a.Hints)
	return nil
}

// asOf returns the moment an answer is about, in words.
func asOf(at *time.Time) string {
	if at == nil {
		return ""
	}
	return " as of " + at.UTC().Format(time.RFC3339Nano)
}

// printDoubts prints what may be wrong with a question, and what is not known.
func printDoubts(w io.Writer, p *query.Policy, hints []string) {
	for _, h := range hints {
		fmt.Fprintln(w, "hint:", safe.Text(h))
	}
	if len(p.Missing) == 0 {
		return
	}
	said, and := p.Missing, ""
	if len(said) > 10 {
		said, and = said[:10], fmt.Sprintf(" and %d more", len(said)-10)
	}
	fmt.Fprintf(w, "warning: there may be more; not known at that time: %s%s\n", safe.Text(strings.Join(said, ", ")), and)
}
