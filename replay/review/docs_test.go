package review

import (
	"testing"

	"github.com/retrial-io/retrial/test/golden"
)

// TestContradictionsAreDocumented keeps docs/aggregated.md complete.
func TestContradictionsAreDocumented(t *testing.T) {
	golden.Documented(t, "docs/aggregated.md", golden.Constants(t, "replay/review/review.go", "Contradiction"))
}
