package server

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/version"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/evaluate"
)

// OfflineCluster is the cluster of a log that no name was given for: part of request keys.
const OfflineCluster = "evaluate"

// Log is an audit log that is replayed where it lies, without a server, with the states its
// cluster had. Progress and hints go to Streams.Err, and what is named - is Streams.In.
type Log struct {
	Cluster        string // its name, "" for OfflineCluster
	States, Events []string
	FromEmpty      bool     // there was nothing before it
	Apiservers     []string // configurations of its apiserver: a folder, or CLUSTER=FOLDER
	Streams        cli.Streams
}

// name is the cluster's name.
func (l Log) name() string { return cmp.Or(l.Cluster, OfflineCluster) }

// engine makes the engine that judges the log: by the configuration of its apiserver, whose caches
// may run behind so far.
func (l Log) engine(lag time.Duration) (*replay.Engine, error) {
	apiserver, err := l.apiserver()
	if err != nil {
		return nil, err
	}
	return replay.New(replay.Config{Lag: lag, Version: version.Version, Apiserver: apiserver}), nil
}

// Replay judges the log; o says what is wanted of it beside. A log without any event is an error.
func (l Log) Replay(ctx context.Context, lag time.Duration, o evaluate.Options) (*Summary, error) {
	sum, err := l.replay(ctx, lag, o)
	if err == nil {
		err = l.readable(sum)
	}
	return sum, err
}

// replay is Replay of any log. A file that cannot be opened is an error of the command line.
func (l Log) replay(ctx context.Context, lag time.Duration, o evaluate.Options) (_ *Summary, err error) {
	if o.Engine == nil {
		if o.Engine, err = l.engine(lag); err != nil {
			return nil, err
		}
	}
	o.Cluster, o.FromEmpty = l.name(), l.FromEmpty
	if o.States, err = stateInputs(l.States); err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	if o.Events, err = eventInputs(l.Events, l.Streams.In); err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	bar := cli.StartProgress(l.Streams.Err, "replaying", 2*cli.TotalSize(l.Events))
	o.Progress, o.Now = func(n int) { bar.Add(int64(n)) }, time.Now
	defer bar.Finish()
	return evaluate.Run(ctx, o)
}

// readable returns an error for a log in which nothing is an event.
func (l Log) readable(sum *Summary) error {
	if sum.Events == 0 && sum.Malformed > 0 {
		return fmt.Errorf("%s: no line is an audit event: %s", strings.Join(l.Events, ", "), WantLog)
	}
	return nil
}

// stated tells whether something is known of the time before the log.
func (l Log) stated() bool { return len(l.States) > 0 || l.FromEmpty }

// WantLog says what an audit log is.
const WantLog = "want audit.k8s.io/v1 events as JSON, one a line, or an EventList"
