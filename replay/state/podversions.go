package state

import (
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// version describes a step.
func (s *podStep) version(k kept.Key) Version {
	v := Version{
		Resource: kept.Pods, Namespace: k.Namespace, Name: k.Name, Deleted: s.phase == phaseAbsent, Unknown: s.phase == phaseUnknown,
		NotBefore: instant.Time(s.nb), NotAfter: instant.Time(s.na),
	}
	if s.pod != nil {
		v.UID = s.pod.uid
	}
	return v
}

// podVersions returns the steps of a name as versions.
func (s *State) podVersions(k kept.Key) []Version {
	steps := s.podSteps(nil, podName{k.Namespace, k.Name})
	out := make([]Version, len(steps))
	for i := range steps {
		out[i] = steps[i].version(k)
	}
	return out
}

// podVersion returns the step in force at a moment as a version.
func (s *State) podVersion(k kept.Key, at int64) (Version, Known) {
	st := absent(span{instant.None, instant.None})
	if at < s.horizon {
		st.phase = phaseUnknown
		return st.version(k), Unknown
	}
	for _, step := range s.podSteps(nil, podName{k.Namespace, k.Name}) {
		if step.na <= at {
			st = step
		}
	}
	switch {
	case st.phase == phasePresent:
		return st.version(k), Present
	case st.phase == phaseUnknown || s.unseen(k, at, at) || s.maybePod(k.Namespace, at):
		st.phase = phaseUnknown
		return st.version(k), Unknown
	}
	return st.version(k), Absent
}
