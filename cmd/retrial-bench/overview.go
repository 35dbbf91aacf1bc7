package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"

	"github.com/retrial-io/retrial/query"
	apiclient "github.com/retrial-io/retrial/query/client"
)

// overviewTimes are how long the page's first view took, asked again and again over the local
// socket while events came in.
type overviewTimes struct {
	Events int64   `json:"events"` // that the view is over
	Asked  int     `json:"asked"`
	P50    float64 `json:"p50_ms"`
	P95    float64 `json:"p95_ms"`
	Worst  float64 `json:"worst_ms"`
}

// overviewPause is how long a reader looks at an answer before the next query.
const overviewPause = 250 * time.Millisecond

// fillFrom copies the store that `bench storage --dir` kept to where the server will look for it.
func fillFrom(kept, dataDir string) error {
	if kept == "" {
		return nil
	}
	if err := os.MkdirAll(dataDir, 0o700); err != nil {
		return err
	}
	if text, err := exec.Command("cp", "-a", filepath.Join(kept, "clickhouse"), dataDir).CombinedOutput(); err != nil {
		return fmt.Errorf("--overview: copy the store in %s: %w: %s", kept, err, text)
	}
	return nil
}

// overviewProbe asks for the page's first view until it is stopped.
type overviewProbe struct {
	cancel context.CancelFunc
	done   chan error
	took   []float64 // milliseconds
	events int64
}

// probeOverview begins to ask, of the whole range of the cluster of the kept store, which is
// what the page opens with; nil if no store was named.
func probeOverview(ctx context.Context, kept string, client *apiclient.Client) *overviewProbe {
	if kept == "" {
		return nil
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &overviewProbe{cancel: cancel, done: make(chan error, 1)}
	go func() { p.done <- p.ask(ctx, client) }()
	return p
}

func (p *overviewProbe) ask(ctx context.Context, client *apiclient.Client) error {
	known, err := apiclient.Ask(ctx, client, query.ClustersRequest{})
	if err != nil {
		return err
	}
	i := slices.IndexFunc(known.Clusters, func(c query.Cluster) bool { return c.Name == benchCluster })
	if i < 0 {
		return fmt.Errorf("--overview: the store has no cluster %q: keep one with `retrial bench storage --dir`", benchCluster)
	}
	c := known.Clusters[i]
	p.events = c.Events
	where := query.OverviewRequest{Cluster: c.Name, From: c.First, To: c.Last.Add(time.Minute)}
	for {
		began := time.Now()
		_, err := apiclient.Ask(ctx, client, where)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		p.took = append(p.took, float64(time.Since(began).Microseconds())/1e3)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(overviewPause):
		}
	}
}

// stop ends the asking and returns what it took.
func (p *overviewProbe) stop() (*overviewTimes, error) {
	if p == nil {
		return nil, nil
	}
	p.cancel()
	if err := <-p.done; err != nil {
		return nil, err
	}
	if len(p.took) == 0 {
		return nil, errors.New("--overview: no query was answered while events arrived: post more")
	}
	slices.Sort(p.took)
	at := func(percent int) float64 { return p.took[min(len(p.took)*percent/100, len(p.took)-1)] }
	return &overviewTimes{Events: p.events, Asked: len(p.took), P50: at(50), P95: at(95), Worst: at(100)}, nil
}
