package runner

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/internal/sleep"
	"github.com/retrial-io/retrial/verdict"
)

// Judging stored requests again is a job: it stands in the store, with how far every
// partition is, before anything is rewritten. Each partition is worked on by its owner, like
// any correction, in steps of a stretch of time between its blocks; a new owner goes on from
// the last step that was saved.

// RejudgeStore keeps the jobs.
type RejudgeStore interface {
	SaveRejudge(ctx context.Context, r verdict.Rejudge) error
	// SaveRejudgeProgress keeps the greatest version of a partition's progress.
	SaveRejudgeProgress(ctx context.Context, cluster, id string, p verdict.RejudgeProgress) error
	Rejudges(ctx context.Context) ([]verdict.RejudgeJob, error)
}

// rejudgeSteps is how many steps the range of a job is cut into, none shorter than an hour.
const rejudgeSteps = 200

// rejudgeShare bounds how long a partition works on jobs before it looks for new events.
const rejudgeShare = time.Second

// rejudges are the unfinished jobs, as far as this process knows.
type rejudges struct {
	mu   sync.Mutex
	jobs map[string]verdict.Rejudge
	done map[string]map[int32]bool // partitions that need nothing any more
}

func newRejudges() *rejudges {
	return &rejudges{jobs: map[string]verdict.Rejudge{}, done: map[string]map[int32]bool{}}
}

// set takes in what the store knows.
func (j *rejudges) set(list []verdict.RejudgeJob) {
	j.mu.Lock()
	defer j.mu.Unlock()
	clear(j.jobs)
	for i := range list {
		if !list[i].Done() {
			j.jobs[list[i].ID] = list[i].Rejudge
		}
	}
	maps.DeleteFunc(j.done, func(id string, _ map[int32]bool) bool { _, open := j.jobs[id]; return !open })
}

// next returns a job the partition has work in; the oldest first.
func (j *rejudges) next(partition int32) (verdict.Rejudge, bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, id := range slices.Sorted(maps.Keys(j.jobs)) {
		if job := j.jobs[id]; slices.Contains(job.Partitions, partition) && !j.done[id][partition] {
			return job, true
		}
	}
	return verdict.Rejudge{}, false
}

// finish notes that a partition is done with a job.
func (j *rejudges) finish(id string, partition int32) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.done[id] == nil {
		j.done[id] = map[int32]bool{}
	}
	j.done[id][partition] = true
}

// Rejudge begins to judge stored requests again, and returns the job. What is set of r are
// the cluster, the range (a zero To is now), what to select, and DryRun. When the same is
// under way already it returns that job; when something else is, verdict.ErrRejudging.
func (r *Runner) Rejudge(ctx context.Context, want verdict.Rejudge) (verdict.RejudgeJob, error) {
	select {
	case r.asking <- struct{}{}:
		defer func() { <-r.asking }()
	case <-ctx.Done():
		return verdict.RejudgeJob{}, ctx.Err()
	}
	list, err := r.store.Rejudges(ctx)
	if err != nil {
		return verdict.RejudgeJob{}, err
	}
	open := want.To.IsZero()
	now := time.Now().UTC()
	if open {
		want.To = now
	}
	if !want.From.Before(want.To) {
		return verdict.RejudgeJob{}, fmt.Errorf("judge again: the range from %s to %s is empty", want.From.Format(time.RFC3339),
			want.To.Format(time.RFC3339))
	}
	for i := range list {
		if list[i].Cluster != want.Cluster || list[i].Done() {
			continue
		}
		if sameRejudge(list[i].Rejudge, want, open) {
			return list[i], nil
		}
		return list[i], fmt.Errorf("%w (job %s)", verdict.ErrRejudging, list[i].ID)
	}
	ends, err := r.source.Ends(ctx, stream.TopicEvents)
	if err != nil {
		return verdict.RejudgeJob{}, err
	}
	want.Partitions = slices.Sorted(maps.Keys(ends))
	want.Asked, want.ID = now, now.Format("20060102T150405.000000Z")
	if v, ok := r.engine.(interface{ Version() string }); ok {
		want.Engine = v.Version()
	}
	if v, ok := r.engine.(interface{ ConfigOf(cluster string) string }); ok {
		want.Config = v.ConfigOf(want.Cluster)
	}
	if err := r.store.SaveRejudge(ctx, want); err != nil {
		return verdict.RejudgeJob{}, err
	}
	job := verdict.RejudgeJob{Rejudge: want}
	r.rejudges.set(append(list, job))
	r.log.Info("judging stored requests again", zap.String("job", want.ID), zap.String("cluster", want.Cluster),
		zap.Time("from", want.From), zap.Time("to", want.To), zap.Bool("dry_run", want.DryRun))
	return job, nil
}

