package server

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// errNoState says that a log was given without what was there before it.
var errNoState = cli.ExitWith(cli.ExitUsage, errors.New("--state is missing: what a subject holds is not in the log; get it with\n  kubectl get clusterroles,clusterrolebindings,roles,rolebindings,namespaces,serviceaccounts,pods,nodes,persistentvolumes,volumeattachments,certificatesigningrequests -A -o json\nor say --from-empty when the log begins with the cluster's first start"))

// Suggest builds the final policy from the log and the states, and makes the suggestions.
func (l Log) Suggest(ctx context.Context, q query.SuggestRequest) (*query.SuggestAnswer, error) {
	collector, st, metas := leastpriv.NewCollector(), state.New(l.name()), query.Metadata{}
	truncated := int64(0)
	sum, err := l.replay(ctx, 0, evaluate.Options{
		State: st, Policy: func(obs []observe.Observation, listed bool) { metas.Add(obs, !listed) },
		Sink: func(e *event.Event, v *verdict.Verdict) error {
			collector.Observe(e, v)
			for _, key := range [...]string{"audit.k8s.io/truncated", event.AnnotationStrippedBytes} {
				if _, cut := e.Annotations.Get(key); cut {
					truncated++
					break
				}
			}
			return nil
		},
	})
	if err != nil {
		return nil, err
	}
	if !l.stated() && !sum.Born {
		return nil, errNoState
	}
	if sum.Malformed > 0 {
		fmt.Fprintf(l.Streams.Err, "hint: %d lines are not audit events; retrial evaluate lists them\n", sum.Malformed)
	}
	switch v := sum.Verdicts; {
	case sum.Events == 0 && sum.Malformed > 0:
		return nil, fmt.Errorf("%s: no line is an audit event: %s", strings.Join(l.Events, ", "), WantLog)
	case sum.Events == 0:
		return nil, fmt.Errorf("%s: there is no event in it", strings.Join(l.Events, ", "))
	case v.Match+v.Ambiguous == 0:
		return nil, errors.New("no request of the log matches what the replica decides: is the state that of this cluster, and do events carry authorization.k8s.io annotations? retrial evaluate tells")
	}
	if hint := summaryHint(sum, true); hint != "" {
		fmt.Fprintln(l.Streams.Err, hint)
	}
	recording := collector.Recording()
	recording.Truncated, recording.DeadLetters = truncated, sum.Malformed
	recording.Describe(st)
	advisor := collector.Advise(st, query.Latest, leastpriv.Options{Metadata: metas.Of, Recording: recording, WildcardVerbs: q.Wildcards == "verbs"})
	out, err := query.SuggestAll(ctx, collector, advisor, query.Wanted{Subjects: q.Subjects, System: q.System, Unseen: q.Unseen}, nearNames(collector))
	if err != nil {
		return nil, offlineError(err)
	}
	out.Cluster = st.Cluster()
	return out, nil
}

// offlineError gives an error of suggestAll the exit code that the API's answer gets.
func offlineError(err error) error {
	var callers query.BadRequest
	var missing query.NotFound
	switch {
	case errors.As(err, &callers):
		return cli.ExitWith(cli.ExitUsage, err)
	case errors.As(err, &missing):
		return cli.ExitWith(cli.ExitNoMatch, err)
	}
	return err
}

// nearNames returns known names that contain a name or are contained in it.
func nearNames(c *leastpriv.Collector) func(string) []string {
	return func(name string) []string {
		var near []string
		for _, k := range c.Subjects() {
			if len(near) < 5 && (strings.Contains(k, name) || strings.Contains(name, k)) {
				near = append(near, k)
			}
		}
		return near
	}
}
