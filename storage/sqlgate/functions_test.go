package sqlgate_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// testFunctions holds functions.txt to the engine: every name is a function's, none is of a
// kind that reaches out, and no refused function differs from an offered one in case alone.
func testFunctions(t *testing.T, k *kit) {
	type function struct {
		Name, Categories, Alias string
		Aggregate               int `json:"is_aggregate"`
	}
	a := k.ask(t, "SELECT name AS Name, categories AS Categories, alias_to AS Alias, is_aggregate FROM system.functions", "default_format",
		"JSONEachRow")
	byName := map[string]function{}
	for _, line := range strings.Split(strings.TrimSpace(a.text), "\n") {
		var f function
		if err := json.Unmarshal([]byte(line), &f); err != nil {
			t.Fatal(err, line)
		}
		byName[f.Name] = f
	}
	if len(byName) < 1000 {
		t.Fatalf("the engine has %d functions", len(byName))
	}
	// Operators and forms the parser makes functions of.
	syntax := map[string]bool{"lambda": true, "exists": true, "grouping": true, "untuple": true}
	text, err := os.ReadFile("functions.txt")
	if err != nil {
		t.Fatal(err)
	}
	offered, listed := map[string]string{}, map[string]bool{} // by lower case, and as written
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") || !strings.HasPrefix(line, " ") {
			continue
		}
		for _, name := range strings.Fields(line) {
			offered[strings.ToLower(name)], listed[name] = name, true
			f, ok := byName[name]
			if !ok && !syntax[name] {
				t.Errorf("%s is not a function of this engine", name)
			}
			for f.Alias != "" {
				f = byName[f.Alias]
			}
			switch f.Categories {
			case "Dictionary", "Embedded Dictionary", "Introspection", "AI", "Machine Learning", "Encryption":
				t.Errorf("%s is offered: %s", name, f.Categories)
			}
		}
	}
	for name := range byName {
		if same, ok := offered[strings.ToLower(name)]; ok && !listed[name] {
			t.Errorf("%s is not offered, but %s is, which differs in case alone", name, same)
		}
	}
}