// sameRejudge reports whether a job is what is asked for; open: up to now, whenever that is.
func sameRejudge(job, want verdict.Rejudge, open bool) bool {
	return job.From.Equal(want.From) && (open || job.To.Equal(want.To)) && job.DryRun == want.DryRun && slices.Equal(job.Users,
		want.Users) &&
		slices.Equal(job.Only.Verbs, want.Only.Verbs) && slices.Equal(job.Only.Resources, want.Only.Resources) &&
		slices.Equal(job.Only.Namespaces, want.Only.Namespaces) && slices.Equal(job.Only.Outcomes, want.Only.Outcomes) &&
		slices.Equal(job.Only.Classes, want.Only.Classes)
}

// Rejudges returns every job, finished or not.
func (r *Runner) Rejudges(ctx context.Context) ([]verdict.RejudgeJob, error) {
	return r.store.Rejudges(ctx)
}

// followRejudges looks now and then which jobs there are: another process may have been asked,
// and jobs of an earlier process are gone on with.
func (r *Runner) followRejudges(ctx context.Context) error {
	for {
		if _, err := r.retry(ctx, opRejudges, func() error {
			select { // or a job asked for meanwhile would be forgotten until the next look
			case r.asking <- struct{}{}:
				defer func() { <-r.asking }()
			case <-ctx.Done():
				return ctx.Err()
			}
			list, err := r.store.Rejudges(ctx)
			if err == nil {
				r.rejudges.set(list)
			}
			return err
		}); err != nil {
			return nil // only when the context ends
		}
		if err := sleep.For(ctx, r.cfg.RejudgePoll); err != nil {
			return nil
		}
	}
}

// work does some steps of the jobs the partition has work in.
func (l *lane) work(ctx context.Context) error {
	began := time.Now()
	for time.Since(began) < rejudgeShare {
		job, ok := l.r.rejudges.next(l.partition)
		if !ok {
			return nil
		}
		if err := l.step(ctx, job); err != nil {
			return err
		}
	}
	return nil
}

