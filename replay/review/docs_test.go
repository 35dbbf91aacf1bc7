package review

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestContradictionsAreDocumented keeps docs/aggregated.md complete.
func TestContradictionsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../docs/aggregated.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Contradictions() {
		if row := fmt.Sprintf("| `%s` | %s |", f.Name, f.Text); !strings.Contains(string(raw), row) {
			t.Errorf("docs/aggregated.md lacks the row %s", row)
		}
	}
}
