package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/replay/state"
)

// suggestOptions are the flags of suggest.
type suggestOptions struct {
	states, events, subjects   []string
	all, system, final, force  bool
	output, cluster, minWindow string
	window                     time.Duration
}

// --state ──┬─▶ replay/evaluate ─▶ verdicts ─▶ leastpriv.Collector ─┐
// --events ─┘         └─ policy writes ─▶ state.State (final policy) ─┴─▶ Advisor ─▶ suggestions, plan ─▶ -o
func newSuggest(s streams) *cobra.Command {
	var o suggestOptions
	c := &cobra.Command{
		Use:   "suggest --state FILE|DIR --events FILE... [--subject USER | --all]",
		Short: "Suggest the least roles a subject needs, with a proof",
		Long: `Replay an audit log offline, and suggest for each subject the roles that hold what it was
recorded using and nothing else: objects to apply, bindings to remove, and the way back. The proof
replays the subject's whole recorded history against the final state. docs/suggest.md has the rules.

-o table ranks subjects by the weight of what they hold and never used; json is the change set;
yaml are the objects to apply, with the removals as comments. YAML from a recording shorter than
--min-window is refused without --force: what happens once a month is not in it.`,
		Example: `  retrial suggest --state state.json --events audit.log
  retrial suggest --state state.json --events audit.log --subject system:serviceaccount:ci:runner -o yaml
  retrial suggest --state state.json --events audit.log --all -o json | jq '.[] | select(.proof.holds)'`,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError(c, "unexpected argument %q: subjects are named with --subject", args[0])
			}
			return nil
		},
		RunE: func(c *cobra.Command, _ []string) error { return o.run(c.Context(), s) },
	}
	f := c.Flags()
	f.StringArrayVar(&o.states, "state", nil, "state file, or folder of state files that together are one listing; may be repeated")
	f.StringArrayVar(&o.events, "events", nil, "audit log, - for standard input; may be repeated")
	f.StringArrayVar(&o.subjects, "subject", nil, "user name as audit events have it; may be repeated")
	f.BoolVar(&o.all, "all", false, "every subject of the log (the default)")
	f.BoolVar(&o.system, "include-system", false, "also Kubernetes' own subjects: system:*, service accounts of kube-* namespaces, members of system:masters")
	f.BoolVar(&o.final, "final", false, "print all RBAC objects that concern the subjects as they are after the change (-o yaml or json)")
	f.StringVar(&o.minWindow, "min-window", "7d", "shortest recording YAML is made from")
	f.BoolVar(&o.force, "force", false, "make YAML from a shorter recording, or although a proof does not hold")
	f.StringVar(&o.cluster, "cluster", "", "name of the cluster (default \"evaluate\")")
	addOutput(c, &o.output, "table", "json", "yaml")
	return c
}

// check refuses what cannot be meant, before anything is read.
func (o *suggestOptions) check() error {
	usage := func(format string, args ...any) error { return exitCode{exitUsage, fmt.Errorf(format, args...)} }
	switch {
	case len(o.events) == 0:
		return usage("--events is missing: name an audit log, or - for standard input")
	case len(o.states) == 0:
		return usage("--state is missing: what a subject holds is not in the log; get it with\n  kubectl get clusterroles,clusterrolebindings,roles,rolebindings,namespaces,serviceaccounts -A -o json")
	case o.all && len(o.subjects) > 0:
		return usage("--all and --subject exclude each other")
	case slices.Contains(o.subjects, ""):
		return usage("--subject is empty")
	case o.final && o.output == "table":
		return usage("--final prints objects: add -o yaml or -o json")
	}
	d, err := config.ParseDuration(o.minWindow)
	if err != nil || d < 0 {
		return usage("--min-window %q: want a duration such as 12h or 7d", o.minWindow)
	}
	o.window = time.Duration(d)
	return nil
}

