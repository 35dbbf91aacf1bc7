package embedded_test

import (
	"testing"

	"go.uber.org/goleak"
)

// TestMain fails the run when a goroutine outlives its test.
func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
