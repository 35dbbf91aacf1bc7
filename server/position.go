package server

import (
	"path/filepath"

	"github.com/retrial-io/retrial/internal/config"
)

// PositionFile is where an import notes what was acknowledged.
func PositionFile(cfg config.Config, cluster string) string {
	return filepath.Join(cfg.DataDir, "imports", cluster+".json")
}
