package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
)

// VERB RESOURCE [NAME] | VERB /path ─▶ api/v1/who-can ─▶ a line a grant | json | yaml
func newWhoCan(s cli.Streams) *cobra.Command {
	var from asker
	var q query.WhoCanRequest
	var sub string
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
	from.bind(c, s, &q, "namespace", "allNamespaces", "cluster", "at")
	c.ValidArgsFunction = from.completing("verb", "resource", "name")
	c.Flags().StringVar(&sub, "subresource", "", "subresource, where one behind a slash is not known to be one")
	asked := onePage(&from, &q.Cluster, &q, printWhoCan)
	c.RunE = func(c *cobra.Command, args []string) error {
		what, err := whatIsAsked(c, args[1:], q.Namespace, sub, q.AllNamespaces)
		if err != nil {
			return err
		}
		q.Verb, q.Resource, q.Name, q.Path = args[0], what.resource, what.name, what.path
		return asked(c, args)
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

func printWhoCan(p *cli.Page, a *query.WhoCanAnswer) {
	p.Printf("%s\n\n", fmt.Sprintf("Who can %s, in cluster %s%s", a.Text(), a.Cluster, asOf(a.At)))
	p.Table("SUBJECT\tWHERE\tBINDING\tROLE\tRULE")
	for _, s := range a.Subjects {
		subject := query.Node{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}.Text()
		where := strings.TrimPrefix(s.Scope, "namespace:")
		p.Named(nodeName(s.Kind, s.Namespace, s.Name))
		for i, g := range s.Grants {
			if i > 0 && !p.Flat() {
				subject, where = "", ""
			}
			if g.Kind == query.KindSuperuser {
				p.Printf("%s\t%s\t-\tneeds no grant\t-\n", subject, where)
				continue
			}
			p.Printf("%s\t%s\t%s\t%s\t%d\n", subject, where, g.Binding, g.Role, g.Rule)
		}
	}
	if a.InNamespaces > 0 {
		p.Hint("hint: RoleBindings allow it to %d more, each in one namespace: add --all-namespaces", a.InNamespaces)
	}
	printDoubts(p, &a.Policy, a.Hints)
}

// nodeName writes a subject as a command takes it.
func nodeName(kind, namespace, name string) string {
	if namespace != "" {
		name = namespace + "/" + name
	}
	return kind + "/" + name
}

// asOf returns the moment an answer is about, in words.
func asOf(at *time.Time) string {
	if at == nil {
		return ""
	}
	return " as of " + at.UTC().Format(time.RFC3339Nano)
}

// printDoubts prints what may be wrong with a question, and what is not known.
func printDoubts(p *cli.Page, policy *query.Policy, hints []string) {
	for _, h := range hints {
		p.Hint("hint: %s", h)
	}
	if len(policy.Missing) > 0 {
		said, more := firstTen(policy.Missing)
		p.Hint("warning: there may be more; not known at that time: %s%s", strings.Join(said, ", "), more)
	}
}

// firstTen returns a copy of the first of some names, ten at most, and how many more there are in words.
func firstTen(names []string) (said []string, more string) {
	if n := len(names) - 10; n > 0 {
		names, more = names[:10], fmt.Sprintf(" and %d more", n)
	}
	return slices.Clone(names), more
}