// step judges one stretch of a job again and saves how far the partition is.
func (l *lane) step(ctx context.Context, job verdict.Rejudge) error {
	p, first := l.jobs[job.ID]
	first = !first
	if first {
		if _, err := l.r.retry(ctx, opRejudges, func() (err error) {
			p, err = l.resumed(ctx, job)
			return err
		}); err != nil {
			return err
		}
		// An earlier owner may have been rewriting: what it sent has landed, or never will, once
		// the store has recovered any day.
		if !job.DryRun {
			if err := l.recover(ctx, []time.Time{time.Unix(0, 0).UTC()}); err != nil {
				return err
			}
		}
	}
	if !p.Done {
		to := p.Until.Add(max(time.Hour, job.To.Sub(job.From)/rejudgeSteps))
		if !to.Before(job.To) {
			to = job.To
		}
		f := verdict.AffectedFilter{Cluster: job.Cluster, Partitions: []int32{l.partition}, From: p.Until, To: to.Add(-time.Microsecond),
			Users: job.Users, Only: job.Only}
		s := &rejudgeStep{l: l, dry: job.DryRun}
		if first && !job.DryRun {
			s.days = daysOf(p.Until, to) // selected rows may be others by now
		}
		if err := l.visitOld(ctx, f, first && !job.DryRun, s); err != nil {
			return err
		}
		p.Report.Merge(s.report)
		p.Until, p.Done, p.Version = to, !to.Before(job.To), p.Version+1
		if _, err := l.r.retry(ctx, opRejudges, func() error {
			return l.r.store.SaveRejudgeProgress(ctx, job.Cluster, job.ID, p)
		}); err != nil {
			return err
		}
	}
	if l.jobs == nil {
		l.jobs = map[string]verdict.RejudgeProgress{}
	}
	l.jobs[job.ID] = p
	if p.Done {
		l.r.rejudges.finish(job.ID, l.partition)
		l.log.Info("partition judged again", zap.String("job", job.ID), zap.String("cluster", job.Cluster),
			zap.Int64("visited", p.Report.Visited), zap.Int64("changed", p.Report.Changed), zap.Bool("dry_run", job.DryRun))
	}
	return nil
}

// visitOld visits rows whose policy may have been forgotten: it is loaded for them.
func (l *lane) visitOld(ctx context.Context, f verdict.AffectedFilter, uncertain bool, with visitor) error {
	if !l.held[f.Cluster] { // it has no rows
		return l.visitAll(ctx, f, uncertain, with)
	}
	if err := l.hold(ctx, map[string]span{f.Cluster: {from: f.From}}); err != nil {
		return err
	}
	defer l.r.states.judged(l.partition, f.Cluster)
	return l.visitAll(ctx, f, uncertain, with)
}

// resumed returns how far an earlier owner has come, or the start of the job.
func (l *lane) resumed(ctx context.Context, job verdict.Rejudge) (verdict.RejudgeProgress, error) {
	list, err := l.r.store.Rejudges(ctx)
	if err != nil {
		return verdict.RejudgeProgress{}, err
	}
	for i := range list {
		for _, p := range list[i].Progress {
			if list[i].ID == job.ID && p.Partition == l.partition {
				if !p.Done {
					p.Interrupted++
				}
				return p, nil
			}
		}
	}
	return verdict.RejudgeProgress{Partition: l.partition, Until: job.From}, nil
}

// daysOf returns the UTC days of a stretch of time.
func daysOf(from, to time.Time) (days []time.Time) {
	for d := from.UTC().Truncate(24 * time.Hour); d.Before(to); d = d.Add(24 * time.Hour) {
		days = append(days, d)
	}
	return days
}

// rejudgeStep is what a step of a job does with the rows it visits.
type rejudgeStep struct {
	l      *lane
	dry    bool
	days   []time.Time
	report verdict.RejudgeReport
}

// begin starts the visit, or starts it over: what was rewritten before counts, what was looked
// at is looked at again.
func (s *rejudgeStep) begin() []time.Time {
	s.report.Visited, s.report.Failed = 0, 0
	if s.dry {
		s.report = verdict.RejudgeReport{}
	}
	return slices.Clone(s.days)
}

func (s *rejudgeStep) rows(ctx context.Context, rows []verdict.Row) (failed bool, err error) {
	verdicts, bad := s.l.judgeAgain(rows, new(allowances))
	s.report.Visited += int64(len(rows))
	s.report.Failed += int64(bad)
	var changed []int
	for i, v := range verdicts {
		if v != nil && !s.l.r.store.SameVerdict(rows[i].Verdict, v) {
			changed = append(changed, i)
		}
	}
	if !s.dry {
		if failed, err = s.l.replace(ctx, "rj", rows, verdicts, changed); err != nil {
			return failed, err
		}
	}
	for _, i := range changed {
		s.report.Add(&rows[i], verdicts[i])
	}
	return failed, nil
}
