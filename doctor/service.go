package doctor

import (
	"context"
	"time"

	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/storage"
)

// Queries is what the questions about the installation itself ask the store.
type Queries interface {
	Outcomes(ctx context.Context, cluster string, from, to time.Time) ([]storage.Share, error)
	LogTraits(ctx context.Context, cluster string, from, to time.Time) (storage.LogTraits, error)
	DeadLetters(ctx context.Context, since time.Time) ([]storage.Letters, error)
	Folded(ctx context.Context, since time.Time) ([]storage.FoldedDay, error)
	DiskBytes(ctx context.Context) (int64, error)
	DirectRequests(ctx context.Context, cluster string, servers, own []string, from, to time.Time) ([]storage.DirectRequests, error)
}

// Service answers how far the connection of a cluster is, and how the installation does.
type Service struct {
	*query.Service
	Store Store
	Site  Site
}

// Store is what questions, and the checks of an installation, ask the store.
type Store interface {
	Queries
	query.Store
}
