package state

import (
	"slices"
	"strings"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// generatedBytes is how many characters the apiserver appends to a name that it generates (names.SimpleNameGenerator).
const generatedBytes = 5

// standsFor returns the beginning of the names of stand-ins that may be an object of a name; "" for none.
func standsFor(name string) string {
	if len(name) < generatedBytes {
		return ""
	}
	return name[:len(name)-generatedBytes] + "/"
}

// beginningOf returns the key under which a stand-in is found; ok is false for any other object.
func beginningOf(k kept.Key) (beginning kept.Key, ok bool) {
	i := strings.IndexByte(k.Name, '/')
	if k.Resource.RBACKind() == 0 || i < 0 {
		return kept.Key{}, false
	}
	return kept.Key{Resource: k.Resource, Namespace: k.Namespace, Name: k.Name[:i+1]}, true
}

// noteStandIn remembers a stand-in by how its name begins.
func (s *State) noteStandIn(k kept.Key) {
	beginning, ok := beginningOf(k)
	if !ok {
		return
	}
	if s.standIns == nil {
		s.standIns = map[kept.Key][]string{}
	}
	s.standIns[beginning] = append(s.standIns[beginning], k.Name)
}

// dropStandIn forgets a stand-in that is no longer held: clients choose how many there are.
func (s *State) dropStandIn(k kept.Key) {
	beginning, ok := beginningOf(k)
	if !ok {
		return
	}
	left := slices.DeleteFunc(s.standIns[beginning], func(name string) bool { return name == k.Name })
	if s.standIns[beginning] = left; len(left) == 0 {
		delete(s.standIns, beginning)
	}
}

// mayStandIn reports whether an object without a known name may have had this one in a window.
func (s *State) mayStandIn(k kept.Key, from, to int64) bool {
	if len(s.standIns) == 0 {
		return false
	}
	for _, name := range s.standIns[kept.Key{Resource: k.Resource, Namespace: k.Namespace, Name: standsFor(k.Name)}] {
		steps, _ := inForce(s.objects[k.Resource][kept.Key{Resource: k.Resource, Namespace: k.Namespace, Name: name}].line, from, to)
		if slices.ContainsFunc(steps, func(st step) bool { return st.phase != phaseAbsent }) {
			return true
		}
	}
	return false
}

// mayStandIn reports whether an object in doubt without a known name may be this one.
func (v *View) mayStandIn(k rbacindex.Key) bool {
	beginning := standsFor(k.Name)
	if len(v.Doubted) == 0 || beginning == "" {
		return false
	}
	i, _ := slices.BinarySearchFunc(v.Doubted, rbacindex.Key{Kind: k.Kind, Namespace: k.Namespace, Name: beginning}, compareKeys)
	return i < len(v.Doubted) && v.Doubted[i].Kind == k.Kind && v.Doubted[i].Namespace == k.Namespace &&
		strings.HasPrefix(v.Doubted[i].Name, beginning)
}
