package verdict

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"time"
)

// Rejudge asks for stored requests of a cluster to be judged again: after a fix of the engine, or
// after a configuration was supplied late.
type Rejudge struct {
	ID      string    `json:"id"`
	Cluster string    `json:"cluster"`
	From    time.Time `json:"from"` // of the requests, inclusive
	To      time.Time `json:"to"`   // exclusive
	Users   []string  `json:"users,omitempty"`
	Only    Selection `json:"only"`
	DryRun  bool      `json:"dryRun,omitempty"` // report, rewrite nothing
	Asked   time.Time `json:"asked"`
	Engine  string    `json:"engine"`
	// Config is Engine.ConfigOf the cluster when the job was created, "" if that is not known.
	Config string `json:"config,omitempty"`
	// Partitions are those audit.events had when the job was created: each is worked on by its
	// owner.
	Partitions []int32 `json:"partitions"`
}

// RejudgeProgress says how far the work on a partition is.
type RejudgeProgress struct {
	Partition int32 `json:"partition"`
	// Version grows with every saved step.
	Version uint64 `json:"version"`
	// Until is how far the work has come in time of requests; Done: it is complete.
	Until time.Time `json:"until"`
	Done  bool      `json:"done"`
	// Interrupted counts how often another owner resumed. What was rewritten in the interrupted
	// step may be missing from the report.
	Interrupted int           `json:"interrupted,omitempty"`
	Report      RejudgeReport `json:"report"`
}

// RejudgeReport summarizes the verdicts that changed: what they were before and after.
type RejudgeReport struct {
	Visited int64 `json:"visited"` // judged again
	Changed int64 `json:"changed"`
	// Failed could not be judged again; their verdicts stand.
	Failed      int64        `json:"failed,omitempty"`
	Transitions []Transition `json:"transitions"` // most requests first
}

// Transition counts verdicts that changed from one outcome and class to another; if both are the
// same, another part of the verdict changed: grants, contradictions, the chain.
type Transition struct {
	From     Judgement        `json:"from"`
	To       Judgement        `json:"to"`
	Count    int64            `json:"count"`
	Examples []RejudgeExample `json:"examples"` // the earliest
}

// Judgement is the outcome and class of a verdict.
type Judgement struct {
	Outcome string `json:"outcome"`
	Verdict string `json:"verdict"` // the outcome; the name will be removed in the next release
	Class   string `json:"class"`
}

func judgementOf(v *Verdict) Judgement {
	return Judgement{Outcome: v.Outcome.String(), Verdict: v.Outcome.String(), Class: v.Class}
}

// UnmarshalJSON implements json.Unmarshaler: reports that are stored may have the old name alone.
func (j *Judgement) UnmarshalJSON(text []byte) error {
	type members Judgement
	err := json.Unmarshal(text, (*members)(j))
	j.Outcome = cmp.Or(j.Outcome, j.Verdict)
	return err
}

// RejudgeExample is one request whose verdict changed.
type RejudgeExample struct {
	AuditID string    `json:"auditID"`
	At      time.Time `json:"at"`
	Subject string    `json:"subject"` // as whom the request was made
	User    string    `json:"user"`    // the subject; the name will be removed in the next release
	Verb    string    `json:"verb"`
	URI     string    `json:"requestURI"`
	Before  string    `json:"before"` // the verdict's cause before
	After   string    `json:"after"`
}

// UnmarshalJSON implements json.Unmarshaler, as Judgement's.
func (e *RejudgeExample) UnmarshalJSON(text []byte) error {
	type members RejudgeExample
	err := json.Unmarshal(text, (*members)(e))
	e.Subject = cmp.Or(e.Subject, e.User)
	return err
}

// rejudgeExamples is how many examples of a transition are kept.
const rejudgeExamples = 3

// Add counts a verdict that changed.
func (r *RejudgeReport) Add(row *Row, after *Verdict) {
	before, subject := row.Verdict, row.Event.EffectiveUser().Username
	r.merge(Transition{
		From: judgementOf(before), To: judgementOf(after), Count: 1,
		Examples: []RejudgeExample{{AuditID: row.Event.AuditID, At: row.Event.RequestReceivedTimestamp, Subject: subject, User: subject,
			Verb: row.Event.Verb, URI: row.Event.RequestURI, Before: before.Cause, After: after.Cause}},
	})
	r.Changed++
}

// Merge adds the counts of another report.
func (r *RejudgeReport) Merge(o RejudgeReport) {
	r.Visited, r.Changed, r.Failed = r.Visited+o.Visited, r.Changed+o.Changed, r.Failed+o.Failed
	for _, t := range o.Transitions {
		r.merge(t)
	}
}

func (r *RejudgeReport) merge(t Transition) {
	i := slices.IndexFunc(r.Transitions, func(h Transition) bool { return h.From == t.From && h.To == t.To })
	if i < 0 {
		i = len(r.Transitions)
		r.Transitions = append(r.Transitions, Transition{From: t.From, To: t.To})
	}
	h := &r.Transitions[i]
	h.Count += t.Count
	h.Examples = append(slices.Clip(h.Examples), t.Examples...)
	slices.SortFunc(h.Examples, func(a, b RejudgeExample) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.AuditID, b.AuditID))
	})
	h.Examples = h.Examples[:min(len(h.Examples), rejudgeExamples)]
}

// Sort sorts the transitions: most requests first.
func (r *RejudgeReport) Sort() {
	slices.SortFunc(r.Transitions, func(a, b Transition) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.From.Outcome, b.From.Outcome), cmp.Compare(a.From.Class, b.From.Class),
			cmp.Compare(a.To.Outcome, b.To.Outcome), cmp.Compare(a.To.Class, b.To.Class))
	})
}

// RejudgeJob is a Rejudge and its progress.
type RejudgeJob struct {
	Rejudge
	Progress []RejudgeProgress `json:"progress"` // by partition, of those that were begun
}

// Done reports whether the work on every partition is complete.
func (j *RejudgeJob) Done() bool {
	n := 0
	for i := range j.Progress {
		if j.Progress[i].Done && slices.Contains(j.Partitions, j.Progress[i].Partition) {
			n++
		}
	}
	return n >= len(j.Partitions)
}

// Share returns how much of the work is done, from 0 to 1, by time of the requests.
func (j *RejudgeJob) Share() float64 {
	length := j.To.Sub(j.From)
	if j.Done() || length <= 0 {
		return 1
	}
	sum := 0.0
	for i := range j.Progress {
		switch p := &j.Progress[i]; {
		case p.Done:
			sum++
		case p.Until.After(j.From):
			sum += float64(p.Until.Sub(j.From)) / float64(length)
		}
	}
	return min(sum/float64(len(j.Partitions)), 1)
}

// Report returns the sum over the partitions, sorted.
func (j *RejudgeJob) Report() (sum RejudgeReport) {
	for i := range j.Progress {
		sum.Merge(j.Progress[i].Report)
	}
	sum.Sort()
	return sum
}

// ErrRejudging means that a job for the same cluster is in progress.
var ErrRejudging = errors.New("the cluster's requests are being judged again already")
