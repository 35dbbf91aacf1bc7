package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
)

// --from --to [--subject] ─▶ api/v1/changes ─▶ a line a rule gained or lost, a line a write | json | yaml
func newChanges(s cli.Streams) *cobra.Command {
	var from asker
	var q query.ChangesRequest
	c := &cobra.Command{
		Use:   "changes --from TIME [--to TIME] [--subject SUBJECT]",
		Short: "Say which accesses became possible or impossible, and by which writes",
		Long: `Compare RBAC at two moments: which accesses became possible and which impossible, for every
user, group and service account, or for one, in the whole cluster and in each namespace; the
objects that did it, and the writes, with their audit IDs where the requests are stored.

What counts is what can be done, not how it is written down: a binding that gives what another
one gave already changes nothing, a role that is split into two changes nothing.

Without --subject each subject is listed alone: a user by the bindings that name it, a group by
what membership gives. With it, everything the subject holds with all its groups is compared:
those of its last request, unless --group names others; those its name alone gives are always
added. SUBJECT is written as for ` + "`retrial can`" + `.`,
		Example: `  retrial changes --since yesterday
  retrial changes --from 2026-11-20T11:00:00Z --to 2026-11-20T12:00:00Z --subject alice
  retrial changes --from 2026-11-19T00:00:00Z --subject group/system:authenticated -o json`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return cli.UsageError(c, "unexpected argument %q", args[0])
			case q.From.IsZero():
				return cli.UsageError(c, "--from is missing")
			case q.Subject == "" && len(q.Groups) > 0:
				return cli.UsageError(c, "--group goes with --subject; what a group by itself gives is --subject group/NAME")
			}
			return nil
		},
	}
	from.bind(c, s, &q, "cluster", "from", "to", "subject", "group")
	asked := onePage(&from, &q.Cluster, &q, printChanges)
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if q.Subject, err = cli.Subject("--subject", q.Subject); err != nil {
			return err
		}
		return asked(c, args)
	}
	return c
}

func printChanges(p *cli.Page, a *query.ChangesAnswer) {
	until := "now"
	if a.To != nil {
		until = a.To.UTC().Format(time.RFC3339Nano)
	}
	p.Printf("POLICY\tcluster %s, from %s to %s\n", a.Cluster, a.From.UTC().Format(time.RFC3339Nano), until)
	if a.Subject != "" {
		p.Printf("SUBJECT\t%s\n", a.Subject)
	}
	if len(a.Groups) > 0 {
		p.Printf("GROUPS\t%s\n", strings.Join(a.Groups, ", "))
	}
	if a.Superuser {
		p.Printf("SUPERUSER\tit is in system:masters: it may do everything, whatever the rules\n")
	}
	printChanged(p, a)
	printWrites(p, a)
	for _, h := range a.Hints {
		p.Hint("hint: %s", h)
	}
	if a.Newest != nil {
		p.Hint("hint: no change of the policy is known since then; the newest is of %s", a.Newest.UTC().Format(time.RFC3339Nano))
	}
	if a.More > 0 {
		p.Hint("hint: %d more subjects; ask for one with --subject", a.More)
	}
	if a.MoreWrites > 0 {
		p.Hint("hint: %d more writes; ask for a shorter time", a.MoreWrites)
	}
	for _, side := range []struct {
		when    string
		missing []string
	}{{"at the first moment", a.MissingBefore}, {"at the second", a.MissingAfter}} {
		if len(side.missing) == 0 {
			continue
		}
		said, more := firstTen(side.missing)
		for i, name := range said {
			if why := a.Reasons[name]; why != "" {
				said[i] = name + " (" + why + ")"
			}
		}
		p.Hint("warning: there may be other changes, or fewer; not known %s: %s%s", side.when, strings.Join(said, ", "), more)
	}
}

func printChanged(p *cli.Page, a *query.ChangesAnswer) {
	if len(a.Subjects) == 0 {
		p.Printf("\nNo access became possible or impossible.\n")
		return
	}
	if p.Flat() {
		p.Table("SUBJECT\tSCOPE\tCHANGE\tVERBS\tWHAT\tBECAUSE OF")
	} else {
		p.Table("\nSUBJECT\tSCOPE\t\tVERBS\tWHAT\tBECAUSE OF")
	}
	for _, s := range a.Subjects {
		p.Named(nodeName(s.Kind, s.Namespace, s.Name))
		name := query.Node{Kind: s.Kind, Namespace: s.Namespace, Name: s.Name}.Text()
		for _, scope := range s.Scopes {
			where := "cluster"
			if scope.Namespace != "" {
				where = "namespace " + scope.Namespace
			}
			if scope.TooLarge {
				p.Printf("%s\t%s\t?\t\ttoo large to compare: there may be more\t\n", name, where)
			} else if len(scope.Gained)+len(scope.Lost) == 0 {
				p.Printf("%s\t%s\t=\t\tas before\t\n", name, where)
			}
			for _, side := range []struct {
				sign  string
				rules []query.ChangedRule
			}{{"+", scope.Gained}, {"-", scope.Lost}} {
				for _, r := range side.rules {
					p.Printf("%s\t%s\t%s\t%s\t%s\t%s\n", name, where, side.sign, list(r.Verbs), ruleWords(&r.Rule),
						strings.Join(r.Because, ", "))
					for _, e := range r.Except {
						p.Printf("\t\t\t%s\texcept %s\t\n", list(e.Verbs), ruleWords(&e))
					}
				}
			}
		}
	}
}

// ruleWords returns what a rule is about: resources as on the command line, and names; or paths.
func ruleWords(r *query.Rule) string {
	if len(r.NonResourceURLs) > 0 {
		return strings.Join(r.NonResourceURLs, " ")
	}
	text := strings.Join(resourceWords(r), " ")
	if len(r.ResourceNames) > 0 {
		text += " named " + list(r.ResourceNames)
	}
	return text
}

func printWrites(p *cli.Page, a *query.ChangesAnswer) {
	if len(a.Writes) > 0 {
		p.Table("\nBY\tOBJECT\t\tUSER\tAUDIT ID")
	}
	for _, x := range a.Writes {
		what := x.What
		if x.Verb != "" {
			what = x.Verb
		} else if x.Assumed {
			what += " (assumed)"
		}
		p.Printf("%s\t%s\t%s\t%s\t%s\n", x.NotAfter.UTC().Format(time.RFC3339Nano), x.Object, what, x.User, x.AuditID)
	}
}
