package replay

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/replay/authz"
)

// TestContradictionsAreDocumented keeps docs/verdicts.md complete.
func TestContradictionsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../docs/verdicts.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range authz.Contradictions() {
		if row := fmt.Sprintf("| `%s` | %s |", f.Name, f.Text); !strings.Contains(string(raw), row) {
			t.Errorf("docs/verdicts.md lacks the row %s", row)
		}
	}
}
