package review

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestFindingsAreDocumented keeps docs/aggregated.md complete.
func TestFindingsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../docs/aggregated.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range Findings() {
		if row := fmt.Sprintf("| `%s` | %s |", f.Name, f.Text); !strings.Contains(string(raw), row) {
			t.Errorf("docs/aggregated.md lacks the row %s", row)
		}
	}
}
