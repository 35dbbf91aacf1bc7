package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/query"
	apiclient "github.com/retrial-io/retrial/query/client"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/queries"
)

// freshnessTimes are how long after its acknowledgement a request that alerts is in the API's list of requests, with its verdict, and its
// finding is stored.
type freshnessTimes struct {
	Posted  int       `json:"posted"`
	Timed   int       `json:"posted_while_asking"`
	Request quantiles `json:"request"`
	Finding quantiles `json:"critical_finding"`
}

// quantiles are of times in seconds.
type quantiles struct {
	P50   float64 `json:"p50_s"`
	P95   float64 `json:"p95_s"`
	Worst float64 `json:"worst_s"`
}

const (
	freshCluster = "bench-freshness" // of the requests that are waited for, and of nothing else
	freshPosts   = 2 * time.Second   // between two of them
	freshAsks    = 250 * time.Millisecond
	freshHalf    = 20 * time.Second // asking, then as long not
	freshTail    = 10 * time.Second // before the end of asking: what is posted then is not timed
	freshPage    = 500              // most that one answer has
	freshLongest = 2 * time.Minute
)

// freshnessProbe posts requests that alert, and asks until they are answered. As a question has stored what came before it, nobody asks
// half of the time: findings are to come although nobody does.
type freshnessProbe struct {
	send   func(ctx context.Context, body string) error
	client *apiclient.Client
	rest   context.CancelFunc // ends the posts
	cancel context.CancelFunc
	done   chan error

	mu       sync.Mutex
	began    time.Time
	acked    map[string]time.Time     // by subject
	requests map[string]time.Duration // 0 if posted while nobody asked
	findings map[string]bool          // that are answered
}

// probeFreshness begins to post.
func probeFreshness(ctx context.Context, send func(context.Context, string) error, client *apiclient.Client) *freshnessProbe {
	p := &freshnessProbe{send: send, client: client, done: make(chan error, 1), began: time.Now(), acked: map[string]time.Time{},
		requests: map[string]time.Duration{}, findings: map[string]bool{}}
	ctx, p.cancel = context.WithCancel(ctx)
	posting, rest := context.WithCancel(ctx)
	p.rest = rest
	go func() { p.done <- p.run(ctx, posting) }()
	return p
}

// run posts until posting ends, and asks until everything posted has been answered.
func (p *freshnessProbe) run(ctx, posting context.Context) error {
	posted := make(chan error, 1)
	go func() { posted <- p.post(posting) }()
	var failed error
	var over time.Time
	for {
		if p.within(time.Now()) < freshHalf || !over.IsZero() && time.Since(over) > freshHalf {
			if err := p.ask(ctx); err != nil {
				return err
			}
		}
		select {
		case failed = <-posted:
			over, posted = time.Now(), nil
		case <-ctx.Done():
			return fmt.Errorf("--freshness: not everything was answered: %w", ctx.Err())
		case <-time.After(freshAsks):
		}
		if failed != nil || !over.IsZero() && p.answered() {
			return failed
		}
	}
}

// within returns when in its stretch of asking and not asking a time is.
func (p *freshnessProbe) within(at time.Time) time.Duration { return at.Sub(p.began) % (2 * freshHalf) }

// post sends one request after the other.
func (p *freshnessProbe) post(ctx context.Context) error {
	for n := 1; ; n++ {
		subject := "probe-" + strconv.Itoa(n)
		if err := p.send(ctx, alert(subject, n, time.Now())); err != nil {
			if ctx.Err() != nil {
				return nil // nobody knows whether it was taken
			}
			return fmt.Errorf("--freshness: %w", err)
		}
		p.mu.Lock()
		now := time.Now()
		p.acked[subject] = now
		if p.within(now) >= freshHalf-freshTail {
			p.requests[subject] = 0
		}
		p.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(freshPosts):
		}
	}
}

