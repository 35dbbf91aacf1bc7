package server

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/internal/version"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/evaluate"
)

// OfflineCluster names the cluster of a log without a given name; it is part of request keys.
const OfflineCluster = "evaluate"

// Log is an audit log that is replayed in place, with the states of its cluster. Progress and hints go to Streams.Err; - names Streams.In.
type Log struct {
	Cluster        string // its name, "" for OfflineCluster
	States, Events []string
	FromEmpty      bool     // there was nothing before it
	Apiservers     []string // configurations of its apiserver: a folder, or CLUSTER=FOLDER
	Rules          *Rules   // that look for findings; nil: those of the binary
	Key            []byte   // secrets are replaced under; nil: one that nobody knows
	Library        string   // libchdb.so, for what is asked in SQL; "": where it usually is
	Streams        cli.Streams
}

// Summary counts the verdicts on a log.
type Summary = evaluate.Summary

// DefaultLag is how far an apiserver's caches may run behind by default.
const DefaultLag = replay.DefaultLag

// Evaluate judges the log. It writes the verdicts to lines as JSON, one a line, unless lines is nil.
func (l Log) Evaluate(ctx context.Context, lag time.Duration, lines io.Writer) (*Summary, error) {
	r, err := l.open(lag)
	if err != nil {
		return nil, err
	}
	return r.run(ctx, func(o *evaluate.Options) {
		if lines != nil {
			o.Sink = evaluate.JSONLines(cli.SafeJSON(lines))
		}
	})
}

// Replay judges the log; want sets what is wanted of it beside. A log of which no line is an event is an error.
func (l Log) Replay(ctx context.Context, lag time.Duration, want func(*evaluate.Options)) (*Summary, error) {
	r, err := l.open(lag)
	if err != nil {
		return nil, err
	}
	sum, err := r.run(ctx, want)
	if err == nil {
		err = l.readable(sum)
	}
	return sum, err
}

// openLog is a log whose files are open; it may be replayed several times.
type openLog struct {
	Log
	base    evaluate.Options
	history func(cluster, server string) *config.History // of its apiserver; nil: none is known
}

// open opens the files of the log, and makes the engine that judges it by the configuration of its apiserver, whose caches may run behind
// by lag. A file that cannot be opened is an error of the command line.
func (l Log) open(lag time.Duration) (*openLog, error) {
	apiserver, err := l.apiserver()
	if err != nil {
		return nil, err
	}
	out := &openLog{Log: l, history: apiserver, base: evaluate.Options{
		Cluster: l.name(), FromEmpty: l.FromEmpty, Now: time.Now, Received: time.Now().UTC(),
		Engine: replay.New(replay.Config{Lag: lag, Version: version.Version, Apiserver: apiserver}),
	}}
	if out.base.States, err = stateInputs(l.States); err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	if out.base.Events, err = eventInputs(l.Events, l.Streams.In); err != nil {
		return nil, cli.ExitWith(cli.ExitUsage, err)
	}
	return out, nil
}

// run replays the log; want sets what is wanted of it.
func (l *openLog) run(ctx context.Context, want func(*evaluate.Options)) (*Summary, error) {
	o := l.base
	want(&o)
	bar := cli.StartProgress(l.Streams.Err, "replaying", 2*cli.TotalSize(l.Events))
	o.Progress = func(n int) { _ = bar.Add(n) }
	defer bar.Close()
	return evaluate.Run(ctx, o)
}

func (l Log) name() string { return cmp.Or(l.Cluster, OfflineCluster) }

// readable returns an error for a log in which nothing is an event.
func (l Log) readable(sum *Summary) error {
	if sum.Events == 0 && sum.Malformed > 0 {
		return fmt.Errorf("%s: no line is an audit event: %s", strings.Join(l.Events, ", "), WantLog)
	}
	return nil
}

// stated reports whether something is known of the time before the log.
func (l Log) stated() bool { return len(l.States) > 0 || l.FromEmpty }

// WantLog says what an audit log must contain.
const WantLog = "want audit.k8s.io/v1 events as JSON, one a line, or an EventList"

