package state

import (
	"cmp"
	"strings"
)

// podBlindKind is what a write that names no uid did.
type podBlindKind uint8

const (
	podWritten   podBlindKind = iota // anything: it may be gone
	podThere                         // it was created
	podGone                          // it was deleted
	podBound                         // it was bound to a node
	podEvicted                       // its deletion was asked for
	podChanged                       // what it refers to was changed
	podMissing                       // it was looked for in vain
	podCollected                     // it may have been deleted with others
	podLoosened                      // its finalizers may have been changed
)

// podBlind is a write that names no uid.
type podBlind struct {
	span
	kind  podBlindKind
	uid   string // of an eviction: "" when not told
	node  string
	grace int64 // of an eviction: -1 when not told
	spec  *podSpec
	// told says that an eviction's options are known, holds that they put on a finalizer.
	told, holds bool
	made        bool // it may have made the pod
}

// ends tells whether a pod may have ended by the write.
func (b *podBlind) ends() bool {
	return b.kind == podWritten || b.kind == podGone || b.kind == podEvicted || b.kind == podCollected
}

func comparePodBlinds(a, b podBlind) int {
	for _, d := range [...][2]int64{{a.na, b.na}, {a.nb, b.nb}, {int64(a.kind), int64(b.kind)}, {a.grace, b.grace}} {
		if d[0] != d[1] {
			if d[0] < d[1] {
				return -1
			}
			return 1
		}
	}
	if c := strings.Compare(a.node+"\x00"+a.uid, b.node+"\x00"+b.uid); c != 0 {
		return c
	}
	if c := cmp.Compare(a.marks(), b.marks()); c != 0 {
		return c
	}
	return comparePodSpecs(a.spec, b.spec)
}

// marks tells otherwise equal writes apart.
func (b *podBlind) marks() (n int) {
	for i, is := range [...]bool{b.told, b.holds, b.made} {
		if is {
			n |= 1 << i
		}
	}
	return n
}
