package authn

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestContradictionsAreDocumented keeps docs/identity.md complete: every contradiction with its kind and
// explanation, every authenticator in the order of the union.
func TestContradictionsAreDocumented(t *testing.T) {
	raw, err := os.ReadFile("../../docs/identity.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	seen := map[string]bool{}
	for _, f := range All() {
		if row := fmt.Sprintf("| `%s` | %s | %s |", f.Name, f.Kind, f.Text); !strings.Contains(text, row) {
			t.Errorf("docs/identity.md lacks the row %s", row)
		}
		if seen[f.Name] || f.Kind != KindContradiction && f.Kind != KindUse {
			t.Errorf("%s: listed twice, or of kind %q", f.Name, f.Kind)
		}
		seen[f.Name] = true
	}
	for _, a := range Authenticators() {
		row := strings.Index(text, "\n| `"+a+"`")
		if row < 0 {
			t.Fatalf("docs/identity.md lacks authenticator %s, or has it out of order", a)
		}
		text = text[row+1:]
	}
}
