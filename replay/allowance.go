package replay

import (
	"sync/atomic"

	"github.com/retrial-io/retrial/rbacindex"
)

const (
	// eventSteps is the work that RBAC may take for one event, at all the moments it is judged by
	// and with all checks behind it: not more than some 50 ms. Ordinary events take hardly any.
	eventSteps = 3 << 18
	// leastSteps is what an event may take whatever others took: ordinary ones take less.
	leastSteps = 512
)

// Allowance is work that events share: those of one cluster that others wait for. What one of
// them may take is what is left, so that a cluster whose policy makes every event dear delays
// others by the allowance and no more. It is safe for concurrent use.
type Allowance struct{ left atomic.Int64 }

// NewAllowance returns an allowance of so many steps, of less than 50 ns each.
func NewAllowance(steps int64) *Allowance {
	a := &Allowance{}
	a.left.Store(steps)
	return a
}

// event returns the steps of one event; a may be nil.
func (a *Allowance) event() rbacindex.Steps {
	n := int64(eventSteps)
	if a != nil {
		n = max(leastSteps, min(n, a.left.Load()))
	}
	return *rbacindex.NewSteps(int(n))
}

// spend takes off what an event took.
func (a *Allowance) spend(given, left int) {
	if a != nil && left < given {
		a.left.Add(int64(left - given))
	}
}
