// Package flock locks files between processes. The kernel releases a lock when its process
// ends, so a crash leaves none behind.
package flock

import "errors"

// Errors of [Try].
var (
	ErrHeld        = errors.New("lock is held")
	ErrUnsupported = errors.New("this operating system has no flock")
)