func (o *suggestOptions) run(ctx context.Context, s streams) error {
	if err := o.check(); err != nil {
		return err
	}
	began := time.Now()
	advisor, collector, err := o.read(ctx, s)
	if err != nil {
		return err
	}
	names, err := o.chosen(collector)
	if err != nil {
		return err
	}
	suggestions := make([]*leastpriv.Suggestion, 0, len(names))
	for _, name := range names {
		one, err := advisor.Suggest(name)
		if err != nil {
			return err
		}
		suggestions = append(suggestions, one)
	}
	sort.SliceStable(suggestions, func(i, j int) bool {
		a, b := suggestions[i].Excess, suggestions[j].Excess
		return a.Before-a.After > b.Before-b.After
	})
	plan, err := advisor.Together(suggestions)
	if err != nil {
		return err
	}
	if err := o.allowed(s, collector, suggestions, plan); err != nil {
		return err
	}
	out := bufio.NewWriterSize(s.out, 1<<16)
	if err := o.print(out, suggestions, plan); err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	if len(suggestions) == 0 {
		fmt.Fprintln(s.err, "hint: RBAC decided nothing about anybody but Kubernetes itself in this log; --include-system adds that")
		return nil
	}
	fmt.Fprintf(s.err, "subjects: %d, in %.1f s; %s\n", len(suggestions), time.Since(began).Seconds(), verdictOn(suggestions, plan))
	return nil
}

func verdictOn(suggestions []*leastpriv.Suggestion, plan *leastpriv.Plan) string {
	failed := 0
	for _, one := range suggestions {
		if !one.Proof.Holds {
			failed++
		}
	}
	switch {
	case failed > 0:
		return fmt.Sprintf("%d proofs do not hold", failed)
	case !plan.Holds:
		return "every proof holds alone, not all of them together"
	}
	return "every proof holds, also with all suggestions in force together"
}

// allowed says whether YAML may be made, and warns of what would forbid it.
func (o *suggestOptions) allowed(s streams, c *leastpriv.Collector, suggestions []*leastpriv.Suggestion, plan *leastpriv.Plan) error {
	from, to := c.Window()
	if seen := to.Sub(from); seen < o.window {
		short := fmt.Sprintf("the recording covers %s, less than --min-window %s: what happens more rarely is not in it", seen.Round(time.Second), o.minWindow)
		if o.output == "yaml" && !o.force {
			return fmt.Errorf("%s; give a longer log, or --force", short)
		}
		fmt.Fprintln(s.err, "hint:", short)
	}
	if o.output == "yaml" && !plan.Holds && !o.force {
		return fmt.Errorf("%s: see -o table, or --force", verdictOn(suggestions, plan))
	}
	return nil
}

// chosen are the subjects asked for.
func (o *suggestOptions) chosen(c *leastpriv.Collector) ([]string, error) {
	known := c.Subjects()
	if len(o.subjects) == 0 {
		return slices.DeleteFunc(known, func(name string) bool { return !o.system && c.System(name) }), nil
	}
	for _, name := range o.subjects {
		switch {
		case !slices.Contains(known, name):
			return nil, exitCode{exitNoMatch, unknownSubject(name, known, c.Seen(name))}
		case c.System(name) && !o.system:
			return nil, exitCode{exitUsage, fmt.Errorf("%q belongs to Kubernetes itself; taking rights from it can break the cluster: add --include-system if that is meant", name)}
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(o.subjects))), nil
}

func unknownSubject(name string, known []string, seen bool) error {
	if seen {
		return fmt.Errorf("%q made requests, but RBAC decided none of them: there is nothing to suggest", name)
	}
	var near []string
	for _, k := range known {
		if len(near) < 5 && (strings.Contains(k, name) || strings.Contains(name, k)) {
			near = append(near, fmt.Sprintf("%q", k))
		}
	}
	hint := "; a subject is a user name as events have it, such as system:serviceaccount:NAMESPACE:NAME"
	if len(near) > 0 {
		hint = "; did you mean " + strings.Join(near, ", ") + "?"
	}
	return fmt.Errorf("no request of %q is in the log%s", name, hint)
}

