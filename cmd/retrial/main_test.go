package main

import (
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/retrial-io/retrial/internal/cli"
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

// printed returns what a command prints of an answer, and its hints.
func printed[A any](print func(*cli.Page, A), answer A) (lines, hints string) {
	var p cli.Page
	print(&p, answer)
	return p.Texts()
}
