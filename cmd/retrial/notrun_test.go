package main

import (
	"os"
	"testing"
)

// notRun says that a test cannot run here, in the words scripts/test.sh collects.
func notRun(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("RETRIAL_REQUIRE_ALL") != "" {
		t.Fatal("NOT RUN: " + why)
	}
	t.Skip("NOT RUN: " + why)
}
