package state

import (
	"time"

	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// Signer returns the signer that a certificate signing request named at a moment. It never
// changes while the request is there. Known is Unknown too when the request is there and its
// content is not recorded.
func (s *State) Signer(name string, at time.Time) (signer string, known Known) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st, known := s.lookup(kept.Key{Resource: kept.ResSigning, Name: name}, instant.Of(at))
	if known != Present {
		return "", known
	}
	if f := st.content.Signing(); f != nil && f.Signer != "" {
		return f.Signer, Present
	}
	return "", Unknown
}
