package state

import (
	"cmp"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/replay/state/kept"

	"github.com/retrial-io/retrial/replay/state/instant"
)

// podStep is one change of what is known of a pod's name, as step is for other objects.
type podStep struct {
	span
	phase    phase
	pod      *pod     // nil when its uid is not known, and when it is absent
	spec     *podSpec // nil when not known
	created  int64    // by when its pod was there; meaningless without one
	bound    int64    // since when to a node; noTime when it is not
	node     string   // "" with bound: which one is not known
	deletion int64    // deletionTimestamp; noTime when there is none
	// open says that the deletion may have been requested, or be earlier: by a write without a recorded outcome.
	open bool
	// loose says that an unknown pod had no node, if it existed.
	loose bool
}

// absent returns the step of a name that nobody has.
func absent(at span) podStep {
	return podStep{span: at, phase: phaseAbsent, bound: instant.None, deletion: instant.None}
}

// equal reports whether two steps say the same.
func (s *podStep) equal(t *podStep) bool {
	return s.span == t.span && s.phase == t.phase && s.pod == t.pod && comparePodSpecs(s.spec, t.spec) == 0 &&
		s.created == t.created && s.bound == t.bound && s.node == t.node && s.deletion == t.deletion && s.open == t.open &&
		s.loose == t.loose
}

// same reports whether two steps say the same, or both that there is no pod.
func (s *podStep) same(t *podStep) bool {
	return s.phase == phaseAbsent && t.phase == phaseAbsent || s.equal(t)
}

// podSteps appends the steps of a name. It is a function of the set of observations alone.
func (s *State) podSteps(steps []podStep, n podName) []podStep {
	first := s.pods.names[n]
	blinds := s.pods.blindsOf(n)
	if first != nil && first.older == nil && len(blinds) == 0 {
		l := s.life(first, nil)
		return tightenPods(l.steps(steps))
	}
	lives := s.lives(first, blinds)
	for i := range lives {
		l := &lives[i]
		if !l.bare() {
			steps = l.steps(steps)
			continue
		}
		since := instant.None
		if i > 0 {
			if end, ended := lives[i-1].end(); ended {
				since = min(end.na, l.gone.na)
			}
		}
		if l.made.nb != instant.None { // the write that made it was seen, too
			since = max(since, l.made.na)
		}
		steps = l.onlyEnd(steps, since)
	}
	if len(blinds) > 0 {
		steps = append(steps, s.podStrangers(n, lives, blinds)...)
	}
	slices.SortStableFunc(steps, func(a, b podStep) int { return cmp.Compare(a.na, b.na) })
	return tightenPods(steps)
}

// lives returns the pods of a name that are known by uid, oldest first.
func (s *State) lives(first *pod, blinds []podBlind) []podLife {
	var lives []podLife
	for p := first; p != nil; p = p.older {
		lives = append(lives, s.life(p, blinds))
	}
	slices.SortFunc(lives, func(a, b podLife) int {
		return cmp.Or(cmp.Compare(a.made.na, b.made.na), cmp.Compare(a.made.nb, b.made.nb), strings.Compare(a.uid, b.uid))
	})
	for i := 1; i < len(lives); i++ {
		lives[i-1].before(&lives[i])
	}
	return lives
}

// tightenPods narrows the bounds of the steps to their order, which is that of their na. Between a pod's creation, its binding, which a pod
// in deletion does not get, and its end, changes may have come in any order.
func tightenPods(steps []podStep) []podStep {
	least, nb := instant.None, instant.None // of the step that came before the changes, and of all
	for i := range steps {
		s := &steps[i]
		if i == 0 || s.pod == nil || s.pod != steps[i-1].pod || s.bound != steps[i-1].bound || s.phase != phasePresent {
			least = max(nb, s.nb)
		}
		s.nb = min(max(least, s.nb), s.na)
		nb = max(nb, s.nb)
	}
	return steps
}

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
	st := absent(noSpan)
	if at < s.horizon {
		st.phase = phaseUnknown
		return st.version(k), Unknown
	}
	steps := s.podSteps(nil, podName{k.Namespace, k.Name})
	if i := stepAt(steps, at); i > 0 {
		st = steps[i-1]
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
