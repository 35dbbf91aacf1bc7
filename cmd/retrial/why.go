package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
)

// AUDIT-ID ─▶ api/v1/why of the server, the store or a log (see asker) ─▶ page for the terminal | json | yaml
func newWhy(s cli.Streams) *cobra.Command {
	var from asker
	var q query.WhyRequest
	var last lastRequest
	c := &cobra.Command{
		Use:   "why AUDIT-ID | --last",
		Short: "Explain one request: who it was, every grant that allows it, recorded against replayed",
		Long: `Explain the requests that carry an audit ID: who asked, what each authorizer of the chain
answered, every grant that allows it, and what the apiserver recorded. With --at, also what the
answer would be by the policy of another time: today's, or that of before a change.

The beginning of an audit ID will do, from four letters on, where one alone begins so; of several
the first are listed. --last takes the newest request that was refused or does not match its
replay, of --subject if that is given. Requests of Kubernetes itself (system:…, service accounts
of kube-*) are passed over unless --include-system is given or there is no other.

The running server is asked; with none running the command reads the store itself, and takes
the flags of ` + "`retrial serve`" + ` that are about it. With --events it replays an audit log as
evaluate does instead, and stores nothing.`,
		Example: `  retrial why 5da2bf21-6b97-4948-b415-44ccd0377bc9
  retrial why 5da2bf21
  retrial why --last
  retrial why --last --subject sa/ci:runner
  retrial why 5da2bf21-6b97-4948-b415-44ccd0377bc9 --at yesterday
  retrial why 5da2bf21-6b97-4948-b415-44ccd0377bc9 -o json | jq '.requests[0].verdict.grants'
  retrial why 5da2bf21-6b97-4948-b415-44ccd0377bc9 --events audit.log --state state.json`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case last.wanted && len(args) > 0:
				return cli.UsageError(c, "unexpected argument %q: --last names the request", args[0])
			case last.wanted:
				return nil
			case last.subject != "" || last.system:
				return cli.UsageError(c, "--subject and --include-system go with --last")
			case len(args) == 0:
				return cli.UsageError(c, "AUDIT-ID is missing; --last takes the newest request that was refused")
			}
			return cli.OneArg("AUDIT-ID")(c, args)
		},
	}
	from.bind(c, s, &q, "cluster", "at")
	last.bind(c)
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if last.wanted {
			q.AuditID, q.Cluster, err = last.find(c.Context(), &from, q.Cluster)
		} else {
			q.AuditID = args[0]
		}
		if err != nil {
			return err
		}
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
		var broken error
		err = from.show(answer, func(p *cli.Page) { broken = printWhy(p, &answer) })
		return errors.Join(err, broken)
	}
	return c
}

func printWhy(p *cli.Page, answer *query.WhyAnswer) error {
	if n := len(answer.Requests); n > 1 {
		why := "clients choose it and may reuse one"
		if names := clusters(answer); len(names) > 1 {
			why = "clusters " + strings.Join(names, ", ") + "; --cluster NAME shows one"
		}
		p.Printf("%d requests carry this audit ID (%s).\n\n", n, why)
	}
	for i := range answer.Requests {
		if i > 0 {
			p.Printf("\n")
		}
		if err := printRequest(p, &answer.Requests[i]); err != nil {
			return err
		}
	}
	return nil
}

