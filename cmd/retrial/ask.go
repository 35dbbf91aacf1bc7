package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
	apiclient "github.com/retrial-io/retrial/query/client"
	"github.com/retrial-io/retrial/server"
)

// asker is shared by the commands that ask questions: whom to ask, and how.
//
//	question ─▶ running server (--server URL, or the data directory's socket) ─▶ api/v1/…
//	   ├ none running ─▶ the same API on the store, opened here
//	   └ --events ─▶ the same API on a log, replayed here (bindLog)
type asker struct {
	cli.Streams
	output string
	flags  *config.Flags
	set    *pflag.FlagSet
	server string
	log    *server.Log   // nil: the question is not asked of logs
	rules  *server.Rules // that look for findings in the log; nil: those of the binary
}

// bind adds the flags of a command that asks a server, a store or a log, those of the named parameters of its request, and -o.
func (a *asker) bind(c *cobra.Command, s cli.Streams, request any, names ...string) {
	a.bindForms(c, s, request, cli.AnswerForms(), names...)
}

// bindForms does so for a command that prints in forms of its own.
func (a *asker) bindForms(c *cobra.Command, s cli.Streams, request any, forms []string, names ...string) {
	a.bindServer(c, s)
	a.bindLog(c)
	cli.BindRequest(c, request, names...)
	a.completeFlags(c)
	cli.AddOutput(c, &a.output, forms...)
}

// bindServer adds the flags that ask a server or a store. Help shows the configuration's flags that matter to all such commands.
func (a *asker) bindServer(c *cobra.Command, s cli.Streams) {
	a.Streams, a.flags, a.set = s, config.Bind(c.Flags()), c.Flags()
	showFlags(c.Flags(), "data-dir", "clickhouse-dsn")
	cli.Before(c, func(args []string) error { return a.ofContext(c, args) })
	c.Flags().StringVar(&a.server, "server", "", "URL of a server's page (default: the local socket); a token comes from RETRIAL_TOKEN")
}

// bindLog adds the flags that ask a log instead.
func (a *asker) bindLog(c *cobra.Command) {
	a.log = &server.Log{Streams: a.Streams}
	f := c.Flags()
	f.StringSliceVar(&a.log.Events, "events", nil,
		"look at this audit log instead, - for standard input, NAME=FILE for that of an aggregated API server; may be repeated")
	f.StringSliceVar(&a.log.States, "state", nil,
		"with --events: state file, or folder of state files that form one listing; may be repeated")
	f.BoolVar(&a.log.FromEmpty, "from-empty", false,
		"with --events: the log begins with the cluster's first start, there was nothing before it")
	before := c.Args
	c.Args = func(c *cobra.Command, args []string) error {
		if err := before(c, args); err != nil {
			return err
		}
		switch {
		case a.offline() && a.server != "":
			return cli.UsageError(c, "--server and --events exclude each other")
		case !a.offline() && (len(a.log.States) > 0 || a.log.FromEmpty):
			return cli.UsageError(c, "--state and --from-empty need a log: add --events")
		}
		return nil
	}
}

// show prints an answer in the form asked for, as a page by the function.
func (a *asker) show(answer any, page func(*cli.Page)) error {
	return cli.Show(a.Streams, a.output, answer, page)
}

// offline reports whether a log is asked.
func (a *asker) offline() bool { return a.log != nil && len(a.log.Events) > 0 }

// openFor returns a client that answers questions about one cluster, "" for the only one; call done when finished.
func (a *asker) openFor(ctx context.Context, cluster string) (client *apiclient.Client, done func() error, err error) {
	if !a.offline() {
		cfg, err := a.flags.Load()
		if err != nil {
			return nil, nil, cli.ExitWith(cli.ExitUsage, err)
		}
		return server.Connect(ctx, a.server, cfg)
	}
	// For a log, --apiserver-config may name a folder without a cluster, which no configuration accepts.
	cfg, err := a.flags.LoadWithout("apiserver-config")
	if err != nil {
		return nil, nil, cli.ExitWith(cli.ExitUsage, err)
	}
	log := *a.log
	log.Cluster, log.Rules, log.Library = cluster, a.rules, cfg.ClickHouse.Library
	if flag := a.set.Lookup("apiserver-config"); flag.Changed {
		log.Apiservers = strings.Split(flag.Value.String(), ",")
	}
	if log.Key, err = server.KnownKey(cfg); err != nil {
		return nil, nil, cli.ExitWith(cli.ExitUsage, err)
	}
	return log.Client(ctx)
}

