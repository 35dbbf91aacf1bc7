package rbacindex

import "sync/atomic"

// defaultCacheBytes bounds what a family of snapshots remembers of subjects.
const defaultCacheBytes = 64 << 20

// family is what a lineage of snapshots shares.
type family struct {
	hasher   *hasher
	versions atomic.Uint64
}

func newFamily(bytes int64) *family { return &family{hasher: newHasher()} }

func (f *family) next() uint64 { return f.versions.Add(1) }