func clusters(answer *query.WhyAnswer) []string {
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
func printRequest(p *cli.Page, r *query.JudgedRequest) error {
	e, err := r.Decode()
	if err != nil {
		return fmt.Errorf("stored event of cluster %s: %w", r.Cluster, err)
	}
	v := r.Verdict
	if v == nil {
		v = &query.VerdictLine{Verdict: "none", Recorded: "none", Replayed: "none"}
	}
	p.Named(e.AuditID)
	p.Field("REQUEST", "%s %s", e.Verb, e.RequestURI)
	p.Field("CLUSTER", "%s %s", r.Cluster, r.APIServer)
	p.Field("TWIN", "%s", r.Twin)
	p.Field("RECEIVED", "%s", e.RequestReceivedTimestamp.Format(time.RFC3339Nano))
	p.Field("FROM", "%s (%s)", strings.Join(e.SourceIPs, ", "), e.UserAgent)
	for i, s := range r.Stages {
		p.Field(nth("STAGE", i), "%s %s %d", s.Time.Format("15:04:05.000000"), s.Stage, s.Code)
	}
	printIdentity(p, e, v, r)
	p.Field("VERDICT", "%s %s", v.Outcome, v.Class)
	p.Field("", "%s", v.Cause)
	p.Field("RECORDED", "%s  %s", v.Recorded, v.RecordedReason)
	p.Field("REPLAYED", "%s  %s", v.Replayed, v.Authorizer)
	for i, c := range r.Chain {
		p.Field(nth("CHAIN", i), "%s: %s  %s", c.Authorizer, c.Answer, c.Reason)
	}
	printGrants(p, "GRANT", v.Grants)
	printList(p, "MISSING ROLE", v.Errors)
	printList(p, "NEEDED", v.Missing)
	printBehind(p, v)
	if at := r.At; at != nil {
		p.Field("AT "+at.Time.Format(time.RFC3339Nano), "%s  %s", at.Replayed, at.Authorizer)
		printGrants(p, "  GRANT", at.Grants)
		printList(p, "  MISSING ROLE", at.Errors)
		printList(p, "  NEEDED", at.Missing)
		if im := at.Impersonation; im != nil {
			p.Field("  IMPERSONATION", "%s (%s) %s", im.Replayed, im.Mode, strings.Join(im.Missing, "; "))
		}
	}
	if a := v.Admission; a != nil {
		p.Field("ADMISSION", "%s %s", a.Recorded, a.Plugin)
		for _, x := range a.Answers {
			p.Field("", "%s: %s  %s", strings.TrimSpace(x.Plugin+" "+x.Name), x.Outcome, x.Reason)
		}
	}
	p.Field("RESPONSE", "%d %s", e.Code(), query.StatusMessage(e))
	p.Field("ENGINE", "%s, configuration %s", v.Engine, v.Config)
	return nil
}

func printList(p *cli.Page, name string, values []string) {
	for i, v := range values {
		p.Field(nth(name, i), "%s", v)
	}
}

// grantForm is how a grant is written: subject, binding, role, rule.
const grantForm = "%s  ←  %s  ←  %s (rule %d)"

func printGrants(p *cli.Page, name string, grants []query.GrantLine) {
	for i, g := range grants {
		p.Field(nth(name, i), grantForm, g.Subject, g.Binding, g.Role, g.Rule)
	}
}

// printIdentity prints who it was, what produces that identity, the credential and its issue, and what contradicts it; then whether they
// might act as somebody else.
func printIdentity(p *cli.Page, e *query.AuditEvent, v *query.VerdictLine, r *query.JudgedRequest) {
	p.Field("USER", "%s", e.User.Username)
	p.Field("GROUPS", "%s", strings.Join(e.User.Groups, ", "))
	p.Field("EXPLAINED BY", "%s", strings.Join(v.Explained, ", "))
	first := 0
	for _, a := range r.Authenticators {
		if !a.Possible {
			p.Field(nth("NOT BY", first), "%s: %s", a.Authenticator, a.Why)
			first++
		}
	}
	p.Field("CREDENTIAL", "%s", v.Credential)
	if issue := r.Issue; issue != nil {
		p.Field("", "issued %s by %s from %s for %s", issue.At.UTC().Format(time.RFC3339), issue.By, cmp.Or(issue.From, "-"), issue.About())
	}
	for i, f := range v.Identity {
		if i < len(v.Evidence) && v.Evidence[i] != "" {
			f += ": " + v.Evidence[i]
		}
		p.Field(nth("IDENTITY", i), "%s", f)
	}
	if u := e.ImpersonatedUser; u != nil {
		p.Field("ACTING AS", "%s", u.Username)
		p.Field("  GROUPS", "%s", strings.Join(u.Groups, ", "))
	}
	if im := v.Impersonation; im != nil {
		p.Field("IMPERSONATION", "%s (%s) %s", im.Replayed, im.Mode, strings.Join(im.Missing, "; "))
		p.Field("", "%s", im.Cause)
		printGrants(p, "  GRANT", im.Grants)
	}
}

// printBehind prints the checks behind the authorization filter, and the answer of a review.
func printBehind(p *cli.Page, v *query.VerdictLine) {
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
		p.Field(nth("BEHIND IT", i), "%s", text)
		for _, g := range c.Grants {
			p.Field("", "  "+grantForm, g.Subject, g.Binding, g.Role, g.Rule)
		}
		for _, m := range c.Missing {
			if c.Replayed == query.NotDecided {
				m = "not known: " + m
			}
			p.Field("", "  %s", m)
		}
	}
	if r := v.Review; r != nil {
		p.Field("REVIEW", "%s of %s: %s", r.Kind, r.User, r.Asked)
		p.Field("", "answered %s %s; replayed %s: %s %s", r.Recorded, r.Reason, r.Replayed, r.Verdict, r.Cause)
	}
}

// nth names the first of several fields and leaves the others' names blank.
func nth(name string, i int) string {
	if i == 0 {
		return name
	}
	return ""
}
