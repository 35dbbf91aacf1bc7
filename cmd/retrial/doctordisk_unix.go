//go:build linux || darwin || freebsd

package main

import "golang.org/x/sys/unix"

// freeBytes returns what an ordinary user may still write to the disk a folder is on.
func freeBytes(dir string) (int64, bool) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return 0, false
	}
	return int64(fs.Bavail) * int64(fs.Bsize), true //nolint:unconvert // the types differ by system
}
