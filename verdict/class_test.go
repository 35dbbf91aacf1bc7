package verdict

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestClassesAreClosed(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Classes() {
		if seen[c.Class] || c.Class == "" || c.Text == "" || c.Outcome == OutcomeMatch {
			t.Errorf("class %+v", c)
		}
		seen[c.Class] = true
	}
	if Explain("no-such-class") != "" {
		t.Error("an unknown class is explained")
	}
}

// TestClassesAreDocumented keeps docs/verdicts.md complete.
func TestClassesAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../docs/verdicts.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range Classes() {
		if row := fmt.Sprintf("| `%s` | %s | %s |", c.Class, c.Outcome, c.Text); !strings.Contains(string(raw), row) {
			t.Errorf("docs/verdicts.md lacks the row %s", row)
		}
	}
}
