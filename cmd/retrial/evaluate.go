package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/server"
)

// --state FILE|DIR ─┐
//
//	├─▶ replay/evaluate (the engine serve uses) ─▶ -o table | json | yaml (summary)
//
// --events FILE … ──┘                                          └─▶ -o jsonl (a verdict a line)
func newEvaluate(s cli.Streams) *cobra.Command {
	var log server.Log
	var output, failOn string
	var lag time.Duration
	c := &cobra.Command{
		Use:   "evaluate --state FILE|DIR --events FILE...",
		Short: "Replay an audit log offline: no Kafka, no ClickHouse",
		Long: `Replay every request of an audit log against the cluster's state as it stood at that moment,
and compare with what the apiserver recorded. Policy writes found in the log are part of the
state. Files may be plain, gzip or zstd; - is standard input. -o table, json and yaml print a
summary, jsonl one verdict a line.

The state is that of the time the log begins:
  kubectl get clusterroles,clusterrolebindings,roles,rolebindings,namespaces,serviceaccounts,pods,nodes,persistentvolumes,volumeattachments,certificatesigningrequests -A -o json`,
		Example: `  retrial evaluate --state state.json --events audit.log
  retrial evaluate --state state.json --events audit.log -o jsonl | jq 'select(.outcome=="drift")'`,
		Args: cli.NoArgsBut("logs are named with --events, states with --state"),
		RunE: func(c *cobra.Command, _ []string) error {
			if len(log.Events) == 0 {
				return cli.ExitWith(cli.ExitUsage, errors.New("--events is missing: name an audit log, or - for standard input"))
			}
			if !slices.Contains([]string{"", "drift", "any"}, failOn) {
				return cli.ExitWith(cli.ExitUsage, fmt.Errorf("invalid --fail-on %q: want drift or any", failOn))
			}
			if lag < 0 {
				return cli.ExitWith(cli.ExitUsage, fmt.Errorf("--lag %s: must not be negative", lag))
			}
			log.Streams = s
			out := bufio.NewWriterSize(s.Out, 1<<20)
			var lines io.Writer
			if output == "jsonl" {
				lines = out
			}
			sum, err := log.Evaluate(c.Context(), lag, lines)
			if err != nil {
				return err
			}
			if err := out.Flush(); err != nil {
				return fmt.Errorf("write the result: %w", err)
			}
			if output != "jsonl" {
				answer := cli.Kinded{Kind: "Evaluation", Answer: sum}
				if err := cli.Show(s, output, answer, func(p *cli.Page) { printSummary(p, sum) }); err != nil {
					return err
				}
			}
			if err := log.Remarks(sum); err != nil {
				return err
			}
			v := sum.Verdicts
			switch {
			case failOn != "" && v.Drift > 0:
				return cli.ExitWith(cli.ExitFinding, fmt.Errorf("%d requests drift", v.Drift))
			case failOn == "any" && v.Ambiguous+v.Indeterminate > 0:
				return cli.ExitWith(cli.ExitFinding,
					fmt.Errorf("%d requests are ambiguous, %d indeterminate", v.Ambiguous, v.Indeterminate))
			}
			return nil
		},
	}
	c.Flags().StringSliceVar(&log.States, "state", nil,
		"state file, or folder of state files that form one listing; may be repeated for listings of different times")
	c.Flags().StringSliceVar(&log.Events, "events", nil,
		"audit log, - for standard input, NAME=FILE for that of an aggregated API server; may be repeated")
	c.Flags().StringVar(&log.Cluster, "cluster", "", "name of the cluster (default \"evaluate\")")
	c.Flags().StringSliceVar(&log.Apiservers, "apiserver-config", nil,
		"folder with the configuration of the cluster's apiserver, or NAME=DIR of the cluster NAME (docs/apiserver-config.md)")
	cli.DurationVar(c, &lag, "lag", server.DefaultLag, "how far the apiserver's caches may run behind")
	c.Flags().BoolVar(&log.FromEmpty, "from-empty", false, "the log begins with the cluster's first start: there was nothing before it")
	cli.AddOutput(c, &output, "table", "json", "yaml", "jsonl", "csv", "jsonpath=EXPRESSION")
	c.Flags().StringVar(&failOn, "fail-on", "", "exit with 3 on drift, or on any judged request that does not match")
	return c
}

func printSummary(p *cli.Page, sum *server.Summary) {
	p.Printf("events\t%d\n", sum.Events)
	p.Printf("requests\t%d\n", sum.Requests)
	p.Printf("  match\t%d\n", sum.Verdicts.Match)
	p.Printf("  drift\t%d\n", sum.Verdicts.Drift)
	p.Printf("  ambiguous\t%d\n", sum.Verdicts.Ambiguous)
	p.Printf("  indeterminate\t%d\n", sum.Verdicts.Indeterminate)
	p.Printf("  not judged\t%d\n", sum.Verdicts.NotJudged)
	if sum.Agreement != nil {
		p.Printf("agreement\t%.4f %%\n", 100**sum.Agreement)
	}
	if sum.Malformed > 0 {
		p.Printf("malformed lines\t%d\n", sum.Malformed)
	}
	p.Printf("seconds\t%.2f\n", sum.Seconds)
	classes := slices.SortedFunc(maps.Keys(sum.Classes), func(a, b string) int {
		return cmp.Or(cmp.Compare(sum.Classes[b], sum.Classes[a]), strings.Compare(a, b))
	})
	if len(classes) > 0 {
		p.Printf("\n")
	}
	for _, c := range classes {
		p.Printf("%s\t%d\t%s\n", c, sum.Classes[c], query.ClassText(c))
	}
}
