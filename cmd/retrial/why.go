package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/query"
)

// AUDIT-ID ─▶ api/v1/why of the server, the store or a log (see asker) ─▶ page for the terminal | json | yaml
func newWhy(s cli.Streams) *cobra.Command {
	var from asker
	var q query.WhyRequest
	var output string
	c := &cobra.Command{
		Use:   "why AUDIT-ID",
		Short: "Explain one request: who it was, every grant that allows it, recorded against replayed",
		Long: `Explain the requests that carry an audit ID: who asked, what each authorizer of the chain
answered, every grant that allows it, and what the apiserver recorded. With --at, also what the
answer would be by the policy of another time: today's, or that of before a change.

The running server is asked; with none running the command reads the store itself, and takes
the flags of ` + "`retrial serve`" + ` that are about it. With --events it replays an audit log as
evaluate does instead, and stores nothing.`,
		Example: `  retrial why 5da2bf21-6b97-4948-b415-44ccd0377bc9
  retrial why 5da2bf21-6b97-4948-b415-44ccd0377bc9 --at 2026-11-20T12:00:00Z
  retrial why 5da2bf21-6b97-4948-b415-44ccd0377bc9 -o json | jq '.requests[0].verdict.grants'
  retrial why 5da2bf21-6b97-4948-b415-44ccd0377bc9 --events audit.log --state state.json`,
		Args: cli.OneArg("AUDIT-ID"),
	}
	from.bind(c)
	from.bindLog(c, s)
	cli.BindRequest(c, &q, "cluster", "at")
	cli.AddOutput(c, &output, "table", "json", "yaml")
	c.RunE = func(c *cobra.Command, args []string) error {
		q.AuditID = args[0]
		answer, err := answerOf(c.Context(), &from, q.Cluster, q)
		if err != nil {
			return err
		}
		if len(answer.Requests) == 0 {
			where := ""
			if q.Cluster != "" {
				where = " in cluster " + q.Cluster
			}
			return cli.ExitWith(cli.ExitNoMatch,
				fmt.Errorf("%s carries the audit ID %s%s", from.noRequest(), phrase.Shorten(args[0]), where))
		}
		return cli.Show(s.Out, output, answer, func() error { return printWhy(s.Out, answer) })
	}
	return c
}

func printWhy(w io.Writer, answer query.WhyAnswer) error {
	if n := len(answer.Requests); n > 1 {
		why := "clients choose it and may reuse one"
		if names := clusters(answer); len(names) > 1 {
			why = "clusters " + safe.Text(strings.Join(names, ", ")) + "; --cluster NAME shows one"
		}
		fmt.Fprintf(w, "%d requests carry this audit ID (%s).\n\n", n, why)
	}
	for i, r := range answer.Requests {
		if i > 0 {
			fmt.Fprintln(w)
		}
		if err := printRequest(w, r); err != nil {
			return err
		}
	}
	return nil
}

// clusters names the clusters of an answer, each once.
func clusters(answer query.WhyAnswer) []string {
	var names []string
	for _, r := range answer.Requests {
		if !slices.Contains(names, r.Cluster) {
			names = append(names, r.Cluster)
		}
	}
	return names
}

// printRequest prints one request: what was asked, who it was, whether they might act as somebody else, what the authorizers said, what was
// checked behind them, what became of it, and the verdict.
func printRequest(out io.Writer, r query.JudgedRequest) error {
	e, err := r.Decode()
	if err != nil {
		return fmt.Errorf("stored event of cluster %s: %w", r.Cluster, err)
	}
	v := r.Verdict
	if v == nil {
		v = &query.VerdictLine{Verdict: "none", Recorded: "none", Replayed: "none"}
	}
	w := cli.Table(out, "")
	p := fields{w}
	p.add("REQUEST", "%s %s", e.Verb, e.RequestURI)
	p.add("CLUSTER", "%s %s", r.Cluster, r.APIServer)
	p.add("TWIN", "%s", r.Twin)
	p.add("RECEIVED", "%s", e.RequestReceivedTimestamp.Format(time.RFC3339Nano))
	p.add("FROM", "%s (%s)", strings.Join(e.SourceIPs, ", "), e.UserAgent)
	for i, s := range r.Stages {
		p.add(nth("STAGE", i), "%s %s %d", s.Time.Format("15:04:05.000000"), s.Stage, s.Code)
	}
	p.identity(e, v, &r)
	p.add("VERDICT", "%s %s", v.Outcome, v.Class)
	p.add("", "%s", v.Cause)
	p.add("RECORDED", "%s  %s", v.Recorded, v.RecordedReason)
	p.add("REPLAYED", "%s  %s", v.Replayed, v.Authorizer)
	for i, c := range r.Chain {
		p.add(nth("CHAIN", i), "%s: %s  %s", c.Authorizer, c.Answer, c.Reason)
	}
	p.grants("GRANT", v.Grants)
	p.list("MISSING ROLE", v.Errors)
	p.list("NEEDED", v.Missing)
	p.behind(v)
	if at := r.At; at != nil {
		p.add("AT "+at.Time.Format(time.RFC3339Nano), "%s  %s", at.Replayed, at.Authorizer)
		p.grants("  GRANT", at.Grants)
		p.list("  MISSING ROLE", at.Errors)
		p.list("  NEEDED", at.Missing)
		if im := at.Impersonation; im != nil {
			p.add("  IMPERSONATION", "%s (%s) %s", im.Replayed, im.Mode, strings.Join(im.Missing, "; "))
		}
	}
	if a := v.Admission; a != nil {
		p.add("ADMISSION", "%s %s", a.Recorded, a.Plugin)
		for _, x := range a.Answers {
			p.add("", "%s: %s  %s", strings.TrimSpace(x.Plugin+" "+x.Name), x.Outcome, x.Reason)
		}
	}
	p.add("RESPONSE", "%d %s", e.Code(), query.StatusMessage(e))
	p.add("ENGINE", "%s, configuration %s", v.Engine, v.Config)
	return w.Flush()
}

