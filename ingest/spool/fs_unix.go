//go:build unix

package spool

import (
	"fmt"

	"golang.org/x/sys/unix"
)

// Free implements FS.
func (d *Dir) Free() (int64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(d.path, &s); err != nil {
		return 0, fmt.Errorf("free space in %s: %w", d.path, err)
	}
	return int64(s.Bavail) * int64(s.Bsize), nil
}
