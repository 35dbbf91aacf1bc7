package arch

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
)

// TestMigrationsAreNumbered: of two changes that each add a migration of the same number, the second fails here and not at every store.
func TestMigrationsAreNumbered(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "storage", "schema", "*.sql"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d migrations: %v", len(files), err)
	}
	for i, file := range files {
		if want := fmt.Sprintf("%04d_", i+1); !strings.HasPrefix(filepath.Base(file), want) {
			t.Errorf("%s: want number %s", filepath.Base(file), strings.TrimSuffix(want, "_"))
		}
	}
}
