package state

import "time"

// Signer returns the signer that a certificate signing request named at a moment. It never
// changes while the request is there. Known is Unknown too when the request is there and its
// content is not recorded.
func (s *State) Signer(name string, at time.Time) (signer string, known Known) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	st, known := s.lookup(objectKey{res: resSigning, name: name}, nanos(at))
	if known != Present {
		return "", known
	}
	if f := st.content.signing(); f != nil && f.Signer != "" {
		return f.Signer, Present
	}
	return "", Unknown
}
