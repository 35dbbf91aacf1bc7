// Package cputime measures the processor time of this process.
package cputime

import (
	"syscall"
	"time"
)

// Own returns the user and system time this process has used, 0 where the system does not
// account for it.
func Own() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
