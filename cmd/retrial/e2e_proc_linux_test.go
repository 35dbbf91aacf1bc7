package main

import (
	"os/exec"
	"syscall"
)

// tie makes the process end with the one that started it, however that ends. It must be
// started from a goroutine that is locked to its thread until the process has ended.
func tie(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
