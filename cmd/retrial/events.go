package main

import (
	"cmp"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
	apiclient "github.com/retrial-io/retrial/query/client"
)

// mostOfAnswer is how many requests one answer has at most.
const mostOfAnswer = 500

// filters ─▶ api/v1/events, page after page ─▶ a line a request, newest first | json | yaml | csv
func newEvents(s cli.Streams) *cobra.Command {
	var from asker
	var q query.EventsRequest
	limit := 50
	c := &cobra.Command{
		Use:   "events [--since TIME] [--where CONDITION]...",
		Short: "List requests with their verdicts, newest first",
		Long: `List the requests that all filters select, newest first, with what the apiserver decided and what
the replay says of it. --where takes every column there is: KEY=VALUE, KEY!=VALUE, KEY^=BEGIN and
KEY!^=BEGIN; the values of one key are alternatives, different keys restrict each other.

` + "`retrial tail`" + ` shows requests as they come; ` + "`retrial why`" + ` explains one.`,
		Example: `  retrial events --since 1h --decision forbid
  retrial events --since yesterday --where resource=secrets --where system=no -o wide
  retrial events --subject sa/ci:runner --where verb!=get --where namespace^=team- --limit 5000 -o csv`,
		Args: cli.NoArgs,
	}
	from.bind(c, s, &q, "cluster", "from", "to", "subject", "verb", "resource", "decision", "outcome", "class", "where", "before")
	c.Flags().IntVar(&limit, "limit", limit, "most requests that are listed")
	c.RunE = func(c *cobra.Command, _ []string) (err error) {
		if limit < 1 {
			return cli.UsageError(c, "--limit must be at least 1")
		}
		if q.Subject, err = cli.User("--subject", q.Subject); err != nil {
			return err
		}
		answer, err := listedEvents(c, &from, &q, limit)
		if err != nil {
			return err
		}
		return from.show(answer, func(p *cli.Page) { printEvents(p, &answer) })
	}
	return c
}

// listedEvents asks for so many requests.
func listedEvents(c *cobra.Command, from *asker, q *query.EventsRequest, limit int) (out query.EventsAnswer, err error) {
	client, done, err := from.openFor(c.Context(), q.Cluster)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, done()) }()
	if q.Cluster, err = client.OneCluster(c.Context(), q.Cluster); err != nil {
		return out, err
	}
	out.Events = []query.Event{}
	for {
		q.Limit = min(limit-len(out.Events), mostOfAnswer)
		page, err := apiclient.Ask(c.Context(), client, *q)
		if err != nil {
			return out, err
		}
		out.Events, out.Older = append(out.Events, page.Events...), page.Older
		if q.Before = page.Older; page.Older == "" || len(out.Events) >= limit {
			return out, nil
		}
	}
}

func printEvents(p *cli.Page, a *query.EventsAnswer) {
	if len(a.Events) == 0 {
		p.Printf("No request matches.\n")
	} else if p.Wide() {
		p.Table("TIME\tDECISION\tVERDICT\tCODE\tVERB\tSUBJECT\tREQUEST\t" +
			"IMPERSONATED BY\tREPLAYED\tCLASS\tGRANTS\tADDRESS\tUSER AGENT\tAUDIT ID")
	} else {
		p.Table("TIME\tDECISION\tVERDICT\tCODE\tVERB\tSUBJECT\tREQUEST\tAUDIT ID")
	}
	for i := range a.Events {
		e := &a.Events[i]
		p.Named(e.AuditID)
		p.Printf("%s\t%s\t%s\t%d\t%s\t%s\t%s\t", e.Time.UTC().Format(time.RFC3339Nano), e.Recorded, e.Outcome, e.Code, e.Verb,
			cmp.Or(e.Subject, "(nobody)"), e.RequestURI)
		if p.Wide() {
			p.Printf("%s\t%s\t%s\t%d\t%s\t%s\t", e.ImpersonatedBy, e.Replayed, e.Class, e.GrantCount, e.SourceIP, e.UserAgent)
		}
		p.Printf("%s\n", e.AuditID)
	}
	if a.Older != "" {
		p.Hint("hint: these are the newest %s; for older ones --before %s, or more with --limit", phrase.Number(len(a.Events), "request"),
			phrase.ShellWord(a.Older))
	}
}
