package server

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// fakeConfigs is an engine whose configuration of cluster c changed at a time, and a store.
type fakeConfigs struct {
	changed time.Time
	name    string
	used    []queries.ConfigUse
	jobs    []verdict.RejudgeJob
}

func (f *fakeConfigs) ConfigsAt(cluster, server string, at time.Time) []string {
	if cluster == "c" && server == "" && at.Before(f.changed) {
		return []string{"old"}
	}
	return []string{"new", "alike"}
}
func (f *fakeConfigs) ConfigOf(string) string                                 { return f.name }
func (f *fakeConfigs) Rejudges(context.Context) ([]verdict.RejudgeJob, error) { return f.jobs, nil }
func (f *fakeConfigs) ConfigUse(_ context.Context, cluster string) (out []queries.ConfigUse, err error) {
	for _, u := range f.used {
		if cluster == "" || u.Cluster == cluster {
			out = append(out, u)
		}
	}
	return out, nil
}

// TestJudgedOtherwise: what was judged by another configuration is told of once, until it was
// judged again.
func TestJudgedOtherwise(t *testing.T) {
	day := time.Date(2026, 5, 6, 0, 0, 0, 0, time.UTC)
	hour := func(h int) time.Time { return day.Add(time.Duration(h) * time.Hour) }
	f := &fakeConfigs{changed: hour(10).Add(20 * time.Minute), name: "now", used: []queries.ConfigUse{
		{Cluster: "c", Hour: hour(8), Config: "old", Requests: 5},                       // as it was then
		{Cluster: "c", Hour: hour(9), Config: "none", Requests: 7},                      // before anything was known
		{Cluster: "c", Hour: hour(10), Config: "old", Requests: 11},                     // within the hour of the change
		{Cluster: "c", Hour: hour(10), Config: "new", Requests: 13},                     // likewise
		{Cluster: "c", Hour: hour(11), Config: "old", Requests: 17},                     // after it
		{Cluster: "c", Hour: hour(11), APIServer: "wardle", Config: "new", Requests: 1}, // another server
		{Cluster: "d", Hour: hour(1), Config: "new", Requests: 100},
		{Cluster: "d", Hour: hour(1), Config: "new;release=1.33", Requests: 100},
		{Cluster: "d", Hour: hour(1), Config: "alike", Requests: 100},
		{Cluster: "d", Hour: hour(2), Config: "node,rbac;apiserver=d1", Requests: 1000}, // and nothing is known now
	}}
	seen, logs := observer.New(zap.InfoLevel)
	o := newOtherwise(f, f, " --data-dir /srv/x", zap.New(seen), prometheus.NewRegistry())
	const command = "retrial rejudge --cluster c --since 2026-05-06T09:00:00Z --data-dir /srv/x"
	look := func(what string, rows float64, lines int) {
		t.Helper()
		if err := o.look(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := testutil.ToFloat64(o.rows); got != rows {
			t.Errorf("%s: %v rows, want %v", what, got, rows)
		}
		entries := logs.TakeAll()
		if len(entries) != lines {
			t.Errorf("%s: %d lines, want %d", what, len(entries), lines)
		}
		for _, e := range entries {
			if !strings.HasSuffix(e.Message, command) || e.Level != zap.InfoLevel {
				t.Errorf("%s: %s %q, want the command %q", what, e.Level, e.Message, command)
			}
		}
	}
	look("at first", 24, 1)
	look("again", 24, 0)
	var c doctor.Checks
	s := doctor.Site{Otherwise: o.of}
	for _, cluster := range []string{"c", "d"} {
		if err := s.OtherwiseCheck(t.Context(), &c, cluster); err != nil {
			t.Fatal(err)
		}
	}
	if len(c) != 1 || c[0].State != doctor.CheckWarn || c[0].Todo != command || !strings.HasPrefix(c[0].Text, "24 requests since") {
		t.Errorf("doctor: %+v", c)
	}

	job := func(change func(*verdict.RejudgeJob)) {
		j := verdict.RejudgeJob{Rejudge: verdict.Rejudge{Cluster: "c", From: hour(9), To: hour(24), Config: "now"}}
		change(&j)
		f.jobs = append(f.jobs, j)
	}
	job(func(j *verdict.RejudgeJob) { j.DryRun = true })
	job(func(j *verdict.RejudgeJob) { j.Cluster = "d" })
	job(func(j *verdict.RejudgeJob) { j.Config = "earlier" })
	job(func(j *verdict.RejudgeJob) { j.Only.Verbs = []string{"get"} })
	job(func(j *verdict.RejudgeJob) { j.Partitions = []int32{0} }) // under way
	look("after jobs that are others", 24, 0)
	job(func(j *verdict.RejudgeJob) { j.From = hour(10) })
	look("after a job of the later part", 7, 0)
	job(func(*verdict.RejudgeJob) {})
	look("judged again", 0, 0)
	f.name = "next"
	look("after yet another configuration", 24, 1)
}
