package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/sleep"
	"github.com/retrial-io/retrial/query"
	apiclient "github.com/retrial-io/retrial/query/client"
	"github.com/retrial-io/retrial/server"
)

type rejudgeFlags struct {
	flags  *config.Flags
	list   bool
	output string
	query.RejudgeRequest
}

// --since [--until] [--where] ─▶ api/v1/rejudge ─▶ a job a cluster ─▶ followed ─▶ before and after
//
// With no server running, the runner itself is opened for as long as the job takes: only the owner of a partition rewrites its rows.
func newRejudge(s cli.Streams) *cobra.Command {
	var o rejudgeFlags
	c := &cobra.Command{
		Use:   "rejudge --since TIME [--until TIME] [--where KEY=VALUE]…",
		Short: "Judge stored requests again: after an update, or a configuration supplied late",
		Long: `Judge stored requests again with the engine, the configuration and the policy that are known
now, and replace the verdicts that change; all others stay as they are. What changed, from
which verdict and class to which, is counted, with examples. --dry-run only counts.

The work is done by the running server, between new events; it goes on when this command is
interrupted, and when the server is stopped and started. Without a server it is done here.
The same command again follows a job that is under way. One job a cluster at a time.

--where selects: user, verb, resource, namespace, class and verdict, several times if need be.
Values of one key are alternatives, different keys restrict each other.`,
		Example: `  retrial rejudge --since 2026-11-01T00:00:00Z --dry-run
  retrial rejudge --since 2026-11-20T11:00:00Z --where outcome=drift --where outcome=indeterminate
  retrial rejudge --since 2026-11-20T11:00:00Z --until 2026-11-20T12:00:00Z --where subject=sa/ci:builder -o json`,
		Args: func(c *cobra.Command, args []string) error {
			switch {
			case len(args) > 0:
				return cli.UsageError(c, "unexpected argument %q", args[0])
			case o.From.IsZero() && !o.list:
				return cli.UsageError(c, "--since is missing")
			}
			return nil
		},
	}
	o.flags = config.Bind(c.Flags())
	showFlags(c.Flags(), "data-dir", "clickhouse-dsn", "kafka-brokers")
	cli.BindRequest(c, &o.RejudgeRequest, "cluster", "from", "to", "where", "dryRun")
	c.Flags().BoolVar(&o.list, "list", false, "list the jobs so far instead")
	cli.AddOutput(c, &o.output)
	c.RunE = func(c *cobra.Command, _ []string) error { return o.run(c.Context(), s) }
	return c
}

// rejudgePause is how often a running job is checked.
const rejudgePause = 500 * time.Millisecond

func (o *rejudgeFlags) run(ctx context.Context, s cli.Streams) (err error) {
	cfg, err := o.flags.Load()
	if err != nil {
		return cli.ExitWith(cli.ExitUsage, err)
	}
	for i, condition := range o.Where {
		if key, value, _ := strings.Cut(condition, "="); key == "subject" || key == "user" {
			user, err := cli.User("--where "+key, value)
			if err != nil {
				return err
			}
			o.Where[i] = key + "=" + user
		}
	}
	client, done, err := server.ConnectToJudge(ctx, cfg, func() {
		fmt.Fprintln(s.Err, "no server is running: judging here, along with whatever else waits to be judged")
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, done()) }()
	var jobs []query.RejudgeJob
	if o.list {
		answer, err := apiclient.Ask(ctx, client, query.RejudgeJobsRequest{Cluster: o.Cluster})
		if err != nil {
			return err
		}
		jobs = answer.Jobs
	} else if jobs, err = o.follow(ctx, s, client); err != nil {
		return err
	}
	return cli.Show(s, o.output, query.RejudgeJobsAnswer{Jobs: jobs}, func(p *cli.Page) { printRejudges(p, jobs) })
}

