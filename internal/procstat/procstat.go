// Package procstat says what this process takes of the machine.
package procstat

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

// Peak returns the most memory this process has had in use, in bytes, 0 where the system does not account for it.
func Peak() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Maxrss * 1024 // Linux has kibibytes
}
