package state

import "time"

// Doubt says in words why it is not certain what an object was between two moments: it was
// unknown, or its deletion had been asked for and it was there still; "" where it is certain. It
// asks more than Version: what is certain of an object by what was recorded may still rest on a
// deletion nobody saw the end of.
func (s *State) Doubt(resource, namespace, name string, from, to time.Time) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	obj := s.objects[resourceOf(resource)][objectKey{resourceOf(resource), namespace, name}]
	if obj == nil {
		return ""
	}
	steps, _ := inForce(obj.line, nanos(from), nanos(to))
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

// doubtPods bounds the pods that PodsDoubt looks at.
const doubtPods = 4096

// PodsDoubt names a pod of a node whose end or whose binding is not certain between two moments,
// and says why; namespace "" looks through all. It is "" where there is none.
func (s *State) PodsDoubt(node, namespace string, from, to time.Time) string {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var room [6]podStep
	looked, found, why := 0, podName{}, ""
	for n := range s.pods.names {
		if namespace != "" && n.namespace != namespace {
			continue
		}
		if looked++; looked > doubtPods {
			return "the pods of node " + node + ": too many to look through"
		}
		text := s.podDoubtful(s.podSteps(room[:0], n), node, nanos(from), nanos(to))
		if text != "" && (why == "" || n.namespace < found.namespace || n.namespace == found.namespace && n.name < found.name) {
			found, why = n, text
		}
	}
	if why == "" {
		return ""
	}
	return "pod " + found.namespace + "/" + found.name + " of node " + node + ": " + why
}

// podDoubtful says why one of the steps of a pod's name in force in a span leaves open whether
// the pod was on a node.
func (s *State) podDoubtful(steps []podStep, node string, from, to int64) string {
	for i := range steps {
		st := &steps[i]
		if st.nb > to || i+1 < len(steps) && steps[i+1].na <= from || st.bound == noTime || st.node != "" && st.node != node {
			continue
		}
		switch {
		case st.phase == phaseUnknown:
			return "it is not known whether it was there"
		case st.phase == phasePresent && (st.open || st.deletion != noTime):
			return "it was being deleted"
		}
	}
	return ""
}
