package faults

import (
	"os"
	"testing"
)

func TestMain(m *testing.M) {
	if os.Getenv(watchEnv) != "" {
		os.Unsetenv(watchEnv)
		watchedExec()
	}
	code := m.Run()
	for _, f := range closers {
		f()
	}
	os.Exit(code)
}