// didYouMean words what may have been meant; it is empty without any.
func didYouMean(near []string) string { return phrase.DidYouMean(", ", near) }

// noRequest says that no request has an audit ID.
func (a *asker) noRequest(id, cluster string) error {
	what := "no stored request"
	if a.offline() {
		what = "no judged request of the log"
	}
	if cluster != "" {
		cluster = " in cluster " + cluster
	}
	if len(id) < query.LeastPrefix {
		cluster += fmt.Sprintf("; the beginning of one takes at least %d letters", query.LeastPrefix)
	}
	return cli.ExitWith(cli.ExitNoMatch, fmt.Errorf("%s carries the audit ID %s%s", what, phrase.Shorten(id), cluster))
}

// wholeID returns the audit ID that one alone has which begins with what was given: itself, where requests carry it.
func (a *asker) wholeID(ctx context.Context, prefix, cluster string) (id string, err error) {
	answer, err := answerOf(ctx, a, cluster, query.WhyRequest{AuditID: prefix, Cluster: cluster})
	switch like := answer.Like; {
	case err != nil:
		return "", err
	case len(answer.Requests) > 0:
		return prefix, nil
	case len(like) == 0:
		return "", a.noRequest(prefix, cluster)
	case len(like) > 1:
		var p cli.Page
		for i := range like {
			x := &like[i]
			p.Printf("\n  %s\t%s\t%s %s %s: %d", phrase.Shorten(x.AuditID), x.Time.Format(time.RFC3339),
				phrase.Shorten(x.Subject), x.Verb, phrase.Shorten(x.RequestURI), x.Code)
		}
		lines, _ := p.Texts()
		return "", cli.ExitWith(cli.ExitNoMatch,
			fmt.Errorf("several audit IDs begin with %s, the first are%s", phrase.Shorten(prefix), lines))
	}
	fmt.Fprintln(a.Err, "hint: audit ID", cli.SafeLines(answer.Like[0].AuditID))
	return answer.Like[0].AuditID, nil
}

// answerOf opens a client, asks one question, about a cluster if one is named, and closes it.
func answerOf[A any](ctx context.Context, a *asker, cluster string, request query.Request[A]) (answer A, err error) {
	client, done, err := a.openFor(ctx, cluster)
	if err != nil {
		return answer, err
	}
	answer, err = apiclient.Ask(ctx, client, request)
	return answer, errors.Join(err, done())
}

// answerOne asks one question about the named cluster, or the only one, whose name it writes into the request first.
func answerOne[A any, R query.Request[A]](ctx context.Context, a *asker, cluster *string, request *R) (answer A, err error) {
	client, done, err := a.openFor(ctx, *cluster)
	if err != nil {
		return answer, err
	}
	defer func() { err = errors.Join(err, done()) }()
	if *cluster, err = client.OneCluster(ctx, *cluster); err != nil {
		return answer, err
	}
	return apiclient.Ask(ctx, client, *request)
}

// onePage returns what a command runs that asks a question about one cluster and prints the answer.
func onePage[A any, R query.Request[A]](a *asker, cluster *string, request *R,
	page func(*cli.Page, *A)) func(*cobra.Command, []string) error {
	return func(c *cobra.Command, _ []string) error {
		answer, err := answerOne(c.Context(), a, cluster, request)
		if err != nil {
			return err
		}
		return a.show(answer, func(p *cli.Page) { page(p, &answer) })
	}
}

// showFlags leaves only the named ones of the configuration's flags in a command's help. The others are accepted all the same;
// docs/config.md and `retrial serve --help` list them.
func showFlags(set *pflag.FlagSet, names ...string) {
	cfg := config.Default()
	for _, f := range cfg.Fields() {
		if !slices.Contains(names, f.Flag) {
			set.Lookup(f.Flag).Hidden = true
		}
	}
}
