// Package flock locks files between processes. The kernel releases a lock when its process
// ends, so a crash leaves none behind.
package flock

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// Errors of [Try].
var (
	ErrHeld        = errors.New("lock is held")
	ErrUnsupported = errors.New("this operating system has no flock")
)

// Own is [Try], and writes into the file who holds it, such as "pid 123 (retrial)". If another does, owner is what that one wrote.
func Own(f *os.File) (owner string, err error) {
	if err := Try(f); err != nil {
		text, _ := os.ReadFile(f.Name()) // only to name it
		return strings.TrimSpace(string(text)), err
	}
	owner = fmt.Sprintf("pid %d (%s)\n", os.Getpid(), filepath.Base(os.Args[0]))
	_, err = f.WriteAt([]byte(owner), 0)
	if err = errors.Join(f.Truncate(int64(len(owner))), err); err != nil {
		return "", fmt.Errorf("write lock file: %w", err)
	}
	return owner, nil
}
