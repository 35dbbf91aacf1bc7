package doctor

import (
	"context"
	"time"

	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/storage/queries"
)

// Queries is what the questions about the installation itself read of the store.
type Queries interface {
	Outcomes(ctx context.Context, cluster string, from, to time.Time) ([]queries.Share, error)
	LogTraits(ctx context.Context, cluster string, from, to time.Time) (queries.LogTraits, error)
	DeadLetters(ctx context.Context, since time.Time) ([]queries.Letters, error)
	Folded(ctx context.Context, since time.Time) ([]queries.FoldedDay, error)
	DiskBytes(ctx context.Context) (int64, error)
	DirectRequests(ctx context.Context, cluster string, servers, own []string, from, to time.Time) ([]queries.DirectRequests, error)
}

// Service answers the progress of a cluster's connection, and how the installation does.
type Service struct {
	*query.Service
	Store Store
	Site  Site
}

// Store is what questions, and the checks of an installation, read of the store.
type Store interface {
	Queries
	query.Store
}

// Questions returns the questions about connections and the installation.
func (a *Service) Questions() []query.Question {
	return []query.Question{
		query.NewQuestion(query.CostQuery, "the progress of a cluster's connection", a.Connection),
		query.NewQuestion(query.CostQuery, "the health of the installation, and of every cluster", a.Doctor),
	}
}
