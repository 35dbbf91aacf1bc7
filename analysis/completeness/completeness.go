// Package completeness reports whether all audit events of a cluster arrived, which are missing, and why: it
// compares what each kube-apiserver counted with what is stored of it, and looks for other traces of what is
// missing.
//
//	readings of apiserver_audit_event_total ─┐                      ┌─ missing, at least and at most
//	events by their own time ────────────────┼─▶ sent.go ─▶ Gap ────┼─ cause.go: a batch that could not be
//	error counters, pauses of arrival ───────┘                      │  encoded, a full buffer, an outage, a stop
//	requests of which a stage is missing ─▶ pairs.go                └─ Problem: what it is, what to do
//	events an hour against their usual ───▶ volume.go
//	an apiserver's log, when it is at hand ▶ log.go: the events themselves
//
// A reading is bounded by the apiserver's own clock, which stamps the events as well: no clocks are compared.
// Events at the edges of a stretch make "at least" and "at most" differ; in the middle the count is exact.
package completeness

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/retrial-io/retrial/storage/queries"
)

// Store is what Check reads of the store.
type Store interface {
	AuditSamples(ctx context.Context, cluster string, from, to time.Time) ([]queries.AuditSample, error)
	Received(ctx context.Context, cluster string, cuts []time.Time) ([]queries.Received, error)
	FromLog(ctx context.Context, cluster string, cuts []time.Time) ([]queries.FromLog, error)
	Senders(ctx context.Context, cluster string, from, to time.Time) ([]queries.Sender, error)
	Pauses(ctx context.Context, cluster string, from, to time.Time, arrivals bool, limit int) ([]queries.Pause, error)
	Unpaired(ctx context.Context, cluster string, from, to time.Time, limit int) ([]queries.Unpaired, error)
	Volume(ctx context.Context, cluster string, from, to time.Time, step time.Duration) ([]queries.Bucket, error)
	ServerVolumes(ctx context.Context, cluster string, from, to time.Time) ([]queries.ServerVolume, error)
	LetterCounts(ctx context.Context, cluster string, from, to time.Time) ([]queries.LetterCount, error)
}

// Settle is how long after an event it may still be on its way from an apiserver with default
// flags: a batch waits up to 30 s, is sent, and retried for another 93.
const Settle = 150 * time.Second

// Config says what is normal for the apiservers. Zero fields take the value of an apiserver with
// default flags.
type Config struct {
	// Settle is how long after an event it may still be on its way; 0 is [Settle].
	Settle time.Duration
	// Retry is how long an apiserver tries to send a batch before it drops it; 0 is 93 s.
	Retry time.Duration
	// Batch is the maximum size of a batch (--audit-webhook-batch-max-size); 0 is 400.
	Batch int64
	// Silent is how long an apiserver may be silent, or ten times its usual pause; 0 is five
	// minutes.
	Silent time.Duration
}

func (c Config) withDefaults() Config {
	set := func(d *time.Duration, v time.Duration) {
		if *d <= 0 {
			*d = v
		}
	}
	set(&c.Settle, Settle)
	set(&c.Retry, 93*time.Second)
	set(&c.Silent, 5*time.Minute)
	c.Batch = cmp.Or(c.Batch, 400)
	return c
}

// Question selects one cluster and a range.
type Question struct {
	Cluster string
	// From and To bound the events' own time; zero is a day before To, and Now less Settle.
	From, To time.Time
	Now      time.Time
	// Scraped names the apiservers whose metrics are scraped.
	Scraped []string
}

// Report answers a Question.
type Report struct {
	Cluster  string    `json:"cluster"`
	From     time.Time `json:"from"`
	To       time.Time `json:"to"`
	Servers  []Server  `json:"apiservers"`
	Pairs    Pairs     `json:"pairs"`
	Volume   Volume    `json:"volume"`
	Problems []Problem `json:"problems"`
}

