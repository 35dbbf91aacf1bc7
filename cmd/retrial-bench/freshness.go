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
)

// freshnessTimes are how long after its acknowledgement a request that alerts is in the answers of the API: of the list of requests, with
// its verdict, and of the list of findings.
type freshnessTimes struct {
	Posted  int       `json:"posted"`
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
	freshPage    = 500 // most that one answer has
	freshLongest = 2 * time.Minute
)

// freshnessProbe posts requests that alert, and asks until they are answered.
type freshnessProbe struct {
	send   func(ctx context.Context, body string) error
	client *apiclient.Client
	rest   context.CancelFunc // ends the posts
	cancel context.CancelFunc
	done   chan error

	mu                sync.Mutex
	acked             map[string]time.Time // by subject
	requests, finding map[string]time.Duration
}

// probeFreshness begins to post.
func probeFreshness(ctx context.Context, send func(context.Context, string) error, client *apiclient.Client) *freshnessProbe {
	p := &freshnessProbe{send: send, client: client, done: make(chan error, 1), acked: map[string]time.Time{},
		requests: map[string]time.Duration{}, finding: map[string]time.Duration{}}
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
	for over := false; ; {
		if err := p.ask(ctx); err != nil {
			return err
		}
		select {
		case failed = <-posted:
			over, posted = true, nil
		case <-ctx.Done():
			return fmt.Errorf("--freshness: not everything was answered: %w", ctx.Err())
		case <-time.After(freshAsks):
		}
		if over && (failed != nil || p.answered()) {
			return failed
		}
	}
}

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
		p.acked[subject] = time.Now()
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
	events, err := apiclient.Ask(ctx, p.client, query.EventsRequest{Cluster: freshCluster, Limit: freshPage})
	if err == nil {
		for i := range events.Events {
			p.seen(p.requests, events.Events[i].Subject)
		}
		var findings query.FindingsAnswer
		findings, err = apiclient.Ask(ctx, p.client,
			query.FindingsRequest{Cluster: freshCluster, Severity: "critical", Limit: freshPage})
		for _, body := range findings.Findings {
			var f detect.Finding
			if err := json.Unmarshal(body, &f); err != nil {
				return fmt.Errorf("--freshness: read a finding: %w", err)
			}
			p.seen(p.finding, f.Subject)
		}
	}
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("--freshness: %w", err)
	}
	return nil
}

// seen notes that a subject's request is in an answer.
func (p *freshnessProbe) seen(where map[string]time.Duration, subject string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if at, ok := p.acked[subject]; ok && where[subject] == 0 {
		where[subject] = time.Since(at)
	}
}

// answered reports whether everything posted has been answered.
func (p *freshnessProbe) answered() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.requests) == len(p.acked) && len(p.finding) == len(p.acked)
}

// stop ends the posts, waits for the answers and returns how long each took; nil if nothing was asked.
func (p *freshnessProbe) stop() (*freshnessTimes, error) {
	if p == nil {
		return nil, nil
	}
	defer p.cancel()
	p.rest()
	late := time.AfterFunc(freshLongest, p.cancel)
	defer late.Stop()
	if err := <-p.done; err != nil {
		return nil, err
	}
	return &freshnessTimes{Posted: len(p.acked), Request: quantilesOf(p.requests), Finding: quantilesOf(p.finding)}, nil
}

func quantilesOf(took map[string]time.Duration) quantiles {
	if len(took) == 0 {
		return quantiles{}
	}
	list := make([]float64, 0, len(took))
	for _, d := range took {
		list = append(list, d.Seconds())
	}
	slices.Sort(list)
	at := func(percent int) float64 { return list[min(len(list)*percent/100, len(list)-1)] }
	return quantiles{P50: at(50), P95: at(95), Worst: at(100)}
}

// print writes the times as lines of a table.
func (f *freshnessTimes) print(w io.Writer) {
	line := func(name string, q quantiles) {
		fmt.Fprintf(w, "%s\tp50 %.1f s, p95 %.1f s, worst %.1f s after the acknowledgement, of %d\n", name, q.P50, q.P95, q.Worst, f.Posted)
	}
	line("a request answered", f.Request)
	line("a critical finding", f.Finding)
}
