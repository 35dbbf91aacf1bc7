//go:build !unix

package flock

import "os"

// Try returns [ErrUnsupported].
func Try(*os.File) error { return ErrUnsupported }