// read replays the log, and builds the final policy from it and the state files.
func (o *suggestOptions) read(ctx context.Context, s streams) (*leastpriv.Advisor, *leastpriv.Collector, error) {
	collector, st, metas := leastpriv.NewCollector(), state.New(o.cluster), metadata{}
	sum, err := replayFiles(ctx, s, evaluate.Options{
		Cluster: o.cluster, Engine: replay.New(replay.Config{Version: version}),
		State: st, Policy: func(obs []state.Observation, listed bool) { metas.add(obs, !listed) },
		Sink: func(e *event.Event, v *replay.Verdict) error {
			collector.Observe(e, v)
			return nil
		},
	}, o.states, o.events)
	if err != nil {
		return nil, nil, err
	}
	if sum.Malformed > 0 {
		fmt.Fprintf(s.err, "hint: %d lines are no events; retrial evaluate lists them\n", sum.Malformed)
	}
	switch v := sum.Verdicts; {
	case sum.Events == 0 && sum.Malformed > 0:
		return nil, nil, fmt.Errorf("%s: no line is an audit event: %s", strings.Join(o.events, ", "), wantLog)
	case sum.Events == 0:
		return nil, nil, fmt.Errorf("%s: there is no event in it", strings.Join(o.events, ", "))
	case v.Match+v.Ambiguous == 0:
		return nil, nil, errors.New("no request of the log matches what the replica decides: is the state that of this cluster, and do events carry authorization.k8s.io annotations? retrial evaluate tells")
	}
	if hint := summaryHint(sum, true); hint != "" {
		fmt.Fprintln(s.err, hint)
	}
	return collector.Advise(st, latest, leastpriv.Options{Metadata: metas.of}), collector, nil
}

// latest is later than anything recorded: the policy as it is last known.
var latest = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// metadata keeps labels and annotations of RBAC objects, which the state does not, so that
// a rollback brings objects back as they were.
type metadata map[rbacindex.Key]metav1.ObjectMeta

func (m metadata) of(k rbacindex.Key) metav1.ObjectMeta { return m[k] }

// add takes them from observations; newer says that they go over what is there.
func (m metadata) add(obs []state.Observation, newer bool) {
	kinds := map[string]rbacindex.Kind{state.Roles: rbacindex.KindRole, state.ClusterRoles: rbacindex.KindClusterRole,
		state.RoleBindings: rbacindex.KindRoleBinding, state.ClusterRoleBindings: rbacindex.KindClusterRoleBinding}
	for i := range obs {
		kind, ok := kinds[obs[i].Resource]
		if !ok || len(obs[i].Object) == 0 {
			continue
		}
		k := rbacindex.Key{Kind: kind, Namespace: obs[i].Namespace, Name: strings.Clone(obs[i].Name)}
		if _, have := m[k]; have && !newer {
			continue
		}
		var object struct {
			Metadata struct {
				Labels      map[string]string `json:"labels"`
				Annotations map[string]string `json:"annotations"`
			} `json:"metadata"`
		}
		if json.Unmarshal(obs[i].Object, &object) == nil {
			k.Namespace = strings.Clone(k.Namespace)
			m[k] = metav1.ObjectMeta{Labels: object.Metadata.Labels, Annotations: object.Metadata.Annotations}
		}
	}
}

// print writes the suggestions in the form asked for.
func (o *suggestOptions) print(w io.Writer, suggestions []*leastpriv.Suggestion, plan *leastpriv.Plan) error {
	switch {
	case o.final && o.output == "json":
		return printAs(w, "json", map[string]any{"apiVersion": "v1", "kind": "List", "items": plan.Final})
	case o.final:
		return yamlObjects(w, plan.Final)
	case o.output == "json":
		return printAs(w, "json", suggestions)
	case o.output == "yaml":
		return suggestYAML(w, suggestions, plan)
	}
	return suggestTable(w, suggestions)
}

// comment writes one line of a YAML comment; nothing in it can end the line.
func comment(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, strings.TrimRight("# "+safe.Text(fmt.Sprintf(format, args...)), " "))
}
