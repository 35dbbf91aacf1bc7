package state

import (
	"sort"
	"time"

	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// Account names a service account.
type Account struct{ Namespace, Name string }

// ServiceAccounts returns the service accounts that were there at a moment, by namespace and
// name. complete is false when there may have been others nobody told the State about, or
// of which it is not known whether they were there.
func (s *State) ServiceAccounts(at time.Time) (there []Account, complete bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	when := instant.Of(at)
	complete = !s.unseen(kept.Key{Resource: kept.ResServiceAccount}, when, when)
	for k := range s.objects[kept.ResServiceAccount] {
		if k.Name == "" {
			continue
		}
		switch _, known := s.lookup(k, when); known {
		case Present:
			there = append(there, Account{k.Namespace, k.Name})
		case Unknown:
			complete = false
		}
	}
	sort.Slice(there, func(i, j int) bool {
		a, b := there[i], there[j]
		return a.Namespace < b.Namespace || a.Namespace == b.Namespace && a.Name < b.Name
	})
	return there, complete
}
