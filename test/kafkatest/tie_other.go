//go:build !linux

package kafkatest

import (
	"errors"
	"os/exec"
	"time"
)

// tie does nothing where the system cannot: brokers end when Close is called.
func tie(*exec.Cmd) {}

func processCPU(int) (time.Duration, error) {
	return 0, errors.New("processor time of the broker: needs Linux")
}
