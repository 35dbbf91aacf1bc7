package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
)

// SUBJECT ─────────────────────┬▶ api/v1/can ─▶ a table a scope | json | yaml
// SUBJECT VERB RESOURCE [NAME] ┘            └─▶ yes and why | no and what would help
func newCan(s cli.Streams) *cobra.Command {
	var from asker
	var q query.CanRequest
	var sub string
	c := &cobra.Command{
		Use:   "can SUBJECT [VERB RESOURCE [NAME] | VERB /PATH]",
		Short: "List what a subject may do, now or at a time, and which grants give it",
		Long: `List everything a subject may do: its rules, merged, for the whole cluster and for each
namespace, with the bindings and roles they come from.

SUBJECT is sa/NAMESPACE:NAME for a service account, group/NAME for what a group by itself
gives, node/NAME, or user/NAME or just a user name as audit logs have it, such as
system:serviceaccount:NAMESPACE:NAME. Groups are those of the subject's last request, unless
--group names others; those its name alone gives are always added.

With VERB and RESOURCE, written as for ` + "`retrial who-can`" + `, say whether it may make that one
request, with every grant; and when it may not, what would have allowed it: rules it has that
lack one thing, roles and bindings that exist, and the narrowest rule. It ends with code 3 then.

In a namespace, what holds in the whole cluster holds as well. What the Node authorizer and
webhooks allow is not in it.`,
		Example: `  retrial can alice
  retrial can sa/shop:api --namespace shop
  retrial can alice --group ops --group devs --at 2026-11-20T11:36:00Z
  retrial can group/system:authenticated -o json
  retrial can alice delete pods web-0 --namespace shop`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				return cli.UsageError(c, "SUBJECT is missing")
			case args[0] == "":
				return cli.UsageError(c, "SUBJECT is empty")
			case len(args) == 2 || len(args) > 2 && (args[1] == "" || args[2] == ""):
				return cli.UsageError(c, "VERB and RESOURCE or /PATH go together")
			case len(args) > 4:
				return cli.UsageError(c, "unexpected argument %q", args[4])
			}
			return nil
		},
	}
	from.bind(c, s, &q, "group", "namespace", "cluster", "at")
	c.ValidArgsFunction = from.completing("subject", "verb", "resource", "name")
	c.Flags().StringVar(&sub, "subresource", "", "subresource, where one behind a slash is not known to be one")
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if q.Subject, err = cli.Subject("SUBJECT", args[0]); err != nil {
			return err
		}
		if len(args) > 1 {
			what, err := whatIsAsked(c, args[2:], q.Namespace, sub, false)
			if err != nil {
				return err
			}
			q.Verb, q.Resource, q.Name, q.Path = args[1], what.resource, what.name, what.path
		} else if sub != "" {
			return cli.UsageError(c, "--subresource goes with VERB and RESOURCE")
		}
		answer, err := answerOne(c.Context(), &from, &q.Cluster, &q)
		if err != nil {
			return err
		}
		err = from.show(answer, func(p *cli.Page) { printCan(p, &answer) })
		switch d := answer.Request; {
		case err != nil || d == nil || d.Yes():
			return err
		case d.Allowed == "no":
			return cli.ExitWith(cli.ExitFinding, fmt.Errorf("%s may not", phrase.Shorten(args[0])))
		}
		return cli.ExitWith(cli.ExitFinding, fmt.Errorf("nothing known lets %s, and not everything is known", phrase.Shorten(args[0])))
	}
	return c
}

func printCan(p *cli.Page, a *query.CanAnswer) {
	printWho(p, a.Subject, strings.Join(a.Groups, ", "), a.GroupsFrom, a.GroupsSeen, a.Stranger)
	p.Printf("POLICY\t%s\n", "cluster "+a.Cluster+asOf(a.At))
	if a.Superuser {
		p.Printf("SUPERUSER\tit is in system:masters: it may do everything, whatever the rules\n")
	}
	printDoubts(p, &a.Policy, a.Hints)
	if a.Request != nil {
		p.Printf("\n")
		printDecision(p, a)
		return
	}
	if p.Flat() {
		p.Table("NAMESPACE\t" + heldHead)
	}
	for _, scope := range a.Scopes {
		if p.Flat() {
			printScope(p, &scope)
			continue
		}
		where := "In the whole cluster"
		if scope.Namespace != "" {
			where = "In namespace " + scope.Namespace
		}
		p.Printf("\n%s\n", where)
		printScope(p, &scope)
	}
	if len(a.Scopes) == 0 && !a.Superuser {
		p.Printf("\nNo rule applies to it.\n")
	}
}

