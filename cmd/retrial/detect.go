package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
)

// --state FILE|DIR ─┐
//
//	├─▶ replay/evaluate ──(event, verdict)──▶ analysis/detect ──▶ -o table | json | yaml
//
// --events FILE … ──┘                                ▲
//
//	rules in the binary, --rules DIR
func newFindings(s streams) *cobra.Command {
	var states, events, ruleDirs []string
	var cluster, output, minSeverity, failOn string
	var fromEmpty, listRules bool
	c := &cobra.Command{
		Use:   "findings --state FILE|DIR --events FILE...",
		Short: "Say what is odd in an audit log",
		Long: `Replay an audit log as evaluate does, run the detection rules over every request and its
verdict, and print what they find. Rules are those of the binary and the .yaml files of --rules
DIR; a rule there replaces one of the same id. A broken rule file is an error that names it.

A log that is imported or read again gives the same findings under the same ids.`,
		Example: `  retrial findings --state state.json --events audit.log
  retrial findings --state state.json --events audit.log --min-severity high -o json
  retrial findings --list-rules`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError(c, "unexpected argument %q: logs are named with --events, states with --state", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error {
			least, err := severityRank("--min-severity", minSeverity)
			if err != nil {
				return err
			}
			fail, err := severityRank("--fail-on", failOn)
			if err != nil {
				return err
			}
			set, err := loadRules("--rules", ruleDirs)
			if err != nil {
				return exitCode{exitUsage, err}
			}
			if listRules {
				return printRules(s.out, output, set)
			}
			if len(events) == 0 {
				return exitCode{exitUsage, errors.New("--events is missing: name an audit log, or - for standard input")}
			}
			if cluster == "" {
				cluster = "evaluate" // as evaluate has it: request keys contain it
			}
			d := detect.New(set, detect.Config{})
			sum, err := replayFiles(c.Context(), s, evaluate.Options{
				Cluster: cluster, FromEmpty: fromEmpty,
				Engine: replay.New(replay.Config{Lag: replay.DefaultLag, Version: version}),
				Sink: func(e *event.Event, v *replay.Verdict) error {
					d.Observe(cluster, e, v)
					return nil
				},
			}, states, events)
			if err != nil {
				return err
			}
			if sum.Events == 0 && sum.Malformed > 0 {
				return fmt.Errorf("%s: no line is an audit event: %s", strings.Join(events, ", "), wantLog)
			}
			all := d.Flush()
			found := slices.DeleteFunc(slices.Clone(all), func(f detect.Finding) bool { return severityOrder(f.Severity) < least })
			if err := printFindings(s.out, output, found); err != nil {
				return err
			}
			detectHints(s.err, d.Stats(), sum, len(states) > 0 || fromEmpty)
			if bad := slices.IndexFunc(all, func(f detect.Finding) bool { return severityOrder(f.Severity) >= fail }); failOn != "" && bad >= 0 {
				return exitCode{exitFinding, fmt.Errorf("there are findings of severity %s or more", failOn)}
			}
			return nil
		},
	}
	c.Flags().StringSliceVar(&states, "state", nil, "state file, or folder of state files that together are one listing; may be repeated")
	c.Flags().StringSliceVar(&events, "events", nil, "audit log, - for standard input; may be repeated")
	c.Flags().StringSliceVar(&ruleDirs, "rules", nil, "folder of further rules; may be repeated")
	c.Flags().StringVar(&cluster, "cluster", "", "name of the cluster, part of every finding's id (default \"evaluate\")")
	c.Flags().BoolVar(&fromEmpty, "from-empty", false, "the log begins with the cluster's first start: there was nothing before it")
	c.Flags().BoolVar(&listRules, "list-rules", false, "print the rules instead")
	c.Flags().StringVar(&minSeverity, "min-severity", "", "leave out findings below info, low, medium, high or critical")
	c.Flags().StringVar(&failOn, "fail-on", "", "exit with 3 on a finding of that severity or above")
	addOutput(c, &output, "table", "json", "yaml")
	return c
}

// severityOrder orders severities; an unknown one is the least.
func severityOrder(severity string) int { return slices.Index(detect.Severities(), severity) }

func severityRank(flag, severity string) (int, error) {
	if severity == "" {
		return 0, nil
	}
	if r := severityOrder(severity); r >= 0 {
		return r, nil
	}
	return 0, exitCode{exitUsage, fmt.Errorf("%s %q is none of %s", flag, severity, strings.Join(detect.Severities(), ", "))}
}

// configuredRules reads the rules a server detects with.
func configuredRules(cfg config.Config) (*detect.Set, error) {
	var dirs []string
	if cfg.Detect.RulesDir != "" {
		dirs = []string{cfg.Detect.RulesDir}
	}
	return loadRules("detect-rules-dir", dirs)
}

// loadRules reads the rules of the binary and those of folders, which the flag names.
func loadRules(flag string, dirs []string) (*detect.Set, error) {
	all := []fs.FS{detect.BuiltinFiles()}
	for _, dir := range dirs {
		if info, err := os.Stat(dir); err != nil {
			return nil, fmt.Errorf("%s: %w", flag, err)
		} else if !info.IsDir() {
			return nil, fmt.Errorf("%s %s: is no directory: name the folder the rule is in", flag, dir)
		}
		all = append(all, os.DirFS(dir))
	}
	set, err := detect.Load(all...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	return set, nil
}

// detectHints says what makes the findings less than they could be.
func detectHints(w io.Writer, st detect.Stats, sum *evaluate.Summary, stated bool) {
	ids := make([]string, 0, len(st.Errors))
	for id := range st.Errors {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	for _, id := range ids {
		fmt.Fprintf(w, "rule %s failed on %d requests, for example: %s\n", id, st.Errors[id], safe.Text(st.FirstError[id]))
	}
	if st.Dropped > 0 {
		fmt.Fprintf(w, "%d requests were left out of rules that count: too many groups at once\n", st.Dropped)
	}
	if sum.Malformed > 0 {
		fmt.Fprintf(w, "%d malformed lines; retrial evaluate lists them\n", sum.Malformed)
	}
	if hint := summaryHint(sum, stated); hint != "" {
		fmt.Fprintln(w, hint)
	}
}

func printFindings(out io.Writer, form string, found []detect.Finding) error {
	if form != "table" {
		if found == nil {
			found = []detect.Finding{} // an empty list, not null
		}
		return printAs(out, form, found)
	}
	if len(found) == 0 {
		_, err := fmt.Fprintln(out, "no findings")
		return err
	}
	// The gravest first; within a severity by time, as they come.
	slices.SortStableFunc(found, func(a, b detect.Finding) int { return severityOrder(b.Severity) - severityOrder(a.Severity) })
	buf := bufio.NewWriter(out)
	w := tabwriter.NewWriter(buf, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SEVERITY\tRULE\tSUBJECT\tREQUESTS\tFIRST\tWHAT")
	for _, f := range found {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%s\t%s\n", f.Severity, f.Rule, safe.Text(f.Subject), f.Count,
			f.First.UTC().Format("2006-01-02 15:04:05"), safe.Text(f.Text))
	}
	if err := w.Flush(); err != nil {
		return err
	}
	return buf.Flush()
}

func printRules(out io.Writer, form string, set *detect.Set) error {
	if form != "table" {
		return printAs(out, form, set.Rules())
	}
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tSEVERITY\tKIND\tATT&CK\tTITLE")
	for _, r := range set.Rules() {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", r.ID, r.Severity, r.Kind, strings.Join(r.Attack, " "), safe.Text(r.Title))
	}
	return w.Flush()
}
