package main

import (
	"syscall"
	"time"
)

// ownCPU is the processor time this process has used, 0 where the system does not account for it.
func ownCPU() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
