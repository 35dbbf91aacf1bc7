//go:build !unix

package spool

import "errors"

// Free implements FS.
func (d *Dir) Free() (int64, error) { return 0, errors.ErrUnsupported }