func (o *rejudgeFlags) follow(ctx context.Context, s cli.Streams, client *apiclient.Client) ([]query.RejudgeJob, error) {
	clusters, err := o.clusters(ctx, client)
	if err != nil {
		return nil, err
	}
	jobs := make([]query.RejudgeJob, len(clusters))
	for i, cluster := range clusters {
		q := o.RejudgeRequest
		q.Cluster = cluster
		if jobs[i], err = apiclient.Ask(ctx, client, q); err != nil {
			return nil, err
		}
	}
	bar := cli.StartProgress(s.Err, "judging again", 1000)
	defer bar.Close()
	for {
		share, open := 0.0, 0
		for i := range jobs {
			if !jobs[i].Done {
				answer, err := apiclient.Ask(ctx, client, query.RejudgeJobsRequest{Cluster: jobs[i].Cluster, ID: jobs[i].ID})
				if err != nil {
					return nil, err
				}
				if len(answer.Jobs) != 1 {
					return nil, fmt.Errorf("job %s of cluster %s is gone", jobs[i].ID, jobs[i].Cluster)
				}
				jobs[i] = answer.Jobs[0]
			}
			share += jobs[i].Share
			if !jobs[i].Done {
				open++
			}
		}
		_ = bar.Set64(int64(1000 * share / float64(max(len(jobs), 1))))
		if open == 0 {
			return jobs, nil
		}
		if err := sleep.For(ctx, rejudgePause); err != nil {
			return nil, fmt.Errorf("%w; the job goes on where a server runs, and the same command follows it", err)
		}
	}
}

func (o *rejudgeFlags) clusters(ctx context.Context, client *apiclient.Client) ([]string, error) {
	if o.Cluster != "" {
		name, err := client.OneCluster(ctx, o.Cluster)
		return []string{name}, err
	}
	answer, err := apiclient.Ask(ctx, client, query.ClustersRequest{})
	if err != nil {
		return nil, err
	}
	var names []string
	for _, c := range answer.Clusters {
		names = append(names, c.Name)
	}
	slices.Sort(names)
	if len(names) == 0 {
		return nil, cli.ExitWith(cli.ExitNoMatch, errors.New("nothing is stored of any cluster yet"))
	}
	return names, nil
}

func printRejudges(p *cli.Page, jobs []query.RejudgeJob) {
	for i := range jobs {
		j := &jobs[i]
		p.Named(j.ID)
		if i > 0 {
			p.Printf("\n")
		}
		what, verb := "REJUDGED", "changed"
		if j.DryRun {
			what, verb = "DRY RUN", "would change"
		}
		p.Printf("%s\tcluster %s, %s to %s\n", what, j.Cluster, j.From.UTC().Format(time.RFC3339), j.To.UTC().Format(time.RFC3339))
		if len(j.Where) > 0 {
			p.Printf("WHERE\t%s\n", strings.Join(j.Where, ", "))
		}
		if !j.Done {
			p.Printf("DONE\t%.0f %%\n", 100*j.Share)
		}
		p.Printf("REQUESTS\t%d judged again, %d %s\n", j.Report.Visited, j.Report.Changed, verb)
		if j.Report.Failed > 0 {
			p.Printf("FAILED\t%d could not be judged again; their verdicts stand\n", j.Report.Failed)
		}
		if j.Interrupted > 0 {
			p.Printf("NOTE\tinterrupted %d times: what changed in those steps may be missing here\n", j.Interrupted)
		}
		if len(j.Report.Transitions) == 0 {
			continue
		}
		p.Table("\nCOUNT\tBEFORE\tAFTER\tFOR EXAMPLE")
		for _, t := range j.Report.Transitions {
			example := ""
			if len(t.Examples) > 0 {
				e := t.Examples[0]
				example = fmt.Sprintf("%s %s by %s (%s)", e.Verb, e.URI, e.Subject, e.AuditID)
			}
			p.Printf("%d\t%s\t%s\t%s\n", t.Count, judgement(t.From.Outcome, t.From.Class), judgement(t.To.Outcome, t.To.Class), example)
		}
	}
}

func judgement(outcome, class string) string { return strings.TrimSuffix(outcome+"/"+class, "/") }
