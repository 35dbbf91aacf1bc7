package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// TestMain makes the test binary serve as the product's own executable: under the name
// retrial it is main, so that what the tests start, kill and restart is the code under
// test. Each process may open the embedded engines once, so the tests never open them
// themselves: retrial-inspect reads a data directory in a process of its own.
func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"retrial":         main,
		"retrial-inspect": inspectMain,
		"retrial-store":   storeMain,
	})
}
