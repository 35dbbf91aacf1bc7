package doctor

import (
	"context"

	"github.com/retrial-io/retrial/internal/config"
)

// keptFree is what the store leaves free of its disk if no cap is set, and keptFreeShare the part
// of a small disk that suffices.
const (
	keptFree      = 4 << 30
	keptFreeShare = 20
)

// diskUser reports the bytes a store uses on disk.
type diskUser interface {
	DiskBytes(ctx context.Context) (int64, error)
}

// DiskCap returns the most bytes the store may hold: what is configured, else for an embedded Store what is free now minus a reserve, so
// that no cluster's events fill the disk; 0 for none.
func DiskCap(ctx context.Context, cfg config.Config, store diskUser) int64 {
	if cfg.Retention.DiskCap > 0 || cfg.ClickHouse.DSN != "" {
		return int64(cfg.Retention.DiskCap)
	}
	free, total, ok := DiskBytes(cfg.DataDir)
	if !ok {
		return 0
	}
	used, err := store.DiskBytes(ctx)
	if err != nil {
		return 0 // asked again with the next look at retention, which meets the same error
	}
	return capOf(used, free, total)
}

// capOf returns the cap of a store that uses that much of a disk.
func capOf(used, free, total int64) int64 {
	return max(1, used+free-min(keptFree, total/keptFreeShare))
}