// printWho prints whom a question is about, and where the groups are from.
func printWho(p *cli.Page, subject, groups, from string, seen *time.Time, stranger bool) {
	if subject != "" {
		p.Printf("SUBJECT\t%s\n", subject)
	}
	from = map[string]string{"requests": "as its requests carried them", "asked": "as asked", "name": "by its name alone",
		"unknown": "by its name; those of its requests are not known: name them with --group"}[from]
	if stranger {
		from += ": nobody of that name is known, and this is what everybody has"
	}
	if seen != nil {
		from += ", last " + seen.UTC().Format(time.RFC3339)
	}
	p.Printf("GROUPS\t%s (%s)\n", groups, from)
}

// heldHead names the columns of the rules that a subject holds.
const heldHead = "RESOURCES\tNON-RESOURCE URLS\tRESOURCE NAMES\tVERBS\tBY"

// printScope prints a line for each resource or path, as kubectl auth can-i --list does, and the grants behind it.
func printScope(p *cli.Page, scope *query.Scope) {
	if len(scope.Rules) > 0 && !p.Flat() {
		p.Table(heldHead)
	}
	for _, r := range scope.Rules {
		by := make([]string, len(r.By))
		for i, g := range r.By {
			p.Named(g.Role)
			by[i] = fmt.Sprintf("%s → %s rule %d", g.Binding, g.Role, g.Rule)
			if strings.HasPrefix(g.Subject, "Group/") {
				by[i] += ", as " + g.Subject
			}
			if g.Verbs != nil {
				by[i] += ", " + list(g.Verbs)
			}
		}
		line := func(resource, path string) {
			for i, b := range by {
				if p.Flat() {
					p.Printf("%s\t", scope.Namespace)
				} else if i > 0 {
					p.Printf("\t\t\t\t%s\n", b)
					continue
				}
				p.Printf("%s\t%s\t%s\t%s\t%s\n", resource, path, list(r.ResourceNames), list(r.Verbs), b)
			}
		}
		for _, resource := range resourceWords(&r.Rule) {
			line(resource, "")
		}
		for _, u := range r.NonResourceURLs {
			line("", list([]string{u}))
		}
	}
	for _, role := range scope.MissingRoles {
		if p.Flat() {
			continue
		}
		p.Printf("a binding names %s, which does not exist\n", role)
	}
}

// resourceWords returns the resources of a rule as they are written on the command line.
func resourceWords(r *query.Rule) (words []string) {
	for _, res := range r.Resources {
		for _, g := range r.APIGroups {
			word := query.ResourceWord{Name: res, Group: g}
			if head, sub, ok := strings.Cut(res, "/"); ok {
				word.Name, word.Sub = head, sub
			}
			words = append(words, word.String())
		}
	}
	return words
}

// list writes a list as kubectl does.
func list(words []string) string { return "[" + strings.Join(words, " ") + "]" }

// printDecision prints whether a subject may make one request, why, and what would help.
func printDecision(p *cli.Page, a *query.CanAnswer) {
	d := a.Request
	p.Field("MAY", "%s: %s", d.Allowed, d.Text())
	for i, g := range d.Grants {
		p.Named(g.Role)
		if g.Kind == query.KindSuperuser {
			p.Field(nth("GRANT", i), "%s: needs no grant", g.Subject)
			continue
		}
		p.Field(nth("GRANT", i), grantForm, g.Subject, g.Binding, g.Role, g.Rule)
	}
	if b := d.Bind; b != nil {
		p.Field("MAY BIND THE ROLE", "%s", b.Text())
		for i, r := range b.RulesMissing {
			p.Field(nth("RULES IT LACKS", i), "%s", r.String())
		}
	}
	printNearest(p, "", d.Nearest)
}

// printNearest prints what would have allowed a request, nothing for nil, with names behind indent.
func printNearest(p *cli.Page, indent string, n *query.NearestMiss) {
	if n == nil {
		return
	}
	for i, x := range n.Almost {
		p.Field(nth(indent+"ALMOST", i), grantForm+", but for the %s", x.Subject, x.Binding, x.Role, x.Rule, x.Lacks)
	}
	for i, o := range n.Roles {
		p.Field(nth(indent+"ROLES THAT ALLOW IT", i), "%s (rule %d)", o.Role, o.Rule)
	}
	for i, o := range n.Bindings {
		p.Field(nth(indent+"BINDINGS THAT DO", i), "%s  ←  %s", o.Binding, o.Role)
	}
	about := fmt.Sprintf("apiGroups: %q, resources: %q", n.Rule.APIGroups, n.Rule.Resources)
	if len(n.Rule.ResourceNames) > 0 {
		about += fmt.Sprintf(", resourceNames: %q", n.Rule.ResourceNames)
	}
	if len(n.Rule.NonResourceURLs) > 0 {
		about = fmt.Sprintf("nonResourceURLs: %q", n.Rule.NonResourceURLs)
	}
	p.Field(indent+"NARROWEST RULE", "%s, verbs: %q", about, n.Rule.Verbs)
}
