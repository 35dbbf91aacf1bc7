// Package process says what other processes take of the machine: processor time and memory.
package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// CPU returns the user and system time of a process, read from /proc.
func CPU(pid int) (time.Duration, error) {
	const ticksPerSecond = 100 // USER_HZ, fixed on Linux
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("processor time of process %d: %w (it is read on Linux)", pid, err)
	}
	// The second field, the program's name, may hold anything but ends with the last ')'.
	fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	user, err1 := strconv.ParseInt(fields[11], 10, 64)
	system, err2 := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / ticksPerSecond, errors.Join(err1, err2)
}

// PeakMemory returns the most resident memory a process has had, in bytes, read from /proc. What the
// system accounts for an ended process begins with the memory of the process that started it.
func PeakMemory(pid int) (int64, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, fmt.Errorf("memory of process %d: %w (it is read on Linux)", pid, err)
	}
	_, rest, _ := strings.Cut(string(b), "VmHWM:")
	var kib int64
	if _, err := fmt.Sscan(rest, &kib); err != nil {
		return 0, fmt.Errorf("memory of process %d: no VmHWM in its status: %w", pid, err)
	}
	return kib << 10, nil
}
