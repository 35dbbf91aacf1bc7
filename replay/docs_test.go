package replay

import (
	"testing"

	"github.com/retrial-io/retrial/test/golden"
)

// TestContradictionsAreDocumented keeps docs/verdicts.md complete.
func TestContradictionsAreDocumented(t *testing.T) {
	golden.Documented(t, "docs/verdicts.md", golden.Constants(t, "replay/authz/reason.go", "Contradiction"))
}