// Server is one apiserver, or all that do not send a name (empty name).
type Server struct {
	Name     string    `json:"name"`
	Events   int64     `json:"events"`  // arrived in the range
	Webhook  int64     `json:"webhook"` // of them by webhook first
	Log      int64     `json:"log"`     // of them from a log first
	Posts    int64     `json:"posts"`
	LastPost time.Time `json:"lastPost,omitzero"`
	// Silent is for how many seconds it has sent nothing, if that is longer than usual.
	Silent   float64   `json:"silentSeconds,omitempty"`
	Measured *Measured `json:"measured,omitempty"` // absent: its metrics are not known
	Volume   *Volume   `json:"volume,omitempty"`   // absent: the only apiserver, or nothing is usual yet
}

// Measured compares what an apiserver counted with what is stored.
type Measured struct {
	From      time.Time `json:"from"`
	To        time.Time `json:"to"`
	Sent      int64     `json:"sent"`     // passed to its audit backends
	Received  int64     `json:"received"` // of the same time, at most Sent
	Missing   int64     `json:"missing"`  // at least
	AtMost    int64     `json:"atMost"`
	Webhook   int64     `json:"webhookErrors"` // events its webhook backend dropped
	Buffer    int64     `json:"bufferErrors"`  // events that found its buffer full
	Log       int64     `json:"logErrors"`     // events its log backend could not write
	Rejected  int64     `json:"rejected"`      // requests refused because they could not be audited
	Recovered int64     `json:"recovered"`     // dropped by it, but stored from a log
	// DeadLetters counts the missing events that arrived and could not be read; an upper bound if
	// the cluster has several apiservers.
	DeadLetters int64   `json:"deadLetters"`
	Restarts    int     `json:"restarts"`
	Unmeasured  float64 `json:"unmeasuredSeconds"` // between the last reading of a process and the next one's start
	Gaps        []Gap   `json:"gaps,omitempty"`
	// Losses are what its webhook backend lost, the newest fifty, whether or not it arrived another
	// way.
	Losses []Loss `json:"losses,omitempty"`
}

// Loss is what the webhook backend of an apiserver lost between two readings.
type Loss struct {
	From   time.Time `json:"from"` // the readings
	To     time.Time `json:"to"`
	Cause  string    `json:"cause"`
	Events int64     `json:"events"`
	// Arrived counts those that arrived from a log instead, the last of them at ArrivedBy.
	Arrived   int64     `json:"arrived"`
	ArrivedBy time.Time `json:"arrivedBy,omitzero"`
	// Unwritten counts those that the log backend could not write either.
	Unwritten int64  `json:"unwritten,omitempty"`
	Text      string `json:"text"`
}

// Causes of a gap.
const (
	CauseUnencodable = "unencodable-batch" // one event of a batch could not be written as JSON
	CauseOverflow    = "buffer-overflow"
	CauseOutage      = "outage" // not delivered within the retries
	CauseRestart     = "restart"
	CauseDeadLetter  = "dead-letter" // it arrived, and could not be read
	CauseUnexplained = "unexplained"
)

// Gap is a stretch of time in which events are missing.
type Gap struct {
	// From and To are readings: the missing events were made between them.
	From    time.Time `json:"from"`
	To      time.Time `json:"to"`
	Missing int64     `json:"missing"` // at least
	AtMost  int64     `json:"atMost"`
	Cause   string    `json:"cause"`
	// Before and After are the events received around the longest pause in it: the missing requests
	// ended between them.
	Before time.Time `json:"before,omitzero"`
	After  time.Time `json:"after,omitzero"`
	Text   string    `json:"text"`

	run         int   // index of the process of the apiserver
	first, last point // its readings
}

// Severities of a problem.
const (
	Fail = "fail" // events are missing, or cannot arrive
	Warn = "warn" // somebody should look into it
	Note = "note" // it is explained; there is nothing to do
)

// Problem is something that is wrong.
type Problem struct {
	Severity  string `json:"severity"`
	Kind      string `json:"kind"`
	APIServer string `json:"apiserver,omitempty"`
	Text      string `json:"text"`
	Todo      string `json:"todo,omitempty"`
}

// Kinds of problems.
const (
	KindMissing     = "missing"
	KindUnexplained = "unexplained"
	KindRejected    = "rejected"
	KindSilent      = "silent"
	KindUnread      = "not-measured"
	KindUnnamed     = "not-named"
	KindPairs       = "pairs"
	KindVolume      = "volume"
)

// Failed reports whether anything is missing.
func (r *Report) Failed() bool {
	return slices.ContainsFunc(r.Problems, func(p Problem) bool { return p.Severity == Fail })
}

