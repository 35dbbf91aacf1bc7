package main

import (
	"context"
	"testing"
	"time"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/storage/queries"
)

// fakeArrivals is a store of which nobody asks what arrived.
type fakeArrivals struct{}

func (fakeArrivals) AuditSamples(context.Context, string, time.Time, time.Time) ([]queries.AuditSample, error) {
	return nil, nil
}
func (fakeArrivals) Received(context.Context, string, []time.Time) ([]queries.Received, error) {
	return nil, nil
}
func (fakeArrivals) FromLog(context.Context, string, []time.Time) ([]queries.FromLog, error) {
	return nil, nil
}
func (fakeArrivals) Senders(context.Context, string, time.Time, time.Time) ([]queries.Sender, error) {
	return nil, nil
}
func (fakeArrivals) Pauses(context.Context, string, time.Time, time.Time, bool, int) ([]queries.Pause, error) {
	return nil, nil
}
func (fakeArrivals) ServerVolumes(context.Context, string, time.Time, time.Time) ([]queries.ServerVolume, error) {
	return nil, nil
}

func (fakeArrivals) LetterCounts(context.Context, string, time.Time, time.Time) ([]queries.LetterCount, error) {
	return nil, nil
}

func (fakeArrivals) Unpaired(context.Context, string, time.Time, time.Time, int) ([]queries.Unpaired, error) {
	return nil, nil
}
func (fakeArrivals) Volume(context.Context, string, time.Time, time.Time, time.Duration) ([]queries.Bucket, error) {
	return nil, nil
}

// TestScrapeTargets: what is given for a cluster is for all its apiservers, what is given for
// one of them for that one.
func TestScrapeTargets(t *testing.T) {
	targets, err := doctor.ScrapeTargets(config.Completeness{
		Scrape:     []string{"prod/a=https://10.0.0.1:6443", "prod/b=https://10.0.0.2:6443", "dev=https://10.1.0.1:6443/metrics"},
		TokenFiles: []string{"prod/b=/token-b", "prod=/token", "dev=/token-dev"},
		CAFiles:    []string{"prod=/ca"},
		CertFiles:  []string{"dev=/crt"}, KeyFiles: []string{"dev=/key"},
	})
	if err != nil || len(targets) != 3 {
		t.Fatalf("%+v %v", targets, err)
	}
	a, b, dev := targets[0], targets[1], targets[2]
	if a.APIServer != "a" || a.TokenFile != "/token" || b.TokenFile != "/token-b" || a.CAFile != "/ca" || b.CAFile != "/ca" ||
		a.CertFile != "" {
		t.Errorf("%+v", targets)
	}
	if dev.APIServer != "" || dev.TokenFile != "/token-dev" || dev.CAFile != "" || dev.CertFile != "/crt" || dev.KeyFile != "/key" {
		t.Errorf("%+v", dev)
	}
	for name, c := range map[string]config.Completeness{
		"plain http elsewhere": {Scrape: []string{"prod=http://10.0.0.1"}},
		"no key":               {Scrape: []string{"prod=https://10.0.0.1"}, CertFiles: []string{"prod=/c"}},
		"no form":              {Scrape: []string{"https://10.0.0.1"}},
	} {
		if _, err := doctor.ScrapeTargets(c); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
