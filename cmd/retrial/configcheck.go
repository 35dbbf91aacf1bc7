package main

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/internal/cli"
)

func newConfig(s cli.Streams) *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Check what Retrial is told about apiservers",
		Args:  cli.NoArgs,
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(newConfigCheck(s))
	return c
}

// DIR ─▶ replay/config (the reader evaluate and serve use) ─▶ Report ─▶ table | json | yaml
func newConfigCheck(s cli.Streams) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use:   "check DIR",
		Short: "Say what is understood of an apiserver's configuration, what is ignored, missing, and what stays open",
		Long: `Read a folder with the configuration of a cluster's apiservers the way evaluate and serve do
(--apiserver-config), and say what was understood, ignored and missing, and what cannot be
evaluated from a log although it was understood. docs/apiserver-config.md says what belongs in
the folder. Credentials in it are dropped on reading and never printed.

It ends with 0 when nothing is missing, with 3 when something is (what depends on it is
judged as unknown), with 1 when the configuration contradicts itself or cannot be read.`,
		Example: `  retrial config check /etc/retrial/prod
  retrial config check prod -o json | jq '.versions[].missing'`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) == 0 || args[0] == "":
				return cli.UsageError(c, "DIR is missing")
			case len(args) > 1:
				return cli.UsageError(c, "unexpected argument %q: one DIR at a time", args[1])
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			report, err := doctor.CheckConfig(args[0])
			if err != nil {
				return err
			}
			err = cli.Show(s, output, cli.Kinded{Kind: "ConfigCheck", Answer: report}, func(p *cli.Page) {
				for i, v := range report.Versions {
					p.Named(v.Folder)
					if i > 0 {
						p.Printf("\n")
					}
					printReading(p, v)
				}
			})
			if err != nil {
				return err
			}
			if !report.Complete {
				return cli.ExitWith(cli.ExitFinding, errors.New("something is missing; what depends on it is judged as unknown"))
			}
			return nil
		},
	}
	cli.AddOutput(c, &output)
	return c
}

// printReading prints one configuration as blocks of lines, those that need action last.
func printReading(p *cli.Page, v *doctor.ConfigReading) {
	what, since, version := "kube-apiserver", "always", v.Version
	switch {
	case v.Aggregated:
		what = "aggregated API server " + v.Server
	case v.Server != "":
		what += " " + v.Server
	}
	if !v.From.IsZero() {
		since = "from " + v.From.Format(time.RFC3339)
	}
	version = cmp.Or(version, "of no stated version, taken as a current one")
	p.Printf("%s %s, %s (folder %s, digest %s)\n", what, version, since, v.Folder, v.Digest)
	block := func(title string, notes []doctor.ConfigNote) {
		if len(notes) > 0 {
			p.Printf("\n%s\n", title)
		}
		for _, n := range notes {
			p.Printf("  %s\t%s\n", n.Subject, n.Text)
		}
	}
	block("UNDERSTOOD", v.Understood)
	block("AUTHENTICATION, in this order", v.Authenticators)
	block("AUTHORIZATION, in this order", v.Authorizers)
	block("IGNORED", folded(v.Ignored))
	block("NOT EVALUABLE FROM A LOG", v.NotEvaluable)
	warnings := make([]doctor.ConfigNote, 0, len(v.Warnings))
	for _, text := range v.Warnings {
		warnings = append(warnings, doctor.ConfigNote{Subject: text})
	}
	block("WARNINGS", warnings)
	block("MISSING", v.Missing)
}

// folded puts the subjects of notes with one text on one line.
func folded(notes []doctor.ConfigNote) []doctor.ConfigNote {
	var out []doctor.ConfigNote
	at := map[string]int{}
	subjects := map[string][]string{}
	for _, n := range notes {
		if _, ok := at[n.Text]; !ok {
			at[n.Text] = len(out)
			out = append(out, doctor.ConfigNote{Text: n.Text})
		}
		subjects[n.Text] = append(subjects[n.Text], n.Subject)
	}
	for i := range out {
		out[i].Subject, out[i].Text = out[i].Text+":", strings.Join(subjects[out[i].Text], ", ")
	}
	return out
}
