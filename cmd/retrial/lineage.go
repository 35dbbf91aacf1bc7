package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/query"
)

// lineageCommand is what a run of the command was asked.
type lineageCommand struct {
	cli.Streams
	from   asker
	output string
	query.LineageRequest
}

// CREDENTIAL | SUBJECT ─▶ api/v1/lineage of the server, the store or a log (see asker) ─▶ issue ─▶ uses, as table | json | yaml
func newLineage(s cli.Streams) *cobra.Command {
	l := &lineageCommand{Streams: s}
	c := &cobra.Command{
		Use:   "lineage CREDENTIAL|SUBJECT",
		Short: "Follow a credential from the request that issued it to every use",
		Long: `Print the life of a credential: the request that issued it, by whom and for what, and every
place it was used from, by client, address, pod and node. For a subject, print all its
credentials, including unused ones that were issued to a service account.

CREDENTIAL is JTI=ID for a token, X509SHA256=FINGERPRINT for a certificate (both as audit
events have them) or Secret=NAMESPACE/NAME for a token that lies in a Secret; anything else is
a SUBJECT: a user name as audit logs have it.

The running server is asked; with none running the command reads the store itself. With
--events it replays an audit log as evaluate does instead, and stores nothing.`,
		Example: `  retrial lineage JTI=7d1a1b8e-0c3e-4f4e-a4f4-9b2b4f1f9d10
  retrial lineage system:serviceaccount:payments:worker
  retrial lineage system:node:node-1 --events audit.log --state state.json -o json`,
		Args: cli.OneArg("CREDENTIAL|SUBJECT"),
		RunE: func(c *cobra.Command, args []string) error { return l.run(c, args[0]) },
	}
	l.from.bind(c)
	l.from.bindLog(c, s)
	cli.BindRequest(c, &l.LineageRequest, "cluster", "from", "to", "limit")
	cli.AddOutput(c, &l.output, "table", "json", "yaml")
	return c
}

func (l *lineageCommand) run(c *cobra.Command, arg string) error {
	if query.IsCredential(arg) {
		l.Credential = arg
	} else {
		l.Subject = arg
	}
	answer, err := answerOne(c.Context(), &l.from, &l.Cluster, &l.LineageRequest)
	if err != nil {
		return err
	}
	return cli.Show(l.Out, l.output, answer, func() error { return printLineage(l.Out, &answer) })
}

// printLineage prints credentials for people, one after the other.
func printLineage(out io.Writer, answer *query.LineageAnswer) error {
	stamp := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	for i := range answer.Credentials {
		c := &answer.Credentials[i]
		if i > 0 {
			fmt.Fprintln(out)
		}
		name := cmp.Or(c.Credential, "(not told by the events)")
		fmt.Fprintln(out, safe.Text(name))
		w := cli.Table(out, "")
		line := func(name, text string) {
			if text != "" {
				fmt.Fprintf(w, "  %s\t%s\n", name, safe.Text(text))
			}
		}
		if is := c.Issue; is != nil {
			line("issued", strings.TrimSpace(stamp(is.At)+" by "+is.By+" from "+is.From)+", audit ID "+is.AuditID)
			line("for", is.About())
			if is.Expires != nil {
				line("expires", stamp(*is.Expires))
			}
		} else if c.Credential != "" {
			line("issued", "no recorded request shows it")
		}
		line("as", strings.Join(c.Users, ", "))
		line("taken by", strings.Join(c.Explained, ", "))
		if c.Requests == 0 {
			line("used", "never")
		} else if c.First != nil && c.Last != nil {
			text := fmt.Sprintf("%s, %s to %s", phrase.Number(int(c.Requests), "request"), stamp(*c.First), stamp(*c.Last))
			if c.Forbidden > 0 {
				text += fmt.Sprintf(", %d refused", c.Forbidden)
			}
			line("used", text)
		}
		for _, f := range c.Contradictions {
			line("contradiction", f.Name+": "+f.Evidence)
		}
		if err := w.Flush(); err != nil {
			return err
		}
		if err := printUses(out, c); err != nil {
			return err
		}
	}
	if answer.Truncated {
		fmt.Fprintln(out, "\nThere are more credentials: --limit shows them.")
	}
	return nil
}

func printUses(out io.Writer, c *query.Credential) error {
	if len(c.Uses) == 0 {
		return nil
	}
	w := cli.Table(out, "    REQUESTS\tFROM\tPOD\tNODE\tFIRST\tLAST\tUSER AGENT")
	for _, u := range c.Uses {
		fmt.Fprintf(w, "    %d\t%s\t%s\t%s\t%s\t%s\t%s\n", u.Requests, safe.Text(dash(u.From)), safe.Text(dash(u.Pod)),
			safe.Text(dash(u.Node)),
			u.First.UTC().Format(time.RFC3339), u.Last.UTC().Format(time.RFC3339), safe.Text(phrase.Shorten(u.UserAgent)))
	}
	switch {
	case c.More > 0:
		fmt.Fprintf(w, "    and %d more\n", c.More)
	case c.More < 0:
		fmt.Fprintln(w, "    and more")
	}
	return w.Flush()
}
