package server

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// lookAgain is how often stored requests are searched for those judged by another configuration, besides at the start and when one is read.
const lookAgain = time.Hour

// otherwise looks for stored requests that were judged by another configuration of their apiserver than is known now. Nothing rewrites them
// automatically: whoever supplies a configuration decides when.
//
//	store: requests by hour and configuration ─▶ other than the engine's of that hour?
//	                                             └ judged again since: ─▶ no ─▶ log, gauge, doctor
type otherwise struct {
	engine configuredEngine
	store  configStore
	dir    string // the flag that names the data directory, if it needs one
	log    *zap.Logger
	rows   prometheus.Gauge
	told   map[string]time.Time // since when, by cluster; of the one goroutine that runs
}

// configuredEngine says by which configurations it judges.
type configuredEngine interface {
	ConfigsAt(cluster, server string, at time.Time) []string
	ConfigOf(cluster string) string
}

// configStore says by which configurations requests were judged.
type configStore interface {
	ConfigUse(ctx context.Context, cluster string) ([]queries.ConfigUse, error)
	Rejudges(ctx context.Context) ([]verdict.RejudgeJob, error)
}

func newOtherwise(engine configuredEngine, store configStore, dir string, log *zap.Logger, reg prometheus.Registerer) *otherwise {
	return &otherwise{engine: engine, store: store, dir: dir, log: log, told: map[string]time.Time{},
		rows: promauto.With(reg).NewGauge(prometheus.GaugeOpts{
			Name: "retrial_runner_rows_judged_otherwise",
			Help: "Stored requests that were judged by another configuration of their apiserver than is known now, and not again since: " +
				"retrial rejudge does.",
		})}
}

// of returns the clusters with such requests, those of one cluster unless it is "".
func (o *otherwise) of(ctx context.Context, cluster string) ([]doctor.JudgedOtherwise, error) {
	used, err := o.store.ConfigUse(ctx, cluster)
	if err != nil {
		return nil, err
	}
	jobs, err := o.store.Rejudges(ctx)
	if err != nil {
		return nil, err
	}
	jobs = slices.DeleteFunc(jobs, func(j verdict.RejudgeJob) bool {
		return !j.Done() || j.DryRun || len(query.WhereWords(j.Rejudge)) > 0 || j.Config != o.engine.ConfigOf(j.Cluster)
	})
	var out []doctor.JudgedOtherwise
	for i := range used {
		u := &used[i]
		// A configuration may have come into force within the hour.
		now := o.engine.ConfigsAt(u.Cluster, u.APIServer, u.Hour.Add(time.Hour-1))
		was, _, _ := strings.Cut(u.Config, replay.ReleaseInConfig)
		if slices.Contains(now, was) || slices.Contains(o.engine.ConfigsAt(u.Cluster, u.APIServer, u.Hour), was) || lessKnown(was, now[0]) {
			continue
		}
		// Verdicts that judging again leaves unchanged keep the name of the configuration that first reached them.
		if slices.ContainsFunc(jobs, func(j verdict.RejudgeJob) bool {
			return j.Cluster == u.Cluster && !u.Hour.Before(j.From) && u.Hour.Before(j.To)
		}) {
			continue
		}
		n := len(out)
		if n == 0 || out[n-1].Cluster != u.Cluster {
			out = append(out, doctor.JudgedOtherwise{Cluster: u.Cluster, Since: u.Hour})
			n++
		}
		out[n-1].Requests += u.Requests
	}
	for i := range out {
		out[i].Command = o.command(out[i])
	}
	return out, nil
}

// lessKnown reports whether requests were judged by a configuration and none is given this time: they should not be judged again.
func lessKnown(was, now string) bool {
	const known = ";apiserver="
	_, digest, _ := strings.Cut(now, known)
	return strings.Contains(was, known) && digest == ""
}

func (o *otherwise) command(j doctor.JudgedOtherwise) string {
	return "retrial rejudge --cluster " + j.Cluster + " --since " + j.Since.UTC().Format(time.RFC3339) + o.dir
}

// run looks at its start, whenever a configuration was read, and periodically, until ctx ends. It logs failures.
func (o *otherwise) run(ctx context.Context, changed <-chan struct{}) {
	every(ctx, lookAgain, changed, func(int) {
		if err := o.look(ctx); err != nil && ctx.Err() == nil {
			o.log.Warn("stored requests not searched for other configurations", zap.Error(err))
		}
	})
}

// look updates the gauge and logs what is new.
func (o *otherwise) look(ctx context.Context) error {
	found, err := o.of(ctx, "")
	if err != nil {
		return err
	}
	told, rows := map[string]time.Time{}, int64(0)
	for _, j := range found {
		rows += j.Requests
		told[j.Cluster] = j.Since
		if since, ok := o.told[j.Cluster]; ok && since.Equal(j.Since) {
			continue
		}
		o.log.Info("stored requests were judged by another configuration of their apiserver than is known now; to judge them again (with "+
			"--dry-run to see what would change): "+o.command(j),
			zap.String("cluster", j.Cluster), zap.Int64("requests", j.Requests), zap.Time("since", j.Since))
	}
	o.told = told
	o.rows.Set(float64(rows))
	return nil
}
