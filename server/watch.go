package server

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/cespare/xxhash/v2"
	"github.com/oklog/run"

	"github.com/retrial-io/retrial/ingest/identity"
	"github.com/retrial-io/retrial/ingest/watch"
	"github.com/retrial-io/retrial/internal/atomicfile"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// What a watched cluster adds to serve:
//
//	kube-apiserver ◀─list, watch─ watch.Watcher ─observations─▶ stream.Producer ─▶ audit.policy ─▶ runner ─▶ state
//	                                  │    ▲
//	              data/watch/<cluster>/    watchEncoder (the state's own encoding and rules)

func addWatchers(ctx context.Context, sys *system, group *run.Group) error {
	for _, entry := range sys.cfg.Watch.Clusters {
		own, stop := context.WithCancel(ctx)
		cluster, w, err := newWatcher(own, sys, entry)
		if err != nil {
			stop()
			return fmt.Errorf("watch-clusters: %w", err)
		}
		group.Add(func() error {
			// What is stored must be loaded first, or a wrong kubeconfig would go unnoticed.
			if err := sys.runner.WaitDrained(own); err != nil {
				<-own.Done() // the runner's own actor tells why
				return nil
			}
			if len(sys.cfg.Kafka.Brokers) == 0 {
				return w.Run(own)
			}
			// Of several processes one watches. Whoever takes over lists everything anew.
			return sys.stream.Lease(own, "watch-"+cluster, w.Run)
		}, func(error) { stop() })
	}
	return nil
}

func newWatcher(ctx context.Context, sys *system, entry string) (cluster string, w *watch.Watcher, err error) {
	cluster, kubeconfig, err := config.WatchedCluster(entry)
	if err != nil {
		return "", nil, err
	}
	if !identity.ValidName(cluster) { // it becomes a folder's name, too
		return "", nil, fmt.Errorf("invalid cluster name %q", cluster)
	}
	positions := watchPositions(filepath.Join(sys.cfg.DataDir, "watch", cluster))
	if err := os.MkdirAll(string(positions), 0o700); err != nil {
		return "", nil, fmt.Errorf("position folder: %w", err)
	}
	encoder := &watchEncoder{check: func(obs ...observe.Observation) error { return sys.runner.CheckCluster(ctx, cluster, obs...) }}
	w, err = watch.New(watch.Config{Cluster: cluster, Kubeconfig: kubeconfig, Log: sys.log, Registerer: sys.reg},
		sys.producer(), sys.redactor, encoder, positions)
	return cluster, w, err
}

// watchEncoder encodes what a watcher saw as observations of the state.
type watchEncoder struct {
	// check returns an error wrapping state.ErrOtherCluster if observations cannot be of the cluster.
	check func(...observe.Observation) error

	// said has, by uid, a digest of what was last said of pods and nodes, which often change in parts not kept. Losing it costs repetition.
	mu   sync.Mutex
	said map[string]uint64
}

// Object implements watch.Encoder.
func (e *watchEncoder) Object(o watch.Object) ([]byte, error) {
	obs, err := listed(o.Resource, o.JSON)
	if err != nil {
		return nil, err
	}
	if !o.Listed {
		obs.Source = observe.SourceWatch
	}
	obs.NotBefore, obs.NotAfter, obs.Deleted = o.NotBefore, o.NotAfter, o.Deleted
	switch {
	case o.Deleted:
		obs.Object = nil
	case o.Unknown:
		obs.Object, obs.Unknown = nil, true
	}
	if e.again(o, &obs) {
		return nil, nil
	}
	return obs.Append(nil), nil
}

// again reports whether nothing that is kept of an object has changed.
func (e *watchEncoder) again(o watch.Object, obs *observe.Observation) bool {
	if obs.Resource != kept.Pods && obs.Resource != kept.Nodes {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if o.Deleted {
		delete(e.said, obs.UID)
		return false
	}
	digest := xxhash.Sum64(obs.Object)
	if was, ok := e.said[obs.UID]; ok && was == digest && !o.Listed {
		return true
	}
	if e.said == nil {
		e.said = map[string]uint64{}
	}
	e.said[obs.UID] = digest
	return false
}

// listed returns one object of a resource as an observation of a listing.
func listed(resource string, raw []byte) (observe.Observation, error) {
	var out []observe.Observation
	err := observe.ReadObjects(bytes.NewReader(raw), func(o observe.RawObject) error {
		if o.Resource != resource {
			return fmt.Errorf("object is of kind %s, expected %s", o.Kind, resource)
		}
		out = append(out, o.Observation())
		return nil
	})
	if err != nil {
		return observe.Observation{}, err
	}
	if len(out) != 1 || out[0].UID == "" || out[0].ResourceVersion == "" {
		return observe.Observation{}, errors.New("not one object with uid and resourceVersion")
	}
	return out[0], nil
}

// Complete implements watch.Encoder.
func (*watchEncoder) Complete(resource string, began, ended time.Time) []byte {
	s := observe.Snapshot{Began: began, Ended: ended, Kinds: []string{resource}}
	return s.Observations()[0].Append(nil)
}

// Gap implements watch.Encoder.
func (*watchEncoder) Gap(resource string, from, to time.Time) []byte {
	return observe.Observation{
		Source: observe.SourceWatch, Resource: resource, AllOf: true, Unknown: true, NotBefore: from, NotAfter: to,
	}.Append(nil)
}

// Check implements watch.Encoder.
func (e *watchEncoder) Check(resource string, objects [][]byte) error {
	obs := make([]observe.Observation, 0, len(objects))
	for _, raw := range objects {
		o, err := listed(resource, raw)
		if err != nil {
			return err
		}
		obs = append(obs, o)
	}
	err := e.check(obs...)
	if errors.Is(err, state.ErrOtherCluster) {
		return fmt.Errorf("%w: %w", watch.ErrOtherCluster, err)
	}
	return err
}

// watchPositions keeps the positions of one cluster's watch in a folder, one file a resource.
type watchPositions string

func (p watchPositions) file(resource string) string {
	return filepath.Join(string(p), resource+".json")
}

// Load implements watch.Positions.
func (p watchPositions) Load(resource string) (watch.Position, bool, error) {
	var at watch.Position
	b, err := os.ReadFile(p.file(resource))
	if errors.Is(err, os.ErrNotExist) {
		return at, false, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &at)
	}
	if err == nil && (at.ResourceVersion == "" || at.Good.IsZero()) {
		err = errors.New("it is not complete")
	}
	if err != nil {
		return watch.Position{}, false, fmt.Errorf("position file %s: %w", p.file(resource), err)
	}
	return at, true, nil
}

// Save implements watch.Positions. The old file stays until the new one is on disk.
func (p watchPositions) Save(resource string, at watch.Position) error {
	b, err := json.Marshal(at)
	if err != nil {
		return fmt.Errorf("position file: %w", err)
	}
	if err := atomicfile.Write(p.file(resource), b, 0o600); err != nil {
		return fmt.Errorf("position file: %w", err)
	}
	return nil
}
