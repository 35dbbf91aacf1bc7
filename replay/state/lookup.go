package state

import (
	"fmt"
	"sort"
	"time"

	"github.com/retrial-io/retrial/replay/state/content"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
)

// Known is a three-valued answer to whether an object was there.
type Known = graph.Known

// Answers.
const (
	Unknown = graph.Unknown
	Absent  = graph.Absent
	Present = graph.Present
)

// NamespaceAnswer says what a namespace was during a window.
type NamespaceAnswer uint8

// Answers. A namespace is terminating from its deletion until it is finalized.
const (
	NamespaceUnknown NamespaceAnswer = iota
	NamespaceAbsent
	NamespaceActive
	NamespaceTerminating
	NamespaceChanging // more than one of the above within the window, all of them known
)

// String returns the answer in one lower-case word.
func (a NamespaceAnswer) String() string {
	switch a {
	case NamespaceAbsent:
		return "absent"
	case NamespaceActive:
		return "active"
	case NamespaceTerminating:
		return "terminating"
	case NamespaceChanging:
		return "changing"
	}
	return "unknown"
}

// inForce returns, in order, the steps that may have been in force between two moments; before says that there may have been none yet at
// the beginning.
func inForce(line []step, from, to int64) (steps []step, before bool) {
	i := sort.Search(len(line), func(i int) bool { return line[i].na > from })
	j := i + sort.Search(len(line)-i, func(k int) bool { return line[i+k].nb > to })
	if i == 0 {
		return line[:j], true
	}
	return line[i-1 : j], false
}

// unseen reports whether an object of that name, of which the State does not know, may have existed in the window.
func (s *State) unseen(k kept.Key, from, to int64) bool {
	if from < s.horizonOf(k.Resource) || s.mayStandIn(k, from, to) {
		return true
	}
	for _, scope := range []kept.Key{{Resource: k.Resource}, {Resource: k.Resource, Namespace: k.Namespace}} {
		obj := s.objects[scope.Resource][scope]
		if obj == nil {
			continue
		}
		steps, _ := inForce(obj.line, from, to)
		for i := range steps {
			if steps[i].phase == phaseUnknown {
				return true
			}
		}
	}
	return false
}

// Namespace returns what a namespace was between from and to.
func (s *State) Namespace(name string, from, to time.Time) NamespaceAnswer {
	s.mu.RLock()
	defer s.mu.RUnlock()
	steps, absent, ok := s.during(kept.Key{Resource: kept.ResNamespace, Name: name}, instant.Of(from), instant.Of(to))
	if !ok {
		return NamespaceUnknown
	}
	var seen [NamespaceChanging]bool
	seen[NamespaceAbsent] = absent
	for i := range steps {
		switch st := &steps[i]; {
		case st.phase == phaseAbsent:
		case st.content.Deleting:
			seen[NamespaceTerminating] = true
		default:
			seen[NamespaceActive] = true
		}
	}
	answer := NamespaceUnknown
	for a, ok := range seen {
		if !ok {
			continue
		}
		if answer != NamespaceUnknown {
			return NamespaceChanging
		}
		answer = NamespaceAnswer(a)
	}
	return answer
}

// ServiceAccountIn returns whether a service account existed between from and to; changed says that it did for a part. One that is being
// deleted exists.
func (s *State) ServiceAccountIn(namespace, name string, from, to time.Time) (known Known, changed bool) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	steps, absent, ok := s.during(kept.Key{Resource: kept.ResServiceAccount, Namespace: namespace, Name: name}, instant.Of(from),
		instant.Of(to))
	if !ok {
		return Unknown, false
	}
	there := false
	for i := range steps {
		there = there || steps[i].phase == phasePresent
	}
	switch {
	case !there:
		return Absent, false
	case absent:
		return Present, true
	}
	return Present, false
}

// during returns the steps of an object that may have been in force between two moments, and whether it was absent for a part; ok is false
// if it was unknown for a part.
func (s *State) during(k kept.Key, from, to int64) (steps []step, absent, ok bool) {
	if from < s.horizonOf(k.Resource) {
		return nil, false, false
	}
	absent = true
	if obj := s.objects[k.Resource][k]; obj != nil {
		steps, absent = inForce(obj.line, from, to)
	}
	for i := range steps {
		switch steps[i].phase {
		case phaseUnknown:
			return nil, false, false
		case phaseAbsent:
			absent = true
		}
	}
	return steps, absent, !absent || !s.unseen(k, from, to)
}

