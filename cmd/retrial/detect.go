package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
	apiclient "github.com/retrial-io/retrial/query/client"
	"github.com/retrial-io/retrial/server"
)

type findingsCommand struct {
	asker
	ruleDirs []string
	query.FindingsRequest
	failOn    string
	listRules bool
}

// api/v1/findings of the server, the store or a log (see asker; by the built-in rules and those of --rules) ─▶ -o table | json | yaml
func newFindings(s cli.Streams) *cobra.Command {
	var f findingsCommand
	c := &cobra.Command{
		Use:   "findings [--events FILE... --state FILE|DIR]",
		Short: "Say what is odd: in what is stored, or in an audit log",
		Long: `Print what the detection rules found in the requests that are stored. The running server is
asked; with none running the command reads the store itself.

With --events it replays an audit log as evaluate does instead, runs the rules over every
request and its verdict, and stores nothing. Rules are those of the binary and the .yaml files
of --rules DIR; a rule there replaces one of the same id. A broken rule file is an error that
names it.

A log that is imported or read again gives the same findings under the same ids.`,
		Example: `  retrial findings --min-severity high
  retrial findings --rule pod-exec --from 2026-11-20T00:00:00Z -o json
  retrial findings --state state.json --events audit.log --fail-on critical
  retrial findings --list-rules`,
		Args: cli.NoArgsBut("logs are named with --events, states with --state"),
		RunE: func(c *cobra.Command, _ []string) error { return f.run(c) },
	}
	f.bind(c, s, &f.FindingsRequest, "cluster", "from", "to", "at", "rule", "subject", "severity")
	c.Flags().Lookup("apiserver-config").Hidden = false
	c.Flags().StringVar(&f.failOn, "fail-on", "", "exit with 3 on a printed finding of that severity or above")
	c.Flags().StringSliceVar(&f.ruleDirs, "rules", nil, "with --events or --list-rules: folder of further rules; may be repeated")
	c.Flags().BoolVar(&f.listRules, "list-rules", false, "print the rules of the binary, and those of --rules, instead")
	return c
}

func (f *findingsCommand) run(c *cobra.Command) error {
	fail := query.SeverityOrder(f.failOn)
	if f.failOn != "" && fail < 0 {
		return cli.ExitWith(cli.ExitUsage,
			fmt.Errorf("invalid --fail-on %q: want one of %s", f.failOn, strings.Join(query.Severities(), ", ")))
	}
	var err error
	if f.Subject, err = cli.User("--subject", f.Subject); err != nil {
		return err
	}
	if f.listRules || f.offline() {
		if f.rules, err = server.LoadRules("--rules", f.ruleDirs); err != nil {
			return cli.ExitWith(cli.ExitUsage, err)
		}
	} else if len(f.ruleDirs) > 0 {
		return cli.UsageError(c, "--rules needs a log: add --events")
	}
	if f.listRules {
		return f.show(cli.Kinded{Kind: "DetectionRuleList", Answer: f.rules.Rules()}, func(p *cli.Page) { printRules(p, f.rules) })
	}
	found, err := f.found(c.Context())
	if err != nil {
		return err
	}
	if err := f.show(found, func(p *cli.Page) { printFindings(p, found) }); err != nil {
		return err
	}
	if f.failOn != "" && slices.ContainsFunc(found, func(x query.Finding) bool { return query.SeverityOrder(x.Severity) >= fail }) {
		return cli.ExitWith(cli.ExitFinding, fmt.Errorf("there are findings of severity %s or more", f.failOn))
	}
	return nil
}

// found returns the findings, oldest first.
func (f *findingsCommand) found(ctx context.Context) (found []query.Finding, err error) {
	client, done, err := f.openFor(ctx, f.Cluster)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, done()) }()
	if f.Cluster != "" {
		if _, err := client.OneCluster(ctx, f.Cluster); err != nil {
			return nil, err
		}
	}
	if f.Rule != "" {
		if err := knownRule(ctx, client, f.Rule); err != nil {
			return nil, err
		}
	}
	found = []query.Finding{} // an empty list, not null
	for q := f.FindingsRequest; ; {
		q.Limit = 500 // the most there are of an answer
		page, err := apiclient.Ask(ctx, client, q)
		if err != nil {
			return nil, err
		}
		if page.Stranger {
			return nil, unseen(f.Subject, page.Near)
		}
		for _, raw := range page.Findings {
			var one query.Finding
			if err := json.Unmarshal(raw, &one); err != nil {
				return nil, fmt.Errorf("read the answer: %w", err)
			}
			found = append(found, one)
		}
		if q.Before = page.Older; q.Before == "" {
			break
		}
	}
	slices.Reverse(found)
	return found, nil
}

// unseen is the error of a subject without requests; near are those that may have been meant.
func unseen(subject string, near []string) error {
	return cli.ExitWith(cli.ExitNoMatch, fmt.Errorf("no request of %s is stored%s", phrase.Shorten(subject), didYouMean(near)))
}

// knownRule returns an error for a rule that the server does not have and that has no findings.
func knownRule(ctx context.Context, client *apiclient.Client, id string) error {
	answer, err := apiclient.Ask(ctx, client, query.RulesRequest{})
	if err != nil {
		return err
	}
	if slices.ContainsFunc(answer.Rules, func(r query.DetectionRule) bool { return r.ID == id }) {
		return nil
	}
	page, err := apiclient.Ask(ctx, client, query.FindingsRequest{Rule: id, Limit: 1})
	if err != nil {
		return err
	}
	if len(page.Findings) > 0 {
		return nil
	}
	ids := make([]string, len(answer.Rules))
	for i, r := range answer.Rules {
		ids[i] = r.ID
	}
	return cli.ExitWith(cli.ExitNoMatch, fmt.Errorf("unknown rule %s%s: list them with `retrial findings --list-rules`",
		phrase.Shorten(id), didYouMean(query.Nearest(id, ids, 3))))
}

func printFindings(p *cli.Page, found []query.Finding) {
	if len(found) == 0 {
		p.Printf("no findings\n")
		return
	}
	// The most severe first; within a severity by time, as they come.
	slices.SortStableFunc(found, func(a, b query.Finding) int {
		return query.SeverityOrder(b.Severity) - query.SeverityOrder(a.Severity)
	})
	more := ""
	if p.Wide() {
		more = "\tLAST\tCLUSTER\tID"
	}
	p.Table("SEVERITY\tRULE\tSUBJECT\tREQUESTS\tFIRST\tWHAT" + more)
	for _, f := range found {
		p.Named(f.ID)
		p.Printf("%s\t%s\t%s\t%d\t%s\t%s", f.Severity, f.Rule, f.Subject, f.Count, f.First.UTC().Format(time.DateTime), f.Text)
		if more != "" {
			p.Printf("\t%s\t%s\t%s", f.Last.UTC().Format(time.DateTime), f.Cluster, f.ID)
		}
		p.Printf("\n")
	}
}

func printRules(p *cli.Page, set *server.Rules) {
	p.Table("ID\tSEVERITY\tKIND\tATT&CK\tTITLE")
	for _, r := range set.Rules() {
		p.Named(r.ID)
		p.Printf("%s\t%s\t%s\t%s\t%s\n", r.ID, r.Severity, r.Kind, strings.Join(r.Attack, " "), r.Title)
	}
}
