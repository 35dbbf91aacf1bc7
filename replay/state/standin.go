package state

import (
	"slices"
	"strings"

	"github.com/retrial-io/retrial/rbacindex"
)

// The apiserver makes a name of what a request asks for (names.SimpleNameGenerator): its first 58 bytes
// and five characters of its own.
const (
	maxGenerated   = 58
	generatedBytes = 5
)

// standsFor returns how the names of stand-ins begin that may be an object of a name; "" for none.
func standsFor(name string) string {
	if len(name) < generatedBytes {
		return ""
	}
	return name[:len(name)-generatedBytes] + "/"
}

// noteStandIn remembers a stand-in by how its name begins.
func (s *State) noteStandIn(k objectKey) {
	i := strings.IndexByte(k.name, '/')
	if k.res.kind() == 0 || i < 0 {
		return
	}
	if s.standIns == nil {
		s.standIns = map[objectKey][]string{}
	}
	beginning := objectKey{k.res, k.namespace, k.name[:i+1]}
	s.standIns[beginning] = append(s.standIns[beginning], k.name)
}

// mayStandIn tells whether, in a window, an object whose name nobody knows may have had this one.
func (s *State) mayStandIn(k objectKey, from, to int64) bool {
	if len(s.standIns) == 0 {
		return false
	}
	for _, name := range s.standIns[objectKey{k.res, k.namespace, standsFor(k.name)}] {
		obj := s.objects[k.res][objectKey{k.res, k.namespace, name}]
		if obj == nil {
			continue // forgotten
		}
		steps, _ := inForce(obj.line, from, to)
		if slices.ContainsFunc(steps, func(st step) bool { return st.phase != phaseAbsent }) {
			return true
		}
	}
	return false
}

// mayStandIn tells whether an object in doubt, whose name nobody knows, may be this one.
func (v *View) mayStandIn(k rbacindex.Key) bool {
	beginning := standsFor(k.Name)
	if len(v.Doubted) == 0 || beginning == "" {
		return false
	}
	i, _ := slices.BinarySearchFunc(v.Doubted, rbacindex.Key{Kind: k.Kind, Namespace: k.Namespace, Name: beginning}, compareKeys)
	return i < len(v.Doubted) && v.Doubted[i].Kind == k.Kind && v.Doubted[i].Namespace == k.Namespace && strings.HasPrefix(v.Doubted[i].Name, beginning)
}
