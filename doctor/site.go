package doctor

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/ingest/webhook"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/phrase"
	apiserver "github.com/retrial-io/retrial/replay/config"
)

// Site is the installation an API belongs to: everything about it except the store.
type Site struct {
	Config  config.Config
	Version string // of this program
	Serving bool   // a server is running; otherwise the store was opened for one question
	// Authority is nil if nothing was ever registered here.
	Authority *identity.Authority
	Contacts  *webhook.Contacts
	Hook      func() string // address of the webhook's listener; nil if there is none
	Metrics   prometheus.Gatherer
	// Apiserver returns a cluster's apiserver configuration over time; nil for none.
	Apiserver func(cluster, server string) *apiserver.History
	// Otherwise returns what was judged by another configuration than is known now; nil if it is not
	// tracked.
	Otherwise func(ctx context.Context, cluster string) ([]JudgedOtherwise, error)
	Spooled   func(context.Context) error // waits until nothing is spooled; nil: nothing is here
	Now       func() time.Time
}

func (s Site) time() time.Time {
	if s.Now == nil {
		return time.Time{}
	}
	return s.Now()
}

// Entry returns the registry's entry of a cluster; a cluster that only the token file names has
// none but counts as registered.
func (s Site) entry(cluster string) (identity.Cluster, error) {
	if s.Authority == nil {
		return identity.Cluster{}, identity.ErrUnknown
	}
	entry, err := s.Authority.Registry().Get(cluster)
	if errors.Is(err, identity.ErrUnknown) && s.Authority.Registry().Known(cluster) {
		return entry, nil
	}
	return entry, err
}

// DataDir returns the flag that names the data directory, when it is not the default.
func (s Site) DataDir() string {
	if s.Config.DataDir == "" || s.Config.DataDir == config.Default().DataDir {
		return ""
	}
	return " --data-dir " + phrase.ShellWord(s.Config.DataDir)
}

// ServeCommand returns how the receiver is started so that apiservers elsewhere reach it.
func (s Site) ServeCommand() string {
	_, port, err := net.SplitHostPort(s.Config.Webhook.Listen)
	if err != nil || port == "0" {
		port = "9443"
	}
	return "retrial serve --webhook-listen 0.0.0.0:" + port + " --webhook-advertise HOST" + s.DataDir()
}

// Watched sums a metric of a watched cluster by one of its labels.
func (s Site) watched(name, cluster, by string) map[string]float64 {
	out := map[string]float64{}
	for _, m := range s.series(name) {
		labels := map[string]string{}
		for _, l := range m.GetLabel() {
			labels[l.GetName()] = l.GetValue()
		}
		if labels["cluster"] == cluster {
			out[labels[by]] += m.GetGauge().GetValue() + m.GetCounter().GetValue()
		}
	}
	return out
}

// gauge returns the value of a metric without labels; false if there is none.
func (s Site) gauge(name string) (float64, bool) {
	for _, m := range s.series(name) {
		return m.GetGauge().GetValue(), true
	}
	return 0, false
}

func (s Site) series(name string) []*dto.Metric {
	if s.Metrics == nil {
		return nil
	}
	families, _ := s.Metrics.Gather() // partial results come with the error
	for _, f := range families {
		if f.GetName() == name {
			return f.GetMetric()
		}
	}
	return nil
}

// JudgedOtherwise are the requests of one cluster.
type JudgedOtherwise struct {
	Cluster  string
	Since    time.Time // the beginning of the hour of the first
	Requests int64
	Command  string // judges them again
}

// listensLocally: only this machine reaches the webhook's listener.
func (s Site) listensLocally() bool {
	if s.Hook != nil && s.Hook() != "" {
		return config.Loopback(s.Hook())
	}
	return config.Loopback(s.Config.Webhook.Listen)
}

// Metrics of the server that checks read.
const (
	MetricCountersRead   = "retrial_completeness_read_timestamp_seconds"
	MetricCountersFailed = "retrial_completeness_read_failures_total"

	MetricDetectLag      = "retrial_detect_lag_seconds"
	MetricDetectLeader   = "retrial_detect_leader"
	MetricDetectParts    = "retrial_detect_parts"
	MetricDetectPartsLed = "retrial_detect_parts_led"
)