// fields prints names with values, safe for a terminal, and nothing for empty values.
type fields struct{ w io.Writer }

func (p fields) add(name, format string, args ...any) {
	if text := strings.TrimSpace(fmt.Sprintf(format, args...)); text != "" {
		fmt.Fprintf(p.w, "%s\t%s\n", name, safe.Text(text))
	}
}

func (p fields) list(name string, values []string) {
	for i, v := range values {
		p.add(nth(name, i), "%s", v)
	}
}

func (p fields) grants(name string, grants []query.GrantLine) {
	for i, g := range grants {
		p.add(nth(name, i), "%s  ←  %s  ←  %s (rule %d)", g.Subject, g.Binding, g.Role, g.Rule)
	}
}

// identity prints who it was, what produces that identity, the credential and its issue, and what contradicts it; then whether they might
// act as somebody else.
func (p fields) identity(e *query.AuditEvent, v *query.VerdictLine, r *query.JudgedRequest) {
	p.add("USER", "%s", e.User.Username)
	p.add("GROUPS", "%s", strings.Join(e.User.Groups, ", "))
	p.add("EXPLAINED BY", "%s", strings.Join(v.Explained, ", "))
	first := 0
	for _, a := range r.Authenticators {
		if !a.Possible {
			p.add(nth("NOT BY", first), "%s: %s", a.Authenticator, a.Why)
			first++
		}
	}
	p.add("CREDENTIAL", "%s", v.Credential)
	if issue := r.Issue; issue != nil {
		p.add("", "issued %s by %s from %s for %s", issue.At.UTC().Format(time.RFC3339), issue.By, dash(issue.From), issue.About())
	}
	for i, f := range v.Identity {
		if i < len(v.Evidence) && v.Evidence[i] != "" {
			f += ": " + v.Evidence[i]
		}
		p.add(nth("IDENTITY", i), "%s", f)
	}
	if u := e.ImpersonatedUser; u != nil {
		p.add("ACTING AS", "%s", u.Username)
		p.add("  GROUPS", "%s", strings.Join(u.Groups, ", "))
	}
	if im := v.Impersonation; im != nil {
		p.add("IMPERSONATION", "%s (%s) %s", im.Replayed, im.Mode, strings.Join(im.Missing, "; "))
		p.add("", "%s", im.Cause)
		p.grants("  GRANT", im.Grants)
	}
}

// behind prints the checks behind the authorization filter, and the answer of a review.
func (p fields) behind(v *query.VerdictLine) {
	for i, c := range v.Implied {
		text := c.Check + ": " + c.Asked
		if c.Covered {
			text += "  not needed: what it hands out is held"
		} else {
			text += "  " + c.Replayed
		}
		if c.Recorded != query.NotDecided && c.Recorded != c.Replayed && !c.Covered {
			text += ", recorded " + c.Recorded
		}
		if c.Perhaps != "" {
			text += "  (perhaps: " + c.Perhaps + ")"
		}
		p.add(nth("BEHIND IT", i), "%s", text)
		for _, g := range c.Grants {
			p.add("", "  %s  ←  %s  ←  %s (rule %d)", g.Subject, g.Binding, g.Role, g.Rule)
		}
		for _, m := range c.Missing {
			if c.Replayed == query.NotDecided {
				m = "not known: " + m
			}
			p.add("", "  %s", m)
		}
	}
	if r := v.Review; r != nil {
		p.add("REVIEW", "%s of %s: %s", r.Kind, r.User, r.Asked)
		p.add("", "answered %s %s; replayed %s: %s %s", r.Recorded, r.Reason, r.Replayed, r.Verdict, r.Cause)
	}
}

// nth names the first of several fields and leaves the others' names blank.
func nth(name string, i int) string {
	if i == 0 {
		return name
	}
	return ""
}
