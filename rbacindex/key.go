package rbacindex

import (
	"encoding/binary"
	"math"
	"unsafe"
)

// key is a user name and group names, copied into one piece of memory: the caller's strings may be
// windows on something large or reused, and with thousands of subjects in alternation every
// separate place costs a cache miss.
//
// The piece is the user name, the lengths of the group names in four bytes each, the group
// names one after the other, and what else the entry wants near (newKey's also).
type key struct {
	text         string
	user, groups uint32 // bytes of the user name, number of groups
}

const (
	lengthBytes = 4 // what the length of a group name takes
	keyEnd      = 1 // room after the text, so that where its last name ends is a place inside
)

// newKey copies user, groups and also, which it returns as copied, into room or, when that
// is too small, elsewhere. room is not to be written again.
func newKey(room []byte, user string, groups []string, also string) (key, string) {
	n := len(user) + lengthBytes*len(groups) + len(also) + keyEnd
	for _, g := range groups {
		n += len(g)
	}
	b := room[:0]
	if n > cap(b) {
		b = make([]byte, 0, n)
	}
	b = append(b, user...)
	for _, g := range groups {
		// A longer name does not fit into any cache: its key is never compared.
		b = binary.LittleEndian.AppendUint32(b, uint32(min(len(g), math.MaxUint32)))
	}
	for _, g := range groups {
		b = append(b, g...)
	}
	b = append(b, also...)
	k := key{text: unsafe.String(unsafe.SliceData(b), len(b)), user: uint32(len(user)), groups: uint32(len(groups))}
	return k, k.text[len(k.text)-len(also):]
}

// copied returns the key with its text in room, when that is large enough.
func (k key) copied(room []byte) key {
	if len(k.text)+keyEnd <= cap(room) {
		b := append(room[:0], k.text...)
		k.text = unsafe.String(unsafe.SliceData(b), len(b))
	}
	return k
}

// size returns the bytes that the key keeps alive besides itself.
func (k *key) size() int64 { return int64(len(k.text)) }

// length returns the length of group i.
func (k *key) length(i uint32) uint32 {
	return load4(unsafe.Pointer(unsafe.StringData(k.text)), int(k.user+lengthBytes*i))
}

// has reports whether a group is among those of the key.
func (k *key) has(group string) bool {
	at := k.user + lengthBytes*k.groups
	for i := range k.groups {
		n := k.length(i)
		if k.text[at:at+n] == group {
			return true
		}
		at += n
	}
	return false
}

// is reports whether the key is of that user and those groups, in that order. Every byte is
// compared. With two hundred groups this is most of a decision, so it goes eight bytes at a
// time and without the checks of bounds that the lengths, compared before, have made already:
// every load below is of n bytes or fewer from the start of a string, or of a place in text,
// that is n long.
func (k *key) is(user string, groups []string) bool {
	if len(user) != int(k.user) || len(groups) != int(k.groups) || k.text[:len(user)] != user {
		return false
	}
	if len(groups) == 0 {
		return true
	}
	lengths := unsafe.Add(unsafe.Pointer(unsafe.StringData(k.text)), len(user))
	own := unsafe.Add(lengths, lengthBytes*len(groups))
	for i := range groups {
		n := len(groups[i])
		if n != int(load4(lengths, lengthBytes*i)) {
			return false
		}
		theirs := unsafe.Pointer(unsafe.StringData(groups[i]))
		switch {
		case uint(n-8) <= 8:
			if load8(theirs, 0) != load8(own, 0) || load8(theirs, n-8) != load8(own, n-8) {
				return false
			}
		case n > 16:
			if load8(theirs, n-8) != load8(own, n-8) { // first: names differ at the end
				return false
			}
			for at := 0; at < n-8; at += 8 {
				if load8(theirs, at) != load8(own, at) {
					return false
				}
			}
		case n >= 4:
			if load4(theirs, 0) != load4(own, 0) || load4(theirs, n-4) != load4(own, n-4) {
				return false
			}
		default:
			for at := range n {
				if load1(theirs, at) != load1(own, at) {
					return false
				}
			}
		}
		own = unsafe.Add(own, n)
	}
	return true
}

// Loads of bytes that may lie anywhere; the compiler makes each one instruction where the
// processor has it.
func load8(p unsafe.Pointer, at int) uint64 {
	return binary.LittleEndian.Uint64((*[8]byte)(unsafe.Add(p, at))[:])
}

func load4(p unsafe.Pointer, at int) uint32 {
	return binary.LittleEndian.Uint32((*[4]byte)(unsafe.Add(p, at))[:])
}

func load1(p unsafe.Pointer, at int) byte { return *(*byte)(unsafe.Add(p, at)) }
