package rbacindex

import "hash/maphash"

// hasher hashes the strings of one lineage of snapshots. The seed is random per lineage, so
// that names chosen by clients cannot be made to collide on purpose; every structure that
// stores hashes is shared only inside the lineage.
type hasher struct {
	seed maphash.Seed
	keep uint64 // bits of the hash that are kept; all of them outside collision tests
}

func newHasher() *hasher {
	return &hasher{seed: maphash.MakeSeed(), keep: ^uint64(0)}
}

func (h *hasher) str(s string) uint64 {
	if s == "" {
		return 0
	}
	return maphash.String(h.seed, s) & h.keep
}

// pair hashes a (namespace, name) pair.
func (h *hasher) pair(space, name string) uint64 {
	if space == "" {
		return h.str(name)
	}
	return mix(h.str(space), h.str(name)) & h.keep
}

// mix folds b into a; it is not commutative.
func mix(a, b uint64) uint64 {
	x := (a ^ 0x9e3779b97f4a7c15) * 0xff51afd7ed558ccd
	x ^= x >> 32
	x = (x ^ b) * 0xc4ceb9fe1a85ec53
	return x ^ x>>29
}
