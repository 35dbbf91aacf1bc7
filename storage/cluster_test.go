package storage_test

import (
	"strings"
	"testing"

	"github.com/retrial-io/retrial/storage/schema"
	"github.com/retrial-io/retrial/storage/storagetest"
)

// TestClusterFormParses gives every statement of the cluster form to the engine's parser: the
// embedded engine has no cluster to run them on.
func TestClusterFormParses(t *testing.T) {
	s := storagetest.Open(t)
	list, err := schema.Migrations(schema.Form{Database: "`retrial`", ClusterName: "main"})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range list {
		if s.Parse(t, m.SQL) == 0 {
			t.Errorf("%04d_%s: the parser says nothing", m.Version, m.Name)
		}
		if !strings.Contains(m.SQL, "ON CLUSTER `main`") {
			t.Errorf("%04d_%s is not for every node", m.Version, m.Name)
		}
		if strings.HasPrefix(m.SQL[strings.Index(m.SQL, "\nCREATE TABLE")+1:], "CREATE TABLE") && !strings.Contains(m.SQL, "ENGINE = Replicated") {
			t.Errorf("%04d_%s makes a table that is not replicated", m.Version, m.Name)
		}
	}
}
