//go:build linux || darwin || freebsd

package doctor

import "golang.org/x/sys/unix"

// DiskBytes returns what an ordinary user may still write to the disk a folder is on, and how
// large that is.
func DiskBytes(dir string) (free, total int64, ok bool) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, 0, false
	}
	return int64(fs.Bavail) * int64(fs.Bsize), int64(fs.Blocks) * int64(fs.Bsize), true //nolint:unconvert // the types differ by system
}