// Remarks prints which lines of the log are not events, and what is likely wrong if it is unreliable. A log without events is an error.
func (l Log) Remarks(sum *Summary) error {
	for _, m := range sum.MalformedLines {
		fmt.Fprintf(l.Streams.Err, "%s:%d: not an event: %s\n", safe.Text(m.Input), m.Line, safe.Text(m.Error))
	}
	if more := sum.Malformed - int64(len(sum.MalformedLines)); more > 0 {
		fmt.Fprintf(l.Streams.Err, "%d more malformed lines\n", more)
	}
	if err := l.readable(sum); err != nil {
		return err
	}
	if hint := summaryHint(sum, l.stated()); hint != "" {
		fmt.Fprintln(l.Streams.Err, hint)
	}
	return nil
}

// hints prints a short form of Remarks.
func (l Log) hints(sum *Summary) {
	if sum.Malformed > 0 {
		fmt.Fprintf(l.Streams.Err, "hint: %d lines are not audit events; retrial evaluate lists them\n", sum.Malformed)
	}
	if hint := summaryHint(sum, l.stated()); hint != "" {
		fmt.Fprintln(l.Streams.Err, hint)
	}
}

// summaryHint says what is likely wrong if the result is not reliable. A single drift is what Retrial is for; a log full of it was judged
// by another state than its own. stated says that a state was given, or that the log shows the cluster's first start.
func summaryHint(sum *Summary, stated bool) string {
	v := sum.Verdicts
	switch judged := v.Match + v.Drift; {
	case sum.Events == 0 && sum.Malformed == 0:
		return "there is no event in it"
	case v.Indeterminate > 0 && !stated && !sum.Born:
		return "hint: no --state was given, so only what the log itself tells of the policy is known"
	case v.Match+v.Ambiguous == 0 && v.Drift+v.Indeterminate > 0:
		return "hint: no request matches what the replica decides; is the state that of this cluster, and do events carry " +
			"authorization.k8s.io annotations?"
	case v.Drift > 10 && v.Drift*20 > judged:
		return "hint: much of this drifts; is the state that of this cluster, and of the time the log begins?"
	}
	return ""
}

// apiserver reads the configuration of the log's apiserver: DIR, or the entry NAME=DIR of its cluster; nil if none was given.
func (l Log) apiserver() (func(cluster, server string) *config.History, error) {
	cluster := l.name()
	usage := func(format string, args ...any) error {
		return cli.ExitWith(cli.ExitUsage, fmt.Errorf("--apiserver-config "+format, args...))
	}
	dir, named := "", []string(nil)
	for _, entry := range l.Apiservers {
		name, folder, ok := strings.Cut(entry, "=")
		if _, err := os.Stat(entry); err == nil || !ok {
			name, folder = cluster, entry
		}
		switch {
		case name != cluster:
			named = append(named, name)
		case dir != "":
			return nil, usage("names cluster %s twice; versions of one cluster lie in one folder", cluster)
		default:
			dir = folder
		}
	}
	if dir == "" {
		if len(named) > 0 {
			return nil, usage("is about %s, and the log is of %s: say which by --cluster", strings.Join(named, ", "), cluster)
		}
		return nil, nil
	}
	h, report, err := readApiserver(dir)
	if err != nil {
		return nil, usage("%w", err)
	}
	if !report.Complete() {
		fmt.Fprintf(l.Streams.Err, "hint: parts of the apiserver's configuration are missing; retrial config check %s lists them\n",
			safe.Text(filepath.Clean(dir)))
	}
	for _, v := range report.Versions {
		if i := slices.IndexFunc(v.Warnings, func(w string) bool { return strings.Contains(w, "keeps what it had") }); i >= 0 {
			fmt.Fprintf(l.Streams.Err, "hint: %s: %s\n", safe.Text(filepath.Join(dir, v.Folder)), safe.Text(v.Warnings[i]))
		}
	}
	return func(_, server string) *config.History { return h.Of(server) }, nil
}
