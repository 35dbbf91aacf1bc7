package main

import (
	"context"
	"net/url"
	"time"

	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/verdict"
)

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

type decidedJSON struct {
	Recorded string `json:"recorded"`
	Replayed string `json:"replayed"`
	Requests int64  `json:"requests"`
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
	Decisions     []decidedJSON `json:"decisions"`
	Classes       []classJSON   `json:"classes"`
	Subjects      []subjectJSON `json:"subjects"`
	Next          *adviceJSON   `json:"next,omitempty"`
}

func (a *api) overview(ctx context.Context, q url.Values) (any, error) {
	cluster, from, to, err := window(q)
	if err != nil {
		return nil, err
	}
	if from.IsZero() || to.IsZero() {
		return nil, bad("from and to are needed")
	}
	o, err := a.store.Overview(ctx, cluster, from, to)
	if err != nil {
		return nil, err
	}
	out := overviewJSON{Cluster: cluster, From: from, To: to, BucketSeconds: int64(o.Step / time.Second),
		Volume: []bucketJSON{}, Decisions: []decidedJSON{}, Classes: []classJSON{}, Subjects: []subjectJSON{}}
	for _, b := range o.Volume {
		out.addBucket(b)
	}
	for _, c := range o.Outcomes {
		*out.Totals.of(c.Outcome) += c.Requests
		out.Totals.Requests += c.Requests
		if c.Class != "" {
			out.Classes = append(out.Classes, classJSON{c.Class, c.Outcome, verdict.Explain(c.Class), c.Requests})
		}
	}
	for _, d := range o.Decisions {
		out.Decisions = append(out.Decisions, decidedJSON{d.Recorded, d.Replayed, d.Requests})
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
