package query

import (
	"context"
	"time"

	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// Totals are counts of a range.
type Totals struct {
	Events        int64 `json:"events"`   // all stages count
	Requests      int64 `json:"requests"` // each of one outcome
	Match         int64 `json:"match"`
	Drift         int64 `json:"drift"`
	Ambiguous     int64 `json:"ambiguous"`
	Indeterminate int64 `json:"indeterminate"`
	NotJudged     int64 `json:"not_judged"`
	Forbid        int64 `json:"forbid"` // requests the apiserver refused
}

// Bucket counts the requests of a stretch of time, once by recorded decision and once by outcome.
type Bucket struct {
	Time          time.Time `json:"t"`     // begin
	Allow         int64     `json:"allow"` // requests by recorded decision
	Forbid        int64     `json:"forbid"`
	None          int64     `json:"none"`
	Match         int64     `json:"match"` // requests by outcome
	Drift         int64     `json:"drift"`
	Ambiguous     int64     `json:"ambiguous"`
	Indeterminate int64     `json:"indeterminate"`
	NotJudged     int64     `json:"not_judged"`
	Later         int64     `json:"later"` // events that are later stages of requests counted before
}

// ClassCount counts the requests of a class.
type ClassCount struct {
	Class   string `json:"class"`
	Outcome string `json:"outcome"`
	Text    string `json:"text"`  // what the class means
	Count   int64  `json:"count"` // of requests
}

// Decided counts requests by recorded and replayed decision.
type Decided struct {
	Recorded string `json:"recorded"` // decision of the apiserver
	Replayed string `json:"replayed"` // decision of the replica
	Requests int64  `json:"requests"`
}

// SubjectCount counts the requests of a subject.
type SubjectCount struct {
	Subject   string `json:"subject"` // user name, as authorized
	User      string `json:"user"`    // the subject; the name will be removed in the next release
	Requests  int64  `json:"requests"`
	Forbidden int64  `json:"forbidden"`
	Drift     int64  `json:"drift"`
}

// OverviewAnswer sums up a range of time.
type OverviewAnswer struct {
	Cluster       string         `json:"cluster"`
	From          time.Time      `json:"from"`
	To            time.Time      `json:"to"`
	BucketSeconds int64          `json:"bucketSeconds"`  // length of a bucket of volume, chosen so that there are at most 120
	Totals        Totals         `json:"totals"`         // of the whole range
	Volume        []Bucket       `json:"volume"`         // empty buckets are left out
	Decisions     []Decided      `json:"decisions"`      // requests by recorded and replayed decision
	Classes       []ClassCount   `json:"classes"`        // requests by class
	Subjects      []SubjectCount `json:"subjects"`       // the 15 with most requests
	Next          *Advice        `json:"next,omitempty"` // what to supply so that more can be decided; left out when nothing is missing
}

// OverviewRequest asks for a range of time, summed up. Up to two hours the sums are exact to the
// instant; longer ranges are widened to whole minutes.
type OverviewRequest struct {
	Asks[OverviewAnswer] `question:"overview"`
	Cluster              string    `json:"cluster" required:"true" help:"cluster the question is about"`
	From                 time.Time `json:"from" required:"true" help:"requests at or after this time"`
	To                   time.Time `json:"to" required:"true" help:"requests before this time"`
}

func (r OverviewRequest) check() error { return before(r.From, r.To) }

// Overview answers with a range of time, summed up.
func (*Service) Overview(ctx context.Context, tables Tables, q OverviewRequest) (out OverviewAnswer, err error) {
	o, err := tables.Overview(ctx, q.Cluster, q.From, q.To)
	if err != nil {
		return out, err
	}
	out = OverviewAnswer{Cluster: q.Cluster, From: q.From, To: q.To, BucketSeconds: int64(o.Step / time.Second),
		Volume: []Bucket{}, Decisions: []Decided{}, Classes: []ClassCount{}, Subjects: []SubjectCount{}}
	for _, b := range o.Volume {
		out.addBucket(b)
	}
	for _, c := range o.Outcomes {
		t := &out.Totals
		*[...]*int64{&t.NotJudged, &t.Match, &t.Drift, &t.Ambiguous, &t.Indeterminate}[verdict.OutcomeOf(c.Outcome)] += c.Requests
		t.Requests += c.Requests
		if c.Class != "" {
			out.Classes = append(out.Classes, ClassCount{c.Class, c.Outcome, verdict.Explain(c.Class), c.Requests})
		}
	}
	for _, d := range o.Decisions {
		out.Decisions = append(out.Decisions, Decided{d.Recorded, d.Replayed, d.Requests})
	}
	for _, s := range o.Subjects {
		out.Subjects = append(out.Subjects, SubjectCount{s.Subject, s.Subject, s.Requests, s.Forbidden, s.Drift})
	}
	out.Next = Advise(q.Cluster, o.Outcomes, o.Lacks)
	return out, nil
}

// addBucket adds one count to its bucket; counts come in the order of time.
func (o *OverviewAnswer) addBucket(b queries.Bucket) {
	n := len(o.Volume)
	if n == 0 || !o.Volume[n-1].Time.Equal(b.Start) {
		o.Volume = append(o.Volume, Bucket{Time: b.Start})
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
	*[...]*int64{&v.NotJudged, &v.Match, &v.Drift, &v.Ambiguous, &v.Indeterminate}[verdict.OutcomeOf(b.Outcome)] += b.Events
}
