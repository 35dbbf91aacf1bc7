package main

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
)

// CREDENTIAL | SUBJECT ─▶ api/v1/lineage of the server, the store or a log (see asker) ─▶ issue ─▶ uses, as table | json | yaml
func newLineage(s cli.Streams) *cobra.Command {
	var from asker
	var q query.LineageRequest
	c := &cobra.Command{
		Use:   "lineage CREDENTIAL|SUBJECT",
		Short: "Follow a credential from the request that issued it to every use",
		Long: `Print the life of a credential: the request that issued it, by whom and for what, and every
place it was used from, by client, address, pod and node. For a subject, print all its
credentials, including unused ones that were issued to a service account.

CREDENTIAL is JTI=ID for a token, X509SHA256=FINGERPRINT for a certificate (both as audit
events have them) or Secret=NAMESPACE/NAME for a token that lies in a Secret; anything else is
a SUBJECT: sa/NAMESPACE:NAME, node/NAME, user/NAME, or a user name as audit logs have it.

The running server is asked; with none running the command reads the store itself. With
--events it replays an audit log as evaluate does instead, and stores nothing.`,
		Example: `  retrial lineage JTI=7d1a1b8e-0c3e-4f4e-a4f4-9b2b4f1f9d10
  retrial lineage sa/payments:worker
  retrial lineage node/node-1 --events audit.log --state state.json -o json`,
		Args: cli.OneArg("CREDENTIAL|SUBJECT"),
	}
	from.bind(c, s, &q, "cluster", "from", "to", "limit")
	c.ValidArgsFunction = from.completing("subject")
	asked := onePage(&from, &q.Cluster, &q, printLineage)
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if query.IsCredential(args[0]) {
			q.Credential = args[0]
		} else if q.Subject, err = cli.User("SUBJECT", args[0]); err != nil {
			return err
		}
		return asked(c, args)
	}
	return c
}

func printLineage(p *cli.Page, answer *query.LineageAnswer) {
	stamp := func(t time.Time) string { return t.UTC().Format(time.RFC3339) }
	for i := range answer.Credentials {
		c := &answer.Credentials[i]
		p.Named(c.Credential)
		if i > 0 {
			p.Printf("\n")
		}
		p.Printf("%s\n", cmp.Or(c.Credential, "(not told by the events)"))
		line := func(name, text string) {
			if text != "" {
				p.Printf("  %s\t%s\n", name, text)
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
		if len(c.Uses) > 0 {
			p.Table("    REQUESTS\tFROM\tPOD\tNODE\tFIRST\tLAST\tUSER AGENT")
		}
		for _, u := range c.Uses {
			p.Printf("    %d\t%s\t%s\t%s\t%s\t%s\t%s\n", u.Requests, cmp.Or(u.From, "-"), cmp.Or(u.Pod, "-"), cmp.Or(u.Node, "-"),
				stamp(u.First), stamp(u.Last), phrase.Shorten(u.UserAgent))
		}
		switch {
		case c.More > 0:
			p.Printf("    and %d more\n", c.More)
		case c.More < 0:
			p.Printf("    and more\n")
		}
	}
	if answer.Truncated {
		p.Printf("\nThere are more credentials: --limit shows them.\n")
	}
}
