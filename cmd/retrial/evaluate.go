package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/inflate"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/verdict"
)

// --state FILE|DIR ─┐
//
//	├─▶ replay/evaluate (the engine serve uses) ─▶ -o table | json | yaml (summary)
//
// --events FILE … ──┘                                          └─▶ -o jsonl (a verdict a line)
func newEvaluate(s cli.Streams) *cobra.Command {
	var states, events, apiservers []string
	var cluster, output, failOn string
	var lag time.Duration
	var fromEmpty bool
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
  retrial evaluate --state state.json --events audit.log -o jsonl | jq 'select(.verdict=="drift")'`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return cli.UsageError(c, "unexpected argument %q: logs are named with --events, states with --state", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			if len(events) == 0 {
				return cli.ExitWith(cli.ExitUsage, errors.New("--events is missing: name an audit log, or - for standard input"))
			}
			if !slices.Contains([]string{"", "drift", "any"}, failOn) {
				return cli.ExitWith(cli.ExitUsage, fmt.Errorf("--fail-on %q is neither drift nor any", failOn))
			}
			if lag < 0 {
				return cli.ExitWith(cli.ExitUsage, fmt.Errorf("--lag %s: must not be negative", lag))
			}
			if cluster == "" {
				cluster = offlineCluster
			}
			apiserver, err := apiserverOf(s, apiservers, cluster)
			if err != nil {
				return err
			}
			o := evaluate.Options{
				Cluster: cluster, FromEmpty: fromEmpty,
				Engine: replay.New(replay.Config{Lag: lag, Version: version, Apiserver: apiserver}),
			}
			out := bufio.NewWriterSize(s.Out, 1<<20)
			if output == "jsonl" {
				o.Sink = evaluate.JSONLines(cli.SafeJSON(out))
			}
			sum, err := replayFiles(c.Context(), s, o, states, events)
			if err != nil {
				return err
			}
			if err := printSummary(out, output, sum); err != nil {
				return err
			}
			if err := out.Flush(); err != nil {
				return fmt.Errorf("write the result: %w", err)
			}
			for _, m := range sum.MalformedLines {
				fmt.Fprintf(s.Err, "%s:%d: not an event: %s\n", safe.Text(m.Input), m.Line, safe.Text(m.Error))
			}
			if more := sum.Malformed - int64(len(sum.MalformedLines)); more > 0 {
				fmt.Fprintf(s.Err, "%d more malformed lines\n", more)
			}
			if sum.Events == 0 && sum.Malformed > 0 {
				return fmt.Errorf("%s: no line is an audit event: %s", strings.Join(events, ", "), wantLog)
			}
			if hint := summaryHint(sum, len(states) > 0 || fromEmpty); hint != "" {
				fmt.Fprintln(s.Err, hint)
			}
			return failing(failOn, sum)
		},
	}
	c.Flags().StringSliceVar(&states, "state", nil, "state file, or folder of state files that together are one listing; may be repeated for listings of different times")
	c.Flags().StringSliceVar(&events, "events", nil, "audit log, - for standard input, NAME=FILE for that of an aggregated API server; may be repeated")
	c.Flags().StringVar(&cluster, "cluster", "", "name of the cluster (default \"evaluate\")")
	c.Flags().StringSliceVar(&apiservers, "apiserver-config", nil, "folder with the configuration of the cluster's apiserver, or NAME=DIR of the cluster NAME (docs/apiserver-config.md)")
	c.Flags().DurationVar(&lag, "lag", replay.DefaultLag, "how far the apiserver's caches may run behind")
	c.Flags().BoolVar(&fromEmpty, "from-empty", false, "the log begins with the cluster's first start: there was nothing before it")
	cli.AddOutput(c, &output, "table", "json", "yaml", "jsonl")
	c.Flags().StringVar(&failOn, "fail-on", "", "exit with 3 on drift, or on any request that is no match and could be judged")
	return c
}

// offlineCluster is the cluster of a log that no name was given for: part of request keys.
const offlineCluster = "evaluate"

// replayFiles runs an evaluation of files, with a progress bar. A file that cannot be
// opened is an error of the command line.
func replayFiles(ctx context.Context, s cli.Streams, o evaluate.Options, states, events []string) (*evaluate.Summary, error) {
	var err error
	if o.States, err = stateInputs(states); err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	if o.Events, err = eventInputs(events, s.In); err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	bar := cli.StartProgress(s.Err, "replaying", 2*cli.TotalSize(events))
	o.Progress, o.Now = func(n int) { bar.Add(int64(n)) }, time.Now
	defer bar.Finish()
	return evaluate.Run(ctx, o)
}

// wantLog says what an audit log is.
const wantLog = "want audit.k8s.io/v1 events as JSON, one a line, or an EventList"

// summaryHint says what is likely wrong when the result is not one to rely on. A single
// drift is what Retrial is for; a log full of it is judged by another state than its own. Where
// a state was given, or the log shows the cluster's birth, none is missing.
func summaryHint(sum *evaluate.Summary, stated bool) string {
	v := sum.Verdicts
	switch judged := v.Match + v.Drift; {
	case sum.Events == 0 && sum.Malformed == 0:
		return "there is no event in it"
	case v.Indeterminate > 0 && !stated && !sum.Born:
		return "hint: no --state was given, so only what the log itself tells of the policy is known"
	case v.Drift > 10 && v.Drift*20 > judged:
		return "hint: much of this drifts; is the state that of this cluster, and of the time the log begins?"
	}
	return ""
}

func failing(on string, sum *evaluate.Summary) error {
	v := sum.Verdicts
	if on != "" && v.Drift > 0 {
		return cli.ExitWith(cli.ExitFinding, fmt.Errorf("%d requests drift", v.Drift))
	}
	if on == "any" && v.Ambiguous+v.Indeterminate > 0 {
		return cli.ExitWith(cli.ExitFinding, fmt.Errorf("%d requests are ambiguous, %d indeterminate", v.Ambiguous, v.Indeterminate))
	}
	return nil
}

func printSummary(w io.Writer, output string, sum *evaluate.Summary) error {
	switch output {
	case "json", "yaml":
		return cli.PrintAs(w, output, sum)
	case "table":
		return summaryTable(w, sum)
	}
	return nil // the lines are out
}

func summaryTable(out io.Writer, sum *evaluate.Summary) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintf(w, "events\t%d\n", sum.Events)
	fmt.Fprintf(w, "requests\t%d\n", sum.Requests)
	for _, l := range []struct {
		name string
		n    int64
	}{
		{"match", sum.Verdicts.Match}, {"drift", sum.Verdicts.Drift}, {"ambiguous", sum.Verdicts.Ambiguous},
		{"indeterminate", sum.Verdicts.Indeterminate}, {"not judged", sum.Verdicts.NotJudged},
	} {
		fmt.Fprintf(w, "  %s\t%d\n", l.name, l.n)
	}
	if sum.Agreement != nil {
		fmt.Fprintf(w, "agreement\t%.4f %%\n", 100**sum.Agreement)
	}
	if sum.Malformed > 0 {
		fmt.Fprintf(w, "malformed lines\t%d\n", sum.Malformed)
	}
	fmt.Fprintf(w, "seconds\t%.2f\n", sum.Seconds)
	if err := w.Flush(); err != nil {
		return err
	}
	classes := make([]string, 0, len(sum.Classes))
	for c := range sum.Classes {
		classes = append(classes, c)
	}
	sort.Slice(classes, func(i, j int) bool {
		a, b := classes[i], classes[j]
		return sum.Classes[a] > sum.Classes[b] || sum.Classes[a] == sum.Classes[b] && a < b
	})
	if len(classes) > 0 {
		fmt.Fprintln(w)
	}
	for _, c := range classes {
		fmt.Fprintf(w, "%s\t%d\t%s\n", c, sum.Classes[c], verdict.Explain(c))
	}
	return w.Flush()
}

// stateInputs turns each path into one listing; a folder's files are read as one.
func stateInputs(paths []string) ([]evaluate.Input, error) {
	inputs := make([]evaluate.Input, 0, len(paths))
	for _, path := range paths {
		info, err := os.Stat(path)
		if err != nil {
			return nil, fmt.Errorf("--state: %w", err)
		}
		if !info.IsDir() {
			inputs = append(inputs, evaluate.Input{Name: path, Open: func() (io.ReadCloser, error) { return inflate.Open(path) }})
			continue
		}
		files, err := stateFiles(path)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, evaluate.Input{Name: path, Open: func() (io.ReadCloser, error) { return openAll(files) }})
	}
	return inputs, nil
}

func stateFiles(dir string) ([]string, error) {
	var files []string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() && strings.Contains(filepath.Base(path), ".json") {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("--state: %w", err)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("--state %s: the folder holds no .json file (.json.gz and .json.zst count)", dir)
	}
	return files, nil
}

// chain reads files one after the other.
type chain struct {
	io.Reader
	closers []io.Closer
}

func openAll(files []string) (io.ReadCloser, error) {
	c := &chain{}
	var readers []io.Reader
	for _, f := range files {
		r, err := inflate.Open(f)
		if err != nil {
			_ = c.Close()
			return nil, err
		}
		c.closers = append(c.closers, r)
		readers = append(readers, r, strings.NewReader("\n"))
	}
	c.Reader = io.MultiReader(readers...)
	return c, nil
}

// Close closes every file.
func (c *chain) Close() error {
	var errs []error
	for _, x := range c.closers {
		errs = append(errs, x.Close())
	}
	return errors.Join(errs...)
}

func eventInputs(paths []string, stdin io.Reader) ([]evaluate.Input, error) {
	inputs := make([]evaluate.Input, 0, len(paths))
	piped := false
	for _, path := range paths {
		if path == "-" {
			if piped {
				return nil, errors.New("--events: standard input is named twice")
			}
			piped = true
			in, err := spoolStdin(stdin)
			if err != nil {
				return nil, err
			}
			inputs = append(inputs, in)
			continue
		}
		info, err := os.Stat(path)
		server := ""
		if name, file, named := strings.Cut(path, "="); err != nil && named {
			server, path = name, file
			info, err = os.Stat(path)
		}
		if err != nil {
			return nil, fmt.Errorf("--events: %w", err)
		}
		if info.IsDir() {
			return nil, fmt.Errorf("--events %s: is a directory: name the logs in it", path)
		}
		inputs = append(inputs, evaluate.Input{Name: path, Server: server, Open: func() (io.ReadCloser, error) { return inflate.Open(path) }})
	}
	return inputs, nil
}

// spoolStdin keeps standard input, compressed, in memory: the log is read twice, and
// secrets in it must not come to rest on a disk.
func spoolStdin(stdin io.Reader) (evaluate.Input, error) {
	var in evaluate.Input
	plain, err := inflate.Reader(stdin)
	if err != nil {
		return in, fmt.Errorf("standard input: %w", err)
	}
	defer plain.Close()
	var spool bytes.Buffer
	z, err := zstd.NewWriter(&spool, zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		return in, err
	}
	if _, err := io.Copy(z, plain); err != nil {
		return in, fmt.Errorf("standard input: %w", err)
	}
	if err := z.Close(); err != nil {
		return in, err
	}
	return evaluate.Input{Name: "-", Open: func() (io.ReadCloser, error) { return inflate.Reader(bytes.NewReader(spool.Bytes())) }}, nil
}
