//go:build !linux && !darwin && !freebsd

package doctor

// DiskBytes is not known here.
func DiskBytes(string) (free, total int64, ok bool) { return 0, 0, false }