// alert returns a list of one event: somebody binds cluster-admin.
func alert(subject string, n int, at time.Time) string {
	const form = `{"kind":"EventList","apiVersion":"audit.k8s.io/v1","metadata":{},"items":[{"level":"RequestResponse",` +
		`"auditID":"f0e5b000-0000-4000-8000-%012d","stage":"ResponseComplete",` +
		`"requestURI":"/apis/rbac.authorization.k8s.io/v1/clusterrolebindings","verb":"create",` +
		`"user":{"username":%[2]q,"groups":["system:authenticated"]},"sourceIPs":["192.0.2.1"],"userAgent":"probe",` +
		`"objectRef":{"resource":"clusterrolebindings","name":%[2]q,"apiGroup":"rbac.authorization.k8s.io","apiVersion":"v1"},` +
		`"responseStatus":{"metadata":{},"code":201},"requestObject":{"kind":"ClusterRoleBinding",` +
		`"apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":%[2]q},"subjects":[{"kind":"User",` +
		`"apiGroup":"rbac.authorization.k8s.io","name":%[2]q}],"roleRef":{"apiGroup":"rbac.authorization.k8s.io",` +
		`"kind":"ClusterRole","name":"cluster-admin"}},"requestReceivedTimestamp":%[3]q,"stageTimestamp":%[3]q}]}`
	return fmt.Sprintf(form, n, subject, at.UTC().Format("2006-01-02T15:04:05.000000Z"))
}

// ask notes which requests are in the answers by now.
func (p *freshnessProbe) ask(ctx context.Context) error {
	events, err := apiclient.Ask(ctx, p.client, query.EventsRequest{Filters: query.Filters{Cluster: freshCluster}, Limit: freshPage})
	if err == nil {
		for i := range events.Events {
			p.seen(events.Events[i].Subject)
		}
		var findings query.FindingsAnswer
		findings, err = apiclient.Ask(ctx, p.client,
			query.FindingsRequest{Cluster: freshCluster, Severity: "critical", Limit: freshPage})
		for _, body := range findings.Findings {
			var f detect.Finding
			if err := json.Unmarshal(body, &f); err != nil {
				return fmt.Errorf("--freshness: read a finding: %w", err)
			}
			p.mu.Lock()
			p.findings[f.Subject] = true
			p.mu.Unlock()
		}
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("--freshness: %w", err)
	}
	return nil
}

// seen notes that a subject's request is in an answer.
func (p *freshnessProbe) seen(subject string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if _, known := p.requests[subject]; !known && !p.acked[subject].IsZero() {
		p.requests[subject] = time.Since(p.acked[subject])
	}
}

// answered reports whether everything posted has been answered.
func (p *freshnessProbe) answered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.requests) == len(p.acked) && len(p.findings) == len(p.acked)
}

// stop ends the posts and waits for the answers.
func (p *freshnessProbe) stop() error {
	if p == nil {
		return nil
	}
	defer p.cancel()
	p.rest()
	late := time.AfterFunc(freshLongest, p.cancel)
	defer late.Stop()
	return <-p.done
}

// times returns how long answers and findings took; nil if nothing was asked. The store is that of the server, which has ended.
func (p *freshnessProbe) times(ctx context.Context, store *storage.Store) (*freshnessTimes, error) {
	if p == nil {
		return nil, nil
	}
	stored, err := store.Findings(ctx, queries.FindingFilter{Cluster: freshCluster, Severities: []string{"critical"}, Limit: 1000})
	if err != nil {
		return nil, err
	}
	var requests, findings []float64
	for _, took := range p.requests {
		if took > 0 {
			requests = append(requests, took.Seconds())
		}
	}
	for i := range stored {
		if at, ok := p.acked[stored[i].Subject]; ok {
			findings = append(findings, stored[i].Updated.Sub(at).Seconds())
		}
	}
	return &freshnessTimes{Posted: len(p.acked), Timed: len(requests), Request: quantilesOf(requests), Finding: quantilesOf(findings)}, nil
}

func quantilesOf(list []float64) quantiles {
	if len(list) == 0 {
		return quantiles{}
	}
	slices.Sort(list)
	at := func(percent int) float64 { return list[min(len(list)*percent/100, len(list)-1)] }
	return quantiles{P50: at(50), P95: at(95), Worst: at(100)}
}

// print writes the times as lines of a table.
func (f *freshnessTimes) print(w io.Writer) {
	line := func(name string, q quantiles, n int) {
		fmt.Fprintf(w, "%s\tp50 %.1f s, p95 %.1f s, worst %.1f s after the acknowledgement, of %d\n", name, q.P50, q.P95, q.Worst, n)
	}
	line("a request answered", f.Request, f.Timed)
	line("a critical finding", f.Finding, f.Posted)
}
