package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/params"
	"github.com/retrial-io/retrial/query"
)

// plainNames are the questions of the API that no other command asks.
var plainNames = []string{"classes", "clusters", "events", "overview", "status", "subject"} //nolint:gochecknoglobals // constant table

// plainQuestions returns the questions of the API that no other command asks.
func plainQuestions() []query.Question {
	return slices.DeleteFunc((&query.Service{}).Questions(), func(q query.Question) bool { return !slices.Contains(plainNames, q.Name) })
}

// plain asks a question of the API and prints its JSON, as YAML for people.
func (a *askCommand) plain(ctx context.Context, q *query.Question) (err error) {
	if a.output == "csv" {
		return cli.ExitWith(cli.ExitUsage, fmt.Errorf("invalid --output \"csv\": %s is answered in YAML or JSON", q.Name))
	}
	values := url.Values{}
	for name, value := range a.Values {
		values.Set(name, value)
	}
	if _, err := params.Read(q.NewRequest(), values); err != nil {
		return cli.ExitWith(cli.ExitUsage, err)
	}
	client, done, err := a.from.openFor(ctx, a.Cluster)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	if slices.ContainsFunc(q.Parameters(), func(f params.Field) bool { return f.Name == "cluster" }) && !values.Has("cluster") {
		if a.Cluster, err = client.OneCluster(ctx, a.Cluster); err != nil {
			return err
		}
		values.Set("cluster", a.Cluster)
	}
	answer, err := client.AskByName(ctx, q.Name, values)
	if err != nil {
		return err
	}
	form := "yaml"
	if a.output == "json" {
		form = "json"
	}
	return cli.PrintAs(a.Out, form, answer)
}

// instead runs the command that answers a question now, with the flags that were given.
func (a *askCommand) instead(c *cobra.Command, q *query.NamedQuestion) error {
	if a.output == "csv" {
		return cli.ExitWith(cli.ExitUsage, fmt.Errorf("invalid --output \"csv\": retrial %s answers this, as table, json or yaml", q.Now))
	}
	fmt.Fprintf(a.Err, "hint: `retrial ask %s` is `retrial %s` now; the old name goes with the next release\n", q.Name, q.Now)
	var args []string
	c.Flags().Visit(func(f *pflag.Flag) {
		if f.Name == "param" {
			return
		}
		list, ok := f.Value.(pflag.SliceValue)
		if !ok {
			args = append(args, "--"+f.Name+"="+f.Value.String())
			return
		}
		for _, value := range list.GetSlice() {
			args = append(args, "--"+f.Name+"="+value)
		}
	})
	command := newDrift(a.Streams)
	if q.Now == "why" {
		command, args = newWhy(a.Streams), append(args, "--", a.Values["id"])
	}
	for _, name := range []string{"from", "to"} {
		if value := a.Values[name]; value != "" {
			args = append(args, "--"+name+"="+value)
		}
	}
	command.SetArgs(args)
	command.SilenceErrors, command.SilenceUsage = true, true
	return command.ExecuteContext(c.Context())
}
