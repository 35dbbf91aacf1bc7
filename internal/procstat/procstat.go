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
