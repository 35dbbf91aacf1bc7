package runner

import (
	"sync"

	"github.com/retrial-io/retrial/replay"
)

// clusterSteps is the work that the events of one cluster may take in one block, or in one pass
// of corrections: less than a second. Blocks hold events of several clusters, and whoever waits
// for the block waits for all of them.
const clusterSteps = 1 << 24

// allowances are what the events of each cluster may take together. The zero value is ready.
type allowances struct {
	mu       sync.Mutex
	clusters map[string]*replay.Allowance
}

// of returns the allowance of a cluster.
func (a *allowances) of(cluster string) *replay.Allowance {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.clusters == nil {
		a.clusters = map[string]*replay.Allowance{}
	}
	one := a.clusters[cluster]
	if one == nil {
		one = replay.NewAllowance(clusterSteps)
		a.clusters[cluster] = one
	}
	return one
}
