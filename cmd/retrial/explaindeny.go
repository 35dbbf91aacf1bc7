package main

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
)

// AUDIT-ID ─▶ api/v1/explain-deny of the server, the store or a log (see asker) ─▶ who refused, what was lacking: table | json | yaml
func newExplainDeny(s cli.Streams) *cobra.Command {
	var from asker
	var q query.ExplainDenyRequest
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
	}
	from.bind(c, s, &q, "cluster", "at")
	c.RunE = func(c *cobra.Command, args []string) error {
		q.AuditID = args[0]
		answer, err := answerOf(c.Context(), &from, q.Cluster, q)
		if err != nil {
			return err
		}
		if len(answer.Requests) == 0 {
			if q.AuditID, err = from.wholeID(c.Context(), q.AuditID, q.Cluster); err != nil {
				return err
			}
			if answer, err = answerOf(c.Context(), &from, q.Cluster, q); err != nil {
				return err
			}
		}
		return from.show(answer, func(p *cli.Page) { printDenials(p, &answer) })
	}
	return c
}

func printDenials(p *cli.Page, answer *query.ExplainDenyAnswer) {
	if n := len(answer.Requests); n > 1 {
		p.Printf("%d requests carry this audit ID (clients choose it and may reuse one).\n\n", n)
	}
	for i := range answer.Requests {
		if i > 0 {
			p.Printf("\n")
		}
		p.Named(answer.Requests[i].AuditID)
		printDenial(p, &answer.Requests[i])
	}
	if answer.Truncated {
		p.Printf("\nThere are more requests of this audit ID than are shown here.\n")
	}
}

func printDenial(p *cli.Page, d *query.Denial) {
	p.Field("REQUEST", "%s %s", d.Verb, d.RequestURI)
	p.Field("CLUSTER", "%s %s", d.Cluster, d.APIServer)
	p.Field("RECEIVED", "%s", d.Received.Format(time.RFC3339Nano))
	p.Field("USER", "%s", d.User)
	p.Field("ACTING AS", "%s", d.ActingAs)
	p.Field("GROUPS", "%s", strings.Join(d.Groups, ", "))
	p.Field("RESPONSE", "%d %s", d.Code, d.Message)
	p.Field("REFUSED BY", "%s: %s", d.By, d.Text)
	printList(p, "IDENTITY", d.Identity)
	if !d.At.Equal(d.Received) {
		p.Field("POLICY OF", "%s, when it is: %s", d.At.Format(time.RFC3339Nano), d.Replayed)
	}
	for i := range d.Checks {
		c := &d.Checks[i]
		p.Field(nth("CHECK", i), "%s: may %s %s?  replayed: %s", c.Check, c.User, c.Asked, c.Replayed)
		for _, m := range c.Missing {
			p.Field("", "  %s", m)
		}
		printNearest(p, "  ", c.Nearest)
	}
	for i := range d.Chain {
		s := &d.Chain[i]
		p.Field(nth("CHAIN", i), "%s: %s  %s", s.Authorizer, s.Answer, s.Text)
		printList(p, "  ALMOST", s.Almost)
	}
	printList(p, "NOT KNOWN", d.Missing)
	for i := range d.Chain {
		if d.By == query.ByAuthorizers || d.Replayed != query.Allowed {
			printNearest(p, "", d.Chain[i].Nearest)
		}
	}
}
