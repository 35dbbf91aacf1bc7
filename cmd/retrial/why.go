package main

import (
	"fmt"
	"io"
	"net/url"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/replay"
)

// AUDIT-ID ─▶ api/v1/why of the running server ─▶ page for the terminal | json | yaml
//
//	└▶ none running: the same question to the store, opened here
func newWhy(s streams) *cobra.Command {
	var from asker
	var cluster, output, at string
	c := &cobra.Command{
		Use:   "why AUDIT-ID",
		Short: "Explain one request: who it was, every grant that allows it, recorded against replayed",
		Long: `Explain the requests that carry an audit ID: who asked, what each authorizer of the chain
answered, every grant that allows it, and what the apiserver recorded. With --at, also what the
answer would be by the policy of another time: today's, or that of before a change.

The running server is asked; with none running the command reads the store itself, and takes
the flags of ` + "`retrial serve`" + ` that are about it.`,
		Example: `  retrial why 5da2bf21-6b97-4948-b415-44ccd0377bc9
  retrial why 5da2bf21-6b97-4948-b415-44ccd0377bc9 --at 2026-11-20T12:00:00Z
  retrial why 5da2bf21-6b97-4948-b415-44ccd0377bc9 -o json | jq '.requests[0].verdict.grants'`,
		Args: oneArg("AUDIT-ID"),
	}
	from.bind(c)
	c.Flags().StringVar(&cluster, "cluster", "", "look in this cluster only: audit IDs are chosen by clients and may be reused")
	c.Flags().StringVar(&at, "at", "", "decide the request also by the policy of this time (RFC 3339)")
	addOutput(c, &output, "table", "json", "yaml")
	c.RunE = func(c *cobra.Command, args []string) error {
		var answer whyJSON
		if err := from.ask(c.Context(), "why", url.Values{"auditID": {args[0]}, "cluster": {cluster}, "at": {at}}, &answer); err != nil {
			return err
		}
		if len(answer.Requests) == 0 {
			where := ""
			if cluster != "" {
				where = " in cluster " + cluster
			}
			return exitCode{exitNoMatch, fmt.Errorf("no stored request carries the audit ID %s%s", shorten(args[0]), where)}
		}
		if output != "table" {
			return printAs(s.out, output, answer)
		}
		return printWhy(s.out, answer)
	}
	return c
}

func printWhy(w io.Writer, answer whyJSON) error {
	if n := len(answer.Requests); n > 1 {
		why := "clients choose it and may use one again"
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
func clusters(answer whyJSON) []string {
	var names []string
	for _, r := range answer.Requests {
		if !slices.Contains(names, r.Cluster) {
			names = append(names, r.Cluster)
		}
	}
	return names
}

// shorten cuts what is too long for a message.
func shorten(s string) string {
	if r := []rune(s); len(r) > 100 {
		return string(r[:100]) + "…"
	}
	return s
}

func printRequest(out io.Writer, r requestJSON) error {
	e, err := event.Decode(r.Event)
	if err != nil {
		return fmt.Errorf("stored event of cluster %s: %w", r.Cluster, err)
	}
	v := r.Verdict
	if v == nil {
		v = &replay.Line{Verdict: "none", Recorded: "none", Replayed: "none"}
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	field := func(name string, format string, args ...any) {
		if text := strings.TrimSpace(fmt.Sprintf(format, args...)); text != "" {
			fmt.Fprintf(w, "%s\t%s\n", name, safe.Text(text))
		}
	}
	user := e.EffectiveUser()
	field("REQUEST", "%s %s", e.Verb, e.RequestURI)
	field("CLUSTER", "%s %s", r.Cluster, r.APIServer)
	field("RECEIVED", "%s", e.RequestReceivedTimestamp.Format(time.RFC3339Nano))
	field("USER", "%s", e.User.Username)
	if e.ImpersonatedUser != nil {
		field("ACTING AS", "%s", e.ImpersonatedUser.Username)
	}
	field("GROUPS", "%s", strings.Join(user.Groups, ", "))
	field("FROM", "%s (%s)", strings.Join(e.SourceIPs, ", "), e.UserAgent)
	for _, s := range r.Stages {
		field("STAGE", "%s %s %d", s.Time.Format("15:04:05.000000"), s.Stage, s.Code)
	}
	field("VERDICT", "%s %s", v.Verdict, v.Class)
	field("", "%s", v.Cause)
	field("RECORDED", "%s  %s", v.Recorded, v.RecordedReason)
	field("REPLAYED", "%s  %s", v.Replayed, v.Authorizer)
	for i, c := range r.Chain {
		field(nth("CHAIN", i), "%s: %s", c.Authorizer, c.Answer)
	}
	for i, g := range v.Grants {
		field(nth("GRANT", i), "%s  ←  %s  ←  %s (rule %d)", g.Subject, g.Binding, g.Role, g.Rule)
	}
	for i, m := range v.Errors {
		field(nth("MISSING ROLE", i), "%s", m)
	}
	for i, m := range v.Missing {
		field(nth("NEEDED", i), "%s", m)
	}
	for i, f := range v.Identity {
		field(nth("IDENTITY", i), "%s", f)
	}
	if im := v.Impersonation; im != nil {
		field("IMPERSONATION", "%s (%s) %s", im.Replayed, im.Mode, strings.Join(im.Missing, "; "))
		for i, g := range im.Grants {
			field(nth("  GRANT", i), "%s  ←  %s  ←  %s", g.Subject, g.Binding, g.Role)
		}
	}
	if at := r.At; at != nil {
		field("AT "+at.Time.Format(time.RFC3339Nano), "%s  %s", at.Replayed, at.Authorizer)
		for i, g := range at.Grants {
			field(nth("  GRANT", i), "%s  ←  %s  ←  %s (rule %d)", g.Subject, g.Binding, g.Role, g.Rule)
		}
		for i, m := range at.Errors {
			field(nth("  MISSING ROLE", i), "%s", m)
		}
		for i, m := range at.Missing {
			field(nth("  NEEDED", i), "%s", m)
		}
		if im := at.Impersonation; im != nil {
			field("  IMPERSONATION", "%s (%s) %s", im.Replayed, im.Mode, strings.Join(im.Missing, "; "))
		}
	}
	if a := v.Admission; a != nil {
		field("ADMISSION", "%s %s", a.Recorded, a.Plugin)
	}
	field("RESPONSE", "%d %s", e.Code(), statusMessage(e))
	field("ENGINE", "%s, configuration %s", v.Engine, v.Config)
	return w.Flush()
}

// nth names the first of several fields and leaves the others' names blank.
func nth(name string, i int) string {
	if i == 0 {
		return name
	}
	return ""
}

func statusMessage(e *event.Event) string {
	if e.ResponseStatus == nil {
		return ""
	}
	return e.ResponseStatus.Message
}
