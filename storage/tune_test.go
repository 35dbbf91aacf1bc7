package storage_test

import (
	"context"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/storage/storagetest"
)

// TestTuning: the tables every insert writes to have the settings that save work, once, however
// often the store is opened.
func TestTuning(t *testing.T) {
	storagetest.Need(t)
	engine, err := embedded.Open(embedded.Config{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	var before string
	for range 2 {
		s, err := storage.Open(context.Background(), storage.Config{Transport: engine})
		if err != nil {
			t.Fatal(err)
		}
		ddl := strings.Join(s.Strings(t, "SELECT create_table_query FROM system.tables WHERE database = 'retrial' AND name = 'events'"),
			"\n")
		for _, want := range []string{"min_parts_to_merge_at_once = 24", "merge_selector_base = 30", "auto_statistics_types = ''"} {
			if strings.Count(ddl, want) != 1 {
				t.Errorf("events has %q %d times:\n%s", want, strings.Count(ddl, want), ddl)
			}
		}
		if before != "" && ddl != before {
			t.Errorf("opening the store again changes events:\n%s\n%s", before, ddl)
		}
		before = ddl
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
