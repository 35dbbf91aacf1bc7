//go:build !linux && !darwin && !freebsd

package doctor

// FreeBytes is not known here.
func FreeBytes(string) (int64, bool) { return 0, false }

// diskBytes is not known here.
func diskBytes(string) (free, total int64, ok bool) { return 0, 0, false }
