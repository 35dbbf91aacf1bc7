package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/internal/version"
	apiclient "github.com/retrial-io/retrial/query/client"
	"github.com/retrial-io/retrial/server"
)

// doctor ─▶ running server ─▶ api/v1/doctor ─▶ one line a check
//
//	└ none running ─▶ the same on the store, opened here; or, when it cannot be, on the files alone
func newDoctor(s cli.Streams) *cobra.Command {
	var ask asker
	c := &cobra.Command{
		Use:   "doctor [NAME]",
		Short: "Check the installation and the connection of its clusters, and say what to do",
		Long: `Look at the server, its store, keys, certificates, disk and lag, and at every cluster, or
the one that is named: is it registered, does it post, is its state known, do its requests
get a verdict, do the clocks agree, does its audit policy record what is needed.

If no server is running it says so, and opens the store to check the rest. The exit code is 3
if a check fails; warnings leave it at 0.`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return cli.OneArg("NAME")(c, args)
		},
	}
	ask.bindServer(c, s)
	c.ValidArgsFunction = ask.completing("cluster")
	cli.AddOutput(c, &ask.output)
	c.RunE = func(c *cobra.Command, args []string) error {
		cluster := strings.Join(args, "")
		if err := server.CheckName(cluster); cluster != "" && err != nil {
			return cli.ExitWith(cli.ExitUsage, fmt.Errorf("%s: %w", safe.Text(phrase.Shorten(cluster)), err))
		}
		cfg, err := ask.flags.Load()
		if err != nil {
			return cli.ExitWith(cli.ExitUsage, err)
		}
		answer, err := examine(c.Context(), &ask, cfg, cluster)
		if err != nil {
			return err
		}
		if answer.Unknown {
			return cli.ExitWith(cli.ExitNoMatch, fmt.Errorf("nothing is known of a cluster %s; `retrial connect %s%s` registers it",
				cluster, cluster, doctor.Site{Config: cfg}.DataDir()))
		}
		err = ask.show(cli.Kinded{Kind: "Doctor", Answer: answer}, func(p *cli.Page) { printChecks(p, answer.Checks) })
		return errors.Join(err, doctor.Checks(answer.Checks).Failure())
	}
	return c
}

// examine asks the server, or the store; if neither can be asked, that is a failing check, and the rest is examined all the same.
func examine(ctx context.Context, ask *asker, cfg config.Config, cluster string) (doctor.Answer, error) {
	answer, err := answerOf(ctx, ask, "", doctor.Request{Cluster: cluster})
	var coded cli.Exit
	switch {
	case err == nil:
		if answer.Version != version.Version {
			answer.Checks = append(answer.Checks, doctor.Check{ID: "version", State: doctor.CheckWarn,
				Text: fmt.Sprintf("The server is version %s, this command %s.", answer.Version, version.Version),
				Todo: "Use one version of both."})
		}
		return answer, nil
	case ctx.Err() != nil, errors.As(err, &coded):
		return answer, err
	case ask.server != "":
		return doctor.Answer{Version: version.Version, Checks: []doctor.Check{{ID: "server", State: doctor.CheckFail, Text: err.Error(),
			Todo: "Is the URL that of the page? A token for it comes from RETRIAL_TOKEN."}}}, nil
	}
	c := server.ClosedSite(cfg).Installation()
	if !errors.Is(err, apiclient.ErrNoServer) { // that is told already
		c.Add("data", doctor.CheckFail, "", "%v.", err)
	}
	return doctor.Answer{Version: version.Version, Checks: c}, nil
}

// printChecks prints one line a check and, indented, what to do.
func printChecks(p *cli.Page, list []doctor.Check) {
	if p.Flat() {
		p.Table("STATE\tCLUSTER\tCHECK\tTEXT")
	}
	for _, c := range list {
		p.Named(c.ID)
		p.Printf("%s\t%s\t%s\t%s\n", c.State, cmp.Or(c.Cluster, "-"), c.ID, c.Text)
		if c.State == doctor.CheckOK || c.Todo == "" || p.Flat() {
			continue
		}
		for line := range strings.SplitSeq(c.Todo, "\n") {
			p.Printf("\t\t\t  %s\n", line)
		}
	}
}
