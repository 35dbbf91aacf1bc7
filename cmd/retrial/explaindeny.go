package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
)

// explainCommand is what a run of the command was asked.
type explainCommand struct {
	cli.Streams
	from   asker
	output string
	query.ExplainDenyRequest
}

// AUDIT-ID ─▶ api/v1/explain-deny of the server, the store or a log (see asker) ─▶ who refused, what was lacking: table | json | yaml
func newExplainDeny(s cli.Streams) *cobra.Command {
	x := &explainCommand{Streams: s}
	c := &cobra.Command{
		Use:   "explain-deny AUDIT-ID",
		Short: "Say who refused a request, and what would have allowed it",
		Long: `Say what refused each request of an audit ID: authentication, the right to act as another user,
the authorizers, a check behind them, or an admission plugin. For each authorizer of the chain it
says what was lacking; for RBAC, the nearest misses: rules the subject has that lack one thing,
roles and bindings that would do, and the narrowest rule. With
--at the policy and the configuration of that time are asked instead of the request's own.

The running server is asked; with none running the command reads the store itself. With
--events it replays an audit log as evaluate does instead, and stores nothing.`,
		Example: `  retrial explain-deny 5da2bf21-6b97-4948-b415-44ccd0377bc9
  retrial explain-deny 5da2bf21-6b97-4948-b415-44ccd0377bc9 -o json | jq '.requests[0].chain'
  retrial explain-deny 5da2bf21-6b97-4948-b415-44ccd0377bc9 --events audit.log --state state.json`,
		Args: cli.OneArg("AUDIT-ID"),
		RunE: func(c *cobra.Command, args []string) error { return x.run(c, args[0]) },
	}
	x.from.bind(c)
	x.from.bindLog(c, s)
	cli.BindRequest(c, &x.ExplainDenyRequest, "cluster", "at")
	cli.AddOutput(c, &x.output, "table", "json", "yaml")
	return c
}

func (x *explainCommand) run(c *cobra.Command, id string) error {
	x.AuditID = id
	answer, err := answerOf(c.Context(), &x.from, x.Cluster, x.ExplainDenyRequest)
	if err != nil {
		return err
	}
	if len(answer.Requests) == 0 {
		where := ""
		if x.Cluster != "" {
			where = " in cluster " + x.Cluster
		}
		return cli.ExitWith(cli.ExitNoMatch, fmt.Errorf("%s carries the audit ID %s%s", x.from.noRequest(), phrase.Shorten(id), where))
	}
	return cli.Show(x.Out, x.output, answer, func() error { return printDenials(x.Out, &answer) })
}

// printDenials prints refusals for people, one after the other.
func printDenials(out io.Writer, answer *query.ExplainDenyAnswer) error {
	if n := len(answer.Requests); n > 1 {
		fmt.Fprintf(out, "%d requests carry this audit ID (clients choose it and may reuse one).\n\n", n)
	}
	for i := range answer.Requests {
		if i > 0 {
			fmt.Fprintln(out)
		}
		if err := printDenial(out, &answer.Requests[i]); err != nil {
			return err
		}
	}
	if answer.Truncated {
		fmt.Fprintln(out, "\nThere are more requests of this audit ID than are shown here.")
	}
	return nil
}

func printDenial(out io.Writer, d *query.Denial) error {
	w := cli.Table(out, "")
	p := fields{w}
	p.add("REQUEST", "%s %s", d.Verb, d.RequestURI)
	p.add("CLUSTER", "%s %s", d.Cluster, d.APIServer)
	p.add("RECEIVED", "%s", d.Received.Format(time.RFC3339Nano))
	p.add("USER", "%s", d.User)
	p.add("ACTING AS", "%s", d.ActingAs)
	p.add("GROUPS", "%s", strings.Join(d.Groups, ", "))
	p.add("RESPONSE", "%d %s", d.Code, d.Message)
	p.add("REFUSED BY", "%s: %s", d.By, d.Text)
	p.list("IDENTITY", d.Identity)
	if !d.At.Equal(d.Received) {
		p.add("POLICY OF", "%s, when it is: %s", d.At.Format(time.RFC3339Nano), d.Replayed)
	}
	for i := range d.Checks {
		p.check(i, &d.Checks[i])
	}
	for i := range d.Chain {
		s := &d.Chain[i]
		p.add(nth("CHAIN", i), "%s: %s  %s", s.Authorizer, s.Answer, s.Text)
		p.list("  ALMOST", s.Almost)
	}
	p.list("NOT KNOWN", d.Missing)
	for i := range d.Chain {
		if d.By == query.ByAuthorizers || d.Replayed != query.Allowed {
			p.nearest("", d.Chain[i].Nearest)
		}
	}
	return w.Flush()
}

// check prints a check that was refused, and what would have let it pass.
func (p fields) check(i int, c *query.DeniedCheck) {
	p.add(nth("CHECK", i), "%s: may %s %s?  replayed: %s", c.Check, c.User, c.Asked, c.Replayed)
	for _, m := range c.Missing {
		p.add("", "  %s", m)
	}
	p.nearest("  ", c.Nearest)
}
