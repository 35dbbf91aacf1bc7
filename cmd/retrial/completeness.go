package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
)

type completenessAnswer struct {
	query.CompletenessReport
	// Log is what an apiserver's log says it lost, when one was named.
	Log []query.PluginError `json:"log,omitempty"`
}

// completeness ─▶ api/v1/completeness of the server, the store or a log (see asker) ─▶ table | json | yaml
func newCompleteness(s cli.Streams) *cobra.Command {
	var ask asker
	var q query.CompletenessRequest
	var logFile string
	c := &cobra.Command{
		Use:   "completeness",
		Short: "Compare what apiservers sent with what arrived, and explain what is missing",
		Long: `Compare, for every apiserver of a cluster, the events it counted with those that are stored:
how many are missing, between which requests, and why. What apiservers sent is known if
the server reads their metrics (--completeness-scrape of retrial serve). Otherwise requests with
a missing stage, silent apiservers and drops in volume still show losses. The newest events are
left out for as long as they may be under way.

--apiserver-log reads a kube-apiserver's own log, which names every event its backends lost.

The exit code is 3 when events are missing that could be brought in, or an apiserver fell silent.`,
		Example: `  retrial completeness
  retrial completeness --cluster prod --from 2026-11-20T00:00:00Z -o json
  retrial completeness --apiserver-log /var/log/pods/kube-system_kube-apiserver-*/kube-apiserver/0.log`,
		Args: cli.NoArgs,
	}
	ask.bind(c, s, &q, "cluster", "from", "to", "settle")
	c.Flags().Lookup("completeness-scrape").Hidden = false
	c.Flags().StringVar(&logFile, "apiserver-log", "", "log of a kube-apiserver, to name the events it lost")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var answer completenessAnswer
		if logFile != "" {
			f, err := os.Open(logFile)
			if err != nil {
				return cli.ExitWith(cli.ExitUsage, fmt.Errorf("--apiserver-log: %w", err))
			}
			defer f.Close()
			if answer.Log, err = query.ReadPluginErrors(f); err != nil {
				return fmt.Errorf("--apiserver-log %s: %w", logFile, err)
			}
		}
		var err error
		if answer.CompletenessReport, err = answerOne(c.Context(), &ask, &q.Cluster, &q); err != nil {
			return err
		}
		err = ask.show(answer, func(p *cli.Page) { printCompleteness(p, &answer) })
		if err == nil && answer.Failed() {
			return cli.ExitWith(cli.ExitFinding, errors.New("not everything that was sent is here"))
		}
		return err
	}
	return c
}

// mostNamed bounds the lost events that a table names.
const mostNamed = 20

func printCompleteness(p *cli.Page, a *completenessAnswer) {
	p.Printf("%s from %s to %s\n\n", a.Cluster, a.From.Format(time.RFC3339), a.To.Format(time.RFC3339))
	p.Table("APISERVER\tSENT\tMISSING\tDROPPED\tARRIVED\tFROM A LOG\tLAST POST")
	for _, s := range a.Servers {
		p.Named(s.Name)
		sent, missing, dropped, last := "not known", "-", "-", "-"
		if m := s.Measured; m != nil {
			sent, missing, dropped = phrase.Thousands(m.Sent), phrase.Thousands(m.Missing), phrase.Thousands(m.Webhook+m.Buffer)
			if m.AtMost > m.Missing {
				missing += " to " + phrase.Thousands(m.AtMost)
			}
		}
		if !s.LastPost.IsZero() {
			last = s.LastPost.Format(time.RFC3339)
		}
		p.Printf("%s\t%s\t%s\t%s\t%s\t%s\t%s\n", cmp.Or(s.Name, "-"), sent, missing, dropped, phrase.Thousands(s.Events),
			phrase.Thousands(s.Log), last)
	}
	if len(a.Servers) == 0 {
		p.Printf("nothing arrived in this time\n")
	}
	p.Printf("\nopen requests: %d; with a missing stage: %d; events an hour: %d", a.Pairs.Open,
		a.Pairs.Overdue+a.Pairs.NoStart+a.Pairs.NoAnswer, a.Volume.Hourly)
	if a.Volume.Usual > 0 {
		p.Printf(", usual by %s: %d", a.Volume.By, a.Volume.Usual)
	}
	p.Printf("\n")
	for _, x := range a.Problems {
		p.Printf("\n%s  %s\n", x.Severity, x.Text)
		if x.Todo != "" {
			p.Printf("      %s\n", x.Todo)
		}
	}
	if len(a.Problems) == 0 {
		p.Printf("\nNothing is known to be missing.\n")
	}
	printPluginErrors(p, a.Log)
}

// printPluginErrors names what an apiserver's log says it lost.
func printPluginErrors(p *cli.Page, list []query.PluginError) {
	named := 0
	for i := range list {
		e := &list[i]
		p.Printf("\n%s  the %s backend lost %s (%s): %s\n", e.Written.Format(time.RFC3339), e.Plugin, phrase.Count(e.Events, "event"),
			e.Cause, phrase.Shorten(e.Reason))
		for _, l := range e.Suspects() {
			p.Printf("      by one of: %s %s %s by %s, answered %s\n", l.Received.Format(time.RFC3339Nano), l.Verb, l.URI,
				l.User, l.Response)
		}
		for _, l := range e.Lost {
			if named++; named > mostNamed {
				break
			}
			p.Printf("      lost: %s %s %s %s by %s\n", l.Received.Format(time.RFC3339Nano), l.AuditID, l.Verb, l.URI, l.User)
		}
	}
	if named > mostNamed {
		p.Printf("      and more; -o json names them all\n")
	}
}
