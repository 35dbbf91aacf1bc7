package authn

import (
	"os"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/test/golden"
)

// contradictions returns every contradiction on identity.
func contradictions(t testing.TB) []string {
	return golden.Constants(t, "replay/authn/contradictions.go", "Contradiction")
}

// TestContradictionsAreDocumented keeps docs/identity.md complete: every contradiction with its kind and
// explanation, every authenticator in the order of the union.
func TestContradictionsAreDocumented(t *testing.T) {
	golden.Documented(t, "docs/identity.md", contradictions(t))
	raw, err := os.ReadFile("../../docs/identity.md")
	if err != nil {
		t.Fatal(err)
	}
	text := string(raw)
	for _, name := range contradictions(t) {
		if !strings.Contains(text, "| `"+name+"` | contradiction | ") && !strings.Contains(text, "| `"+name+"` | use | ") {
			t.Errorf("docs/identity.md does not say of %s whether it is a contradiction or a use", name)
		}
	}
	for _, a := range (&sets{}).names(1<<ranks - 1) {
		row := strings.Index(text, "\n| `"+a+"`")
		if row < 0 {
			t.Fatalf("docs/identity.md lacks authenticator %s, or has it out of order", a)
		}
		text = text[row+1:]
	}
}
