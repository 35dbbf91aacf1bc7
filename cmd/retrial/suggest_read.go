package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/server"
	"github.com/retrial-io/retrial/verdict"

	"github.com/retrial-io/retrial/internal/version"
)

// read replays the log, builds the final policy from it and the state files, and makes the
// suggestions.
func (o *suggestOptions) read(ctx context.Context, s cli.Streams) (*query.SuggestAnswer, error) {
	collector, st, metas := leastpriv.NewCollector(), state.New(o.Cluster), query.Metadata{}
	truncated := int64(0)
	cluster := o.Cluster
	if cluster == "" {
		cluster = server.OfflineCluster
	}
	apiserver, err := server.ApiserverOf(s, o.from.apiservers(), cluster)
	if err != nil {
		return nil, err
	}
	sum, err := server.ReplayFiles(ctx, s, evaluate.Options{
		Cluster: o.Cluster, FromEmpty: o.fromEmpty, Engine: replay.New(replay.Config{Version: version.Version, Apiserver: apiserver}),
		State: st, Policy: func(obs []state.Observation, listed bool) { metas.Add(obs, !listed) },
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
	}, o.states, o.events)
	if err != nil {
		return nil, err
	}
	if len(o.states) == 0 && !o.fromEmpty && !sum.Born {
		return nil, errNoState
	}
	if sum.Malformed > 0 {
		fmt.Fprintf(s.Err, "hint: %d lines are not audit events; retrial evaluate lists them\n", sum.Malformed)
	}
	switch v := sum.Verdicts; {
	case sum.Events == 0 && sum.Malformed > 0:
		return nil, fmt.Errorf("%s: no line is an audit event: %s", strings.Join(o.events, ", "), server.WantLog)
	case sum.Events == 0:
		return nil, fmt.Errorf("%s: there is no event in it", strings.Join(o.events, ", "))
	case v.Match+v.Ambiguous == 0:
		return nil, errors.New("no request of the log matches what the replica decides: is the state that of this cluster, and do events carry authorization.k8s.io annotations? retrial evaluate tells")
	}
	if hint := server.SummaryHint(sum, true); hint != "" {
		fmt.Fprintln(s.Err, hint)
	}
	recording := collector.Recording()
	recording.Truncated, recording.DeadLetters = truncated, sum.Malformed
	recording.Describe(st)
	advisor := collector.Advise(st, query.Latest, leastpriv.Options{Metadata: metas.Of, Recording: recording, WildcardVerbs: o.Wildcards == "verbs"})
	out, err := query.SuggestAll(ctx, collector, advisor, query.Wanted{Subjects: o.Subjects, System: o.System, Unseen: o.Unseen}, nearNames(collector))
	if err != nil {
		return nil, offlineError(err)
	}
	out.Cluster = st.Cluster()
	return out, nil
}
