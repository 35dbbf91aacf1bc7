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

// --from --to [--subject] ─▶ api/v1/changes ─▶ a line a rule gained or lost, a line a write | json | yaml
func newChanges(s cli.Streams) *cobra.Command {
	var from asker
	var q query.ChangesRequest
	var output string
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
		Example: `  retrial changes --from 2026-11-20T11:00:00Z
  retrial changes --from 2026-11-20T11:00:00Z --to 2026-11-20T12:00:00Z --subject alice
  retrial changes --from 2026-11-19T00:00:00Z --subject group:system:authenticated -o json`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return cli.UsageError(c, "unexpected argument %q", args[0])
			case q.From.IsZero():
				return cli.UsageError(c, "--from is missing")
			case q.Subject == "" && len(q.Groups) > 0:
				return cli.UsageError(c, "--group goes with --subject; what a group by itself gives is --subject group:NAME")
			}
			return nil
		},
	}
	from.bind(c)
	from.bindLog(c, s)
	cli.BindRequest(c, &q, "cluster", "from", "to", "subject", "group")
	cli.AddOutput(c, &output, "table", "json", "yaml")
	c.RunE = func(c *cobra.Command, _ []string) error {
		answer, err := answerOne(c.Context(), &from, &q.Cluster, &q)
		if err != nil {
			return err
		}
		return cli.Show(s.Out, output, answer, func() error { return printChanges(s.Out, s.Err, &answer) })
	}
	return c
}

func printChanges(out, hints io.Writer, a *query.ChangesAnswer) error {
	w := cli.Table(out, "")
	until := "now"
	if a.To != nil {
		until = a.To.UTC().Format(time.RFC3339Nano)
	}
	fmt.Fprintf(w, "POLICY\tcluster %s, from %s to %s\n", safe.Text(a.Cluster), a.From.UTC().Format(time.RFC3339Nano), until)
	if a.Subject != "" {
		fmt.Fprintf(w, "SUBJECT\t%s\n", safe.Text(a.Subject))
	}
	if len(a.Groups) > 0 {
		fmt.Fprintf(w, "GROUPS\t%s\n", safe.Text(strings.Join(a.Groups, ", ")))
	}
	if a.Superuser {
		fmt.Fprintln(w, "SUPERUSER\tit is in system:masters: it may do everything, whatever the rules")
	}
	if err := w.Flush(); err != nil {
		return err
	}
	if len(a.Subjects) == 0 {
		fmt.Fprintln(out, "\nNo access became possible or impossible.")
	} else if err := printChanged(out, a); err != nil {
		return err
	}
	if len(a.Writes) > 0 {
		if err := printWrites(out, a); err != nil {
			return err
		}
	}
	if a.More > 0 {
		fmt.Fprintf(hints, "hint: %d more subjects; ask for one with --subject\n", a.More)
	}
	if a.MoreWrites > 0 {
		fmt.Fprintf(hints, "hint: %d more writes; ask for a shorter time\n", a.MoreWrites)
	}
	for _, side := range []struct {
		when    string
		missing []string
	}{{"at the first moment", a.MissingBefore}, {"at the second", a.MissingAfter}} {
		if n := len(side.missing); n > 0 {
			said := slices.Clone(side.missing[:min(n, 10)])
			for i, name := range said {
				if why := a.Reasons[name]; why != "" {
					said[i] = name + " (" + why + ")"
				}
			}
			more := ""
			if n > len(said) {
				more = fmt.Sprintf(" and %d more", n-len(said))
			}
			fmt.Fprintf(hints, "warning: there may be other changes, or fewer; not known %s: %s%s\n", side.when,
				safe.Text(strings.Join(said, ", ")), more)
		}
	}
	return nil
}

func printChanged(out io.Writer, a *query.ChangesAnswer) error {
	w := cli.Table(out, "\nSUBJECT\tSCOPE\t\tVERBS\tWHAT\tBECAUSE OF")
	for _, s := range a.Subjects {
		name := s.Kind + " " + s.Name
		if s.Namespace != "" {
			name = s.Kind + " " + s.Namespace + "/" + s.Name
		}
		for _, scope := range s.Scopes {
			where := "cluster"
			if scope.Namespace != "" {
				where = "namespace " + scope.Namespace
			}
			if scope.TooLarge {
				fmt.Fprintf(w, "%s\t%s\t?\t\ttoo large to compare: there may be more\t\n", safe.Text(name), safe.Text(where))
			} else if len(scope.Gained)+len(scope.Lost) == 0 {
				fmt.Fprintf(w, "%s\t%s\t=\t\tas before\t\n", safe.Text(name), safe.Text(where))
			}
			for _, side := range []struct {
				sign  string
				rules []query.ChangedRule
			}{{"+", scope.Gained}, {"-", scope.Lost}} {
				for _, r := range side.rules {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", safe.Text(name), safe.Text(where), side.sign,
						safe.Text(list(r.Verbs)), safe.Text(ruleWords(&r.Rule)), safe.Text(strings.Join(r.Because, ", ")))
					for _, e := range r.Except {
						fmt.Fprintf(w, "\t\t\t%s\texcept %s\t\n", safe.Text(list(e.Verbs)), safe.Text(ruleWords(&e)))
					}
				}
			}
		}
	}
	return w.Flush()
}

// ruleWords returns what a rule is about: resources as on the command line, and names; or paths.
func ruleWords(r *query.Rule) string {
	if len(r.NonResourceURLs) > 0 {
		return strings.Join(r.NonResourceURLs, " ")
	}
	var words []string
	for _, res := range r.Resources {
		for _, g := range r.APIGroups {
			word := query.ResourceWord{Name: res, Group: g}
			if head, sub, ok := strings.Cut(res, "/"); ok {
				word.Name, word.Sub = head, sub
			}
			words = append(words, word.String())
		}
	}
	text := strings.Join(words, " ")
	if len(r.ResourceNames) > 0 {
		text += " named " + list(r.ResourceNames)
	}
	return text
}

func printWrites(out io.Writer, a *query.ChangesAnswer) error {
	w := cli.Table(out, "\nBY\tOBJECT\t\tUSER\tAUDIT ID")
	for _, x := range a.Writes {
		what := x.What
		if x.Verb != "" {
			what = x.Verb
		} else if x.Assumed {
			what += " (assumed)"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", x.NotAfter.UTC().Format(time.RFC3339Nano), safe.Text(x.Object), what, safe.Text(x.User),
			safe.Text(x.AuditID))
	}
	return w.Flush()
}