func (r *Report) add(severity, kind, server, todo, format string, args ...any) {
	r.Problems = append(r.Problems, Problem{severity, kind, server, fmt.Sprintf(format, args...), todo})
}

// senderRange is how far back an apiserver that has gone silent is remembered.
const senderRange = 25 * time.Hour

// Check checks one cluster.
func Check(ctx context.Context, store Store, cfg Config, q Question) (Report, error) {
	cfg = cfg.withDefaults()
	if q.To.IsZero() {
		q.To = q.Now.Add(-cfg.Settle)
	}
	if q.From.IsZero() {
		q.From = q.To.Add(-24 * time.Hour)
	}
	r := Report{Cluster: q.Cluster, From: q.From.UTC(), To: q.To.UTC(), Servers: []Server{}, Problems: []Problem{}}
	fail := func(err error) (Report, error) {
		return r, fmt.Errorf("completeness of cluster %s: %w", q.Cluster, err)
	}
	until := q.To.Add(cfg.Settle)
	senders, err := store.Senders(ctx, q.Cluster, until.Add(-senderRange), until)
	if err != nil {
		return fail(err)
	}
	recent := map[string]queries.Sender{}
	for _, s := range senders {
		recent[s.APIServer] = s
	}
	// Events and posts are counted for the requested range.
	if senders, err = store.Senders(ctx, q.Cluster, q.From, until); err != nil {
		return fail(err)
	}
	samples, err := store.AuditSamples(ctx, q.Cluster, q.From, until)
	if err != nil {
		return fail(err)
	}
	series := seriesOf(samples, q.From, q.To)
	r.Servers = serversOf(senders, recent, series, q.Scraped)
	r.silence(cfg, recent, until)
	if err := r.measure(ctx, store, cfg, q, series); err != nil {
		return fail(err)
	}
	if err := r.pairs(ctx, store, cfg, q, series); err != nil {
		return fail(err)
	}
	if err := r.volume(ctx, store, q); err != nil {
		return fail(err)
	}
	if err := r.volumes(ctx, store, q); err != nil {
		return fail(err)
	}
	return r, nil
}

// serversOf lists the apiservers that anything is known of, by name.
func serversOf(senders []queries.Sender, recent map[string]queries.Sender, series map[string][]run, scraped []string) []Server {
	by := map[string]Server{}
	for _, s := range senders {
		by[s.APIServer] = Server{Name: s.APIServer, Events: s.Events, Webhook: s.Webhook, Log: s.Log, Posts: s.Posts}
	}
	for name, s := range recent {
		known := by[name]
		known.Name, known.LastPost = name, s.Last
		by[name] = known
	}
	for _, name := range slices.AppendSeq(slices.Clone(scraped), maps.Keys(series)) {
		if _, ok := by[name]; !ok {
			by[name] = Server{Name: name}
		}
	}
	out := make([]Server, 0, len(by))
	for _, name := range slices.Sorted(maps.Keys(by)) {
		out = append(out, by[name])
	}
	return out
}

// silence finds apiservers that have stopped sending.
func (r *Report) silence(cfg Config, recent map[string]queries.Sender, until time.Time) {
	for i := range r.Servers {
		s := &r.Servers[i]
		known := recent[s.Name]
		if known.Posts < 2 {
			continue
		}
		usual := known.Last.Sub(known.First) / time.Duration(known.Posts-1)
		if quiet := until.Sub(known.Last); quiet > max(cfg.Silent, 10*usual) {
			s.Silent = quiet.Seconds()
			r.add(Fail, KindSilent, s.Name, "Check that it runs with its audit flags. Its log names what it could not send. An apiserver "+
				"that was removed is forgotten after a day.",
				"%s has sent nothing for %s; before, it sent every %s.", who(s.Name), quiet.Round(time.Second),
				max(usual, time.Second).Round(time.Second))
		}
	}
}

// who names an apiserver at the beginning of a sentence.
func who(name string) string {
	if name == "" {
		return "The apiserver"
	}
	return "Apiserver " + name
}

// inside names an apiserver within a sentence.
func inside(name string) string {
	if name == "" {
		return "the apiserver"
	}
	return "apiserver " + name
}
