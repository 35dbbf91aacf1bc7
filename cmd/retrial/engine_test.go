package main

import (
	"os"
	"testing"

	chdb "github.com/retrial-io/retrial/storage/embedded"
)

// requireEngine skips a test on a machine without the embedded store; where everything must
// run that is a failure.
func requireEngine(t *testing.T) {
	t.Helper()
	err := chdb.Suitable()
	if err == nil {
		_, err = chdb.Locate("")
	}
	if err != nil {
		notRun(t, "embedded store: "+err.Error())
	}
}

// notRun says that a test cannot run here, in the words scripts/test.sh collects.
func notRun(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("RETRIAL_REQUIRE_ALL") != "" {
		t.Fatal("NOT RUN: " + why)
	}
	t.Skip("NOT RUN: " + why)
}
