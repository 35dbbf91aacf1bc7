package state

// version describes a step.
func (s *podStep) version(k objectKey) Version {
	v := Version{
		Resource: Pods, Namespace: k.namespace, Name: k.name, Deleted: s.phase == phaseAbsent, Unknown: s.phase == phaseUnknown,
		NotBefore: timeOf(s.nb), NotAfter: timeOf(s.na),
	}
	if s.pod != nil {
		v.UID = s.pod.uid
	}
	return v
}

// podVersions returns the steps of a name as versions.
func (s *State) podVersions(k objectKey) []Version {
	steps := s.podSteps(nil, podName{k.namespace, k.name})
	out := make([]Version, len(steps))
	for i := range steps {
		out[i] = steps[i].version(k)
	}
	return out
}

// podVersion returns the step in force at a moment as a version.
func (s *State) podVersion(k objectKey, at int64) (Version, Known) {
	st := absent(span{noTime, noTime})
	if at < s.horizon {
		st.phase = phaseUnknown
		return st.version(k), Unknown
	}
	for _, step := range s.podSteps(nil, podName{k.namespace, k.name}) {
		if step.na <= at {
			st = step
		}
	}
	switch {
	case st.phase == phasePresent:
		return st.version(k), Present
	case st.phase == phaseUnknown || s.unseen(k, at, at) || s.maybePod(k.namespace, at):
		st.phase = phaseUnknown
		return st.version(k), Unknown
	}
	return st.version(k), Absent
}
