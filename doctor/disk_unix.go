//go:build linux || darwin || freebsd

package doctor

import "golang.org/x/sys/unix"

// FreeBytes returns what an ordinary user may still write to the disk a folder is on.
func FreeBytes(dir string) (int64, bool) {
	free, _, ok := diskBytes(dir)
	return free, ok
}

// diskBytes returns what an ordinary user may still write to the disk a folder is on, and how
// large that is.
func diskBytes(dir string) (free, total int64, ok bool) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, 0, false
	}
	return int64(fs.Bavail) * int64(fs.Bsize), int64(fs.Blocks) * int64(fs.Bsize), true //nolint:unconvert // the types differ by system
}
