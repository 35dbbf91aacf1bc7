package state

import (
	"time"

	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// Doubt says in words why it is not certain what an object was between two moments: it was
// unknown, or its deletion had been asked for and it was there still; "" where it is certain. It
// asks more than Version: what is certain of an object by what was recorded may still rest on a
// deletion nobody saw the end of.
func (s *State) Doubt(resource, namespace, name string, from, to time.Time) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	obj := s.objects[kept.ResourceOf(resource)][kept.Key{Resource: kept.ResourceOf(resource), Namespace: namespace, Name: name}]
	if obj == nil {
		return ""
	}
	steps, _ := inForce(obj.line, instant.Of(from), instant.Of(to))
	for i := range steps {
		switch st := &steps[i]; {
		case st.phase == phaseUnknown:
			return obj.reason(st)
		case st.phase == phasePresent && st.isEnding():
			return "it was being deleted by " + when(st.na)
		}
	}
	return ""
}
