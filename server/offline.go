package server

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/replay/evaluate"
)

// OfflineCluster is the cluster of a log that no name was given for: part of request keys.
const OfflineCluster = "evaluate"

// Log is an audit log that is replayed where it lies, without a server, with the states its
// cluster had.
type Log struct {
	Cluster        string // its name, "" for OfflineCluster
	States, Events []string
	FromEmpty      bool // there was nothing before it
	Streams        cli.Streams
}

// Replay judges the log; o says what else is wanted of it. A log without any event is an error.
func (l Log) Replay(ctx context.Context, o evaluate.Options) (*evaluate.Summary, error) {
	o.FromEmpty = l.FromEmpty
	sum, err := ReplayFiles(ctx, l.Streams, o, l.States, l.Events)
	if err == nil && sum.Events == 0 && sum.Malformed > 0 {
		err = fmt.Errorf("%s: no line is an audit event: %s", strings.Join(l.Events, ", "), WantLog)
	}
	return sum, err
}

// ReplayFiles runs an evaluation of files, with a progress bar. A file that cannot be
// opened is an error of the command line.
func ReplayFiles(ctx context.Context, s cli.Streams, o evaluate.Options, states, events []string) (*evaluate.Summary, error) {
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

// WantLog says what an audit log is.
const WantLog = "want audit.k8s.io/v1 events as JSON, one a line, or an EventList"

// SummaryHint says what is likely wrong when the result is not one to rely on. A single
// drift is what Retrial is for; a log full of it is judged by another state than its own. Where
// a state was given, or the log shows the cluster's birth, none is missing.
func SummaryHint(sum *evaluate.Summary, stated bool) string {
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