// ServiceAccount returns the uid of a service account at a moment. The uid may be empty with Present, when the account was written but its
// uid not recorded. A service account that is being deleted is present.
func (s *State) ServiceAccount(namespace, name string, at time.Time) (uid string, known Known) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, known := s.lookup(kept.Key{Resource: kept.ResServiceAccount, Namespace: namespace, Name: name}, instant.Of(at))
	return v.uid, known
}

// Version returns the version of an object in force at a moment: the newest that was certainly effective. For pods, whose versions are not
// kept, it is the last recorded change: the creation, the binding or the deletion. Credentials have none. With Unknown, the version says,
// if possible, what made the object unknown.
func (s *State) Version(resource, namespace, name string, at time.Time) (Version, Known) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k := kept.Key{Resource: kept.ResourceOf(resource), Namespace: namespace, Name: name}
	if k.Resource == kept.ResNone {
		return Version{Resource: resource, Namespace: namespace, Name: name, Unknown: true}, Unknown
	}
	if k.Resource == kept.ResPod {
		return s.podVersion(k, instant.Of(at))
	}
	st, known := s.lookup(k, instant.Of(at))
	return st.version(k), known
}

// lookup returns the step in force at a moment.
func (s *State) lookup(k kept.Key, at int64) (step, Known) {
	st := step{span: noSpan}
	if at < s.horizonOf(k.Resource) {
		st.phase = phaseUnknown
		return st, Unknown
	}
	if obj := s.objects[k.Resource][k]; obj != nil {
		if i := sort.Search(len(obj.line), func(i int) bool { return obj.line[i].na > at }); i > 0 {
			st = obj.line[i-1]
		}
	}
	switch {
	case st.phase == phasePresent:
		return st, Present
	case st.phase == phaseUnknown:
		return st, Unknown
	case s.unseen(k, at, at):
		st.phase = phaseUnknown
		return st, Unknown
	}
	return st, Absent
}

// History returns every version kept of an object, oldest first.
func (s *State) History(resource, namespace, name string) []Version {
	s.mu.RLock()
	defer s.mu.RUnlock()
	k := kept.Key{Resource: kept.ResourceOf(resource), Namespace: namespace, Name: name}
	if k.Resource == kept.ResPod {
		return s.podVersions(k)
	}
	obj := s.objects[k.Resource][k]
	if obj == nil {
		return nil
	}
	out := make([]Version, len(obj.line))
	for i := range obj.line {
		out[i] = obj.line[i].version(k)
	}
	return out
}

// CheckCluster reports whether observations can be of this State's cluster: an error that wraps ErrOtherCluster when they contradict what
// is known. The uid of the namespace kube-system decides; without it, objects that have the same name and were created in the same second
// but have other uids, when they outnumber those that agree.
func (s *State) CheckCluster(obs ...observe.Observation) error {
	s.mu.RLock()
	defer s.mu.RUnlock()
	var agree, differ int
	var example string
	for i := range obs {
		o := &obs[i]
		k := kept.Key{Resource: kept.ResourceOf(o.Resource), Namespace: o.Namespace, Name: o.Name}
		obj := s.objects[k.Resource][k]
		if obj == nil || o.UID == "" || o.Name == "" {
			continue
		}
		same, other := obj.identity(o, k.Resource == kept.ResNamespace && k.Name == "kube-system")
		switch {
		case same && k.Resource == kept.ResNamespace && k.Name == "kube-system":
			return nil
		case same:
			agree++
		case other != "" && k.Resource == kept.ResNamespace && k.Name == "kube-system":
			return fmt.Errorf("namespace kube-system has uid %s, known here as %s: %w", o.UID, other, ErrOtherCluster)
		case other != "":
			differ++
			if example == "" {
				example = fmt.Sprintf("%s %s has uid %s, known here as %s", k.Resource, k, o.UID, other)
			}
		}
	}
	if differ > agree {
		return fmt.Errorf("%s (%d objects contradict, %d agree): %w", example, differ, agree, ErrOtherCluster)
	}
	return nil
}

// identity returns whether an observation's uid is one the name has had, and if not, the uid that contradicts it: any other for a name that
// is never reused, else one created in the same second.
func (o *object) identity(obs *observe.Observation, permanent bool) (same bool, other string) {
	for i := range o.versions {
		if o.versions[i].uid == obs.UID {
			return true, ""
		}
	}
	created := instant.None
	if len(obs.Object) > 0 {
		var in content.Interner
		if c, err := in.Parse(o.key.Resource, o.key, obs.Object); err == nil {
			created = c.Created
		}
	}
	for i := range o.versions {
		v := &o.versions[i]
		if permanent || created != instant.None && v.content != nil && v.content.Created == created {
			other = v.uid
		}
	}
	return false, other
}
