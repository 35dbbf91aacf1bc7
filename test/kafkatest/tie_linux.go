package kafkatest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// tie makes the process end with the one that started it, however that ends. It must be
// started from a goroutine that is locked to its thread until the process has ended.
func tie(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}

// processCPU reads user and system time of a process.
func processCPU(pid int) (time.Duration, error) {
	const ticksPerSecond = 100 // USER_HZ, fixed on Linux
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("processor time of the broker: %w", err)
	}
	// The second field, the program's name, may hold anything but ends with the last ')'.
	fields := bytes.Fields(text[bytes.LastIndexByte(text, ')')+1:])
	user, err1 := strconv.ParseInt(string(fields[11]), 10, 64)
	system, err2 := strconv.ParseInt(string(fields[12]), 10, 64)
	return time.Duration(user+system) * time.Second / ticksPerSecond, errors.Join(err1, err2)
}
