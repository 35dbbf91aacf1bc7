package rbacindex

import "sync/atomic"

// family is what a lineage of snapshots shares: the hash seed, the cache of subjects and the
// inverted index of roles.
type family struct {
	hasher *hasher
	cache  cache
	serial atomic.Uint64
	tables *tables

	grantors atomic.Pointer[grantors] // the last that were made; nil before the first
}

// defaultCacheBytes bounds what a family remembers of subjects: about a hundred thousand
// ordinary ones.
const defaultCacheBytes = 64 << 20

func newFamily(cacheBytes int64) *family {
	f := &family{hasher: newHasher(), tables: newTables()}
	f.cache.init(cacheBytes)
	return f
}

// next returns a number that the family never returns again.
func (f *family) next() uint64 { return f.serial.Add(1) }
