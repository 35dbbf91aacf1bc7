package main

import (
	"context"
	"net/url"
	"time"

	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/storage"
)

// overview is what the store says of a stretch of time.
type overview struct {
	Volume   []storage.Bucket // in the order of time
	Outcomes []storage.Share
	Subjects []storage.SubjectCount
	Lacks    []storage.Lack // most wanted first
}

// storeQueries asks the store what the API wants to know.
type storeQueries struct{ *storage.Store }

func (s storeQueries) Overview(ctx context.Context, cluster string, from, to time.Time, step time.Duration) (o overview, err error) {
	if o.Volume, err = s.Volume(ctx, cluster, from, to, step); err != nil {
		return o, err
	}
	if o.Outcomes, err = s.Outcomes(ctx, cluster, from, to); err != nil {
		return o, err
	}
	if o.Subjects, err = s.TopSubjects(ctx, cluster, from, to, topSubjects); err != nil {
		return o, err
	}
	o.Lacks, err = s.Lacks(ctx, cluster, from, to, topLacks)
	return o, err
}

func (s storeQueries) Why(ctx context.Context, cluster, auditID string, visit func(replay.Row) error) error {
	rows, err := s.Store.Why(ctx, cluster, auditID)
	if err != nil {
		return err
	}
	for _, r := range rows {
		if err := visit(r); err != nil {
			return err
		}
	}
	return nil
}

// How much of a long list the first page shows.
const (
	topSubjects = 15
	topLacks    = 50
)

// mostBuckets is how many steps a chart is cut into at most: bars stay wide enough to be
// pointed at.
const mostBuckets = 120

// steps are the lengths of buckets, so that their borders are times people count in.
var steps = []time.Duration{
	time.Minute, 2 * time.Minute, 5 * time.Minute, 10 * time.Minute, 15 * time.Minute, 30 * time.Minute,
	time.Hour, 2 * time.Hour, 3 * time.Hour, 6 * time.Hour, 12 * time.Hour,
	day, 2 * day, 7 * day, 14 * day, 28 * day,
}

const day = 24 * time.Hour

// stepOf returns the bucket length for a range.
func stepOf(from, to time.Time) time.Duration {
	r := to.Sub(from)
	for _, s := range steps {
		if r <= mostBuckets*s {
			return s
		}
	}
	return (r/(mostBuckets*28*day) + 1) * 28 * day
}

type totalsJSON struct {
	Events        int64 `json:"events"`
	Requests      int64 `json:"requests"`
	Match         int64 `json:"match"`
	Drift         int64 `json:"drift"`
	Ambiguous     int64 `json:"ambiguous"`
	Indeterminate int64 `json:"indeterminate"`
	NotJudged     int64 `json:"not_judged"`
	Forbid        int64 `json:"forbid"`
}

// bucketJSON counts the requests of a stretch of time, once by recorded decision and once
// by outcome.
type bucketJSON struct {
	Time          time.Time `json:"t"`
	Allow         int64     `json:"allow"`
	Forbid        int64     `json:"forbid"`
	None          int64     `json:"none"`
	Match         int64     `json:"match"`
	Drift         int64     `json:"drift"`
	Ambiguous     int64     `json:"ambiguous"`
	Indeterminate int64     `json:"indeterminate"`
	NotJudged     int64     `json:"not_judged"`
	Later         int64     `json:"later"` // events that are later stages of requests counted before
}

type classJSON struct {
	Class   string `json:"class"`
	Outcome string `json:"outcome"`
	Text    string `json:"text"`
	Count   int64  `json:"count"`
}

type subjectJSON struct {
	User      string `json:"user"`
	Requests  int64  `json:"requests"`
	Forbidden int64  `json:"forbidden"`
	Drift     int64  `json:"drift"`
}

type overviewJSON struct {
	Cluster       string        `json:"cluster"`
	From          time.Time     `json:"from"`
	To            time.Time     `json:"to"`
	BucketSeconds int64         `json:"bucketSeconds"`
	Totals        totalsJSON    `json:"totals"`
	Volume        []bucketJSON  `json:"volume"`
	Classes       []classJSON   `json:"classes"`
	Subjects      []subjectJSON `json:"subjects"`
	Next          *adviceJSON   `json:"next,omitempty"`
}

func (a api) overview(ctx context.Context, q url.Values) (any, error) {
	cluster, from, to, err := window(q)
	if err != nil {
		return nil, err
	}
	if from.IsZero() || to.IsZero() {
		return nil, bad("from and to are needed")
	}
	step := stepOf(from, to)
	o, err := a.store.Overview(ctx, cluster, from, to, step)
	if err != nil {
		return nil, err
	}
	out := overviewJSON{Cluster: cluster, From: from, To: to, BucketSeconds: int64(step / time.Second), Volume: []bucketJSON{}, Classes: []classJSON{}, Subjects: []subjectJSON{}}
	for _, b := range o.Volume {
		out.addBucket(b)
	}
	for _, c := range o.Outcomes {
		*out.Totals.of(c.Outcome) += c.Requests
		out.Totals.Requests += c.Requests
		if c.Class != "" {
			out.Classes = append(out.Classes, classJSON{c.Class, c.Outcome, replay.Explain(c.Class), c.Requests})
		}
	}
	for _, s := range o.Subjects {
		out.Subjects = append(out.Subjects, subjectJSON{s.Subject, s.Requests, s.Forbidden, s.Drift})
	}
	out.Next = advise(cluster, o.Outcomes, o.Lacks)
	return out, nil
}

// addBucket folds one count into its bucket; they come in the order of time.
func (o *overviewJSON) addBucket(b storage.Bucket) {
	n := len(o.Volume)
	if n == 0 || !o.Volume[n-1].Time.Equal(b.Start) {
		o.Volume = append(o.Volume, bucketJSON{Time: b.Start})
		n++
	}
	v := &o.Volume[n-1]
	o.Totals.Events += b.Events
	if b.Outcome == "" {
		v.Later += b.Events
		return
	}
	switch b.Recorded {
	case "allow":
		v.Allow += b.Events
	case "forbid":
		v.Forbid += b.Events
		o.Totals.Forbid += b.Events
	default:
		v.None += b.Events
	}
	switch b.Outcome {
	case "match":
		v.Match += b.Events
	case "drift":
		v.Drift += b.Events
	case "ambiguous":
		v.Ambiguous += b.Events
	case "indeterminate":
		v.Indeterminate += b.Events
	default:
		v.NotJudged += b.Events
	}
}

// of returns the count of an outcome.
func (t *totalsJSON) of(outcome string) *int64 {
	switch outcome {
	case "match":
		return &t.Match
	case "drift":
		return &t.Drift
	case "ambiguous":
		return &t.Ambiguous
	case "indeterminate":
		return &t.Indeterminate
	}
	return &t.NotJudged
}
