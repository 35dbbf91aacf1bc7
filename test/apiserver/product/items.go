package product

import (
	"encoding/json"
	"testing"
)

// Items returns the items of a list that a command printed as JSON.
func Items[T any](t testing.TB, text string) []T {
	t.Helper()
	var list struct{ Items []T }
	if err := json.Unmarshal([]byte(text), &list); err != nil {
		t.Fatalf("%v: %.2000s", err, text)
	}
	return list.Items
}
