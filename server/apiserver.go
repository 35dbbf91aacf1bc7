package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/safe"
	apiserver "github.com/retrial-io/retrial/replay/config"
)

// rereadEvery is how often folders with apiservers' configurations are checked for changes.
const rereadEvery = 15 * time.Second

// apiservers holds the configurations of the clusters' apiservers, as engines ask for them. A nil one knows no cluster.
//
//	DIR of a cluster ─(start, then whenever files change)▶ replay/config ─▶ History ─▶ engine
//	                                                            └ an error: the earlier one stays
type apiservers struct {
	clusters map[string]*apiserverFolder // fixed once made
	log      *zap.Logger
	reads    *prometheus.CounterVec
	refused  prometheus.Gauge
	missing  prometheus.Gauge
	changed  chan struct{} // holds one when a configuration was taken since it was last asked
}

// apiserverFolder is the folder of one cluster.
type apiserverFolder struct {
	cluster, dir string
	history      atomic.Pointer[apiserver.History]
	// The rest belongs to the one goroutine that rereads.
	seen    uint64 // what the files looked like when they were read
	reason  string // why they were refused, "" when they were not
	missing int
}

// openApiservers reads all folders once. What cannot be read is unknown until it can: verdicts say so, events are accepted all the same.
func openApiservers(entries []string, log *zap.Logger, reg prometheus.Registerer) (*apiservers, error) {
	auto := promauto.With(reg)
	a := &apiservers{
		clusters: map[string]*apiserverFolder{}, log: log, changed: make(chan struct{}, 1),
		reads: auto.NewCounterVec(prometheus.CounterOpts{
			Name: "retrial_apiserver_config_reads_total",
			Help: "Folders with apiservers' configurations read, by result: taken, or refused because they could not be read or " +
				"contradict themselves.",
		}, []string{"result"}),
		refused: auto.NewGauge(prometheus.GaugeOpts{
			Name: "retrial_apiserver_config_refused",
			Help: "Clusters whose configuration was refused when it was last read: an earlier one is in use, or none.",
		}),
		missing: auto.NewGauge(prometheus.GaugeOpts{
			Name: "retrial_apiserver_config_missing_parts",
			Help: "Files and flags that are missing from the apiservers' configurations; retrial config check lists them.",
		}),
	}
	for _, result := range []string{"taken", "refused"} {
		a.reads.WithLabelValues(result)
	}
	for _, entry := range entries {
		cluster, dir, err := config.ApiserverFolder(entry)
		if err != nil {
			return nil, fmt.Errorf("apiserver-config: %w", err)
		}
		a.clusters[cluster] = &apiserverFolder{cluster: cluster, dir: dir}
	}
	a.reread()
	return a, nil
}

// history returns what is known of an apiserver's configuration, nil if none was given. Servers without one get the kube-apiserver's.
func (a *apiservers) history(cluster, server string) *apiserver.History {
	if a == nil {
		return nil
	}
	if f, ok := a.clusters[cluster]; ok {
		return f.history.Load().Of(server)
	}
	return nil
}

func (a *apiservers) run(ctx context.Context) {
	every(ctx, rereadEvery, nil, func(n int) {
		if n > 1 { // they were read when they were opened
			a.reread()
		}
	})
}

// reread reads the folders that changed since they were read.
func (a *apiservers) reread() {
	refused, missing := 0, 0
	for _, f := range a.clusters {
		// What was refused is read again anyway: access may have been granted meanwhile.
		if now := fingerprint(f.dir); f.history.Load() == nil || f.reason != "" || now != f.seen {
			f.seen = now
			f.read(a)
		}
		missing += f.missing
		if f.reason != "" {
			refused++
		}
	}
	a.refused.Set(float64(refused))
	a.missing.Set(float64(missing))
}

func (f *apiserverFolder) read(a *apiservers) {
	log := a.log.With(zap.String("cluster", f.cluster), zap.String("folder", config.Absolute(f.dir)))
	h, report, err := apiserver.ReadHistory(os.DirFS(f.dir))
	before := f.reason
	if f.reason = ""; err != nil {
		a.reads.WithLabelValues("refused").Inc()
		reason := safe.Text(err.Error())
		f.reason = reason
		if f.history.Load() != nil {
			if reason != before { // else it was told
				log.Warn("the apiserver's changed configuration is refused, the earlier one stays in use", zap.String("reason", reason))
			}
			return
		}
		log.Error("the apiserver's configuration is refused: what depends on it is judged as unknown", zap.String("reason", reason))
		unknown := &apiserver.History{}
		unknown.Add(time.Time{}, apiserver.Unknown("the apiserver's configuration (it could not be read: "+reason+")"))
		f.history.Store(unknown)
		return
	}
	a.reads.WithLabelValues("taken").Inc()
	f.missing = 0
	var digests []string
	for _, v := range report.Versions {
		f.missing += len(v.Missing)
		digests = append(digests, v.Digest)
	}
	f.history.Store(h)
	select {
	case a.changed <- struct{}{}:
	default: // it is told already
	}
	log.Info("read the apiserver's configuration", zap.Strings("digests", digests), zap.Int("missing_parts", f.missing))
	if f.missing > 0 {
		log.Warn("parts of the apiserver's configuration are missing; retrial config check " + config.Absolute(f.dir) + " lists them")
	}
}

// fingerprint returns a hash of the names, sizes and times of the files below a folder.
func fingerprint(dir string) uint64 {
	h := xxhash.New()
	fsys := os.DirFS(dir)
	err := fs.WalkDir(fsys, ".", func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := fs.Stat(fsys, p) // of what a link leads to
		if err != nil {
			fmt.Fprintf(h, "%s\x00%v\x00", p, err)
			return nil
		}
		if info.IsDir() {
			fmt.Fprintf(h, "%s/\x00", p)
			return nil
		}
		fmt.Fprintf(h, "%s\x00%d\x00%d\x00", p, info.Size(), info.ModTime().UnixNano())
		return nil
	})
	if err != nil {
		fmt.Fprintf(h, "%v", err)
	}
	return h.Sum64()
}

// readApiserver reads a folder; its errors name it.
func readApiserver(dir string) (*apiserver.History, *apiserver.Report, error) {
	if _, err := os.ReadDir(dir); err != nil {
		return nil, nil, fmt.Errorf("%s: %w", safe.Text(dir), errors.Unwrap(err))
	}
	h, report, err := apiserver.ReadHistory(os.DirFS(dir))
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", safe.Text(dir), err)
	}
	return h, report, nil
}

// checkFirstStart returns an error for folders that cannot be read while nothing is at stake: as long as nothing is stored in the data
// directory. Later starts accept events all the same, see openApiservers.
func checkFirstStart(cfg config.Config) error {
	if _, err := os.Stat(cfg.KeyIDFile()); !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var errs []error
	for _, entry := range cfg.Replay.ApiserverConfig {
		_, dir, err := config.ApiserverFolder(entry)
		if err == nil {
			_, _, err = readApiserver(dir)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("apiserver-config: %w", err))
		}
	}
	return errors.Join(errs...)
}
