//go:build !linux

package main

import "os/exec"

// tie does nothing where the system cannot: processes end when their test does.
func tie(*exec.Cmd) {}
