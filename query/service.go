// Package query answers questions about what was done on clusters, what made it possible and which rights are unused: one question a file,
// each a method of Service. It knows nothing of HTTP, flags or printing; query/api serves it, cmd/retrial prints its answers.
//
//	WhoCanRequest ─▶ Service.WhoCan ─┬─▶ Rows    (requests, findings: a store, or a log in memory) ─▶ WhoCanAnswer
//	                                 ├─▶ Tables  (sums and lists in SQL: a store, or a temporary one of a log)
//	                                 └─▶ Replay  (what is known of a cluster, and when)
//
// Questions is the table of all. A request's tags (package params) make its parameters in a URL, its flags, and its documentation.
package query

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/retrial-io/retrial/analysis/lineage"
	"github.com/retrial-io/retrial/query/past"
	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/config"
)

// Service answers questions. Everything but the rows and the replay is optional.
type Service struct {
	Store Rows
	// Tables opens what SQL questions read; nil: Store has it.
	Tables   func(context.Context) (Tables, error)
	Replay   Replay
	Rejudges Rejudger // nil: nobody judges
	// Apiserver returns a cluster's apiserver configuration over time; nil for none.
	Apiserver func(cluster, server string) *config.History
	Scraped   func(cluster string) []string // the apiservers of a cluster whose metrics are read
	Spooled   func(context.Context) error   // waits until nothing is spooled; nil: nothing is here
	Now       func() time.Time              // nil: no moment is known
	Version   string                        // of the replica that answers
	Offline   bool                          // answers from a log: nothing is changed
	Empty     bool                          // the log has no event
	// Followed returns the life of a credential as the followed log shows it; ok is false if it is not in the log. nil: credentials are not
	// followed.
	Followed func(credential string) (lineage.Lineage, bool)

	once  sync.Once
	owned *replay.Engine // see engine
	kept  past.Keeper    // what pages ask of all subjects
}

// engine returns the engine that questions decide with. There is only one, since it caches compiled configurations.
func (a *Service) engine() *replay.Engine {
	a.once.Do(func() { a.owned = replay.New(replay.Config{Version: a.Version, Apiserver: a.Apiserver}) })
	return a.owned
}

// inSQL returns what answers a question that is asked in SQL.
func inSQL[R, A any](a *Service, answer func(context.Context, Tables, R) (A, error)) func(context.Context, R) (A, error) {
	return func(ctx context.Context, q R) (out A, err error) {
		tables, ok := a.Store.(Tables)
		if a.Tables != nil {
			if tables, err = a.Tables(ctx); err != nil {
				return out, err
			}
		} else if !ok {
			return out, errors.New("no store is open for questions in SQL")
		}
		return answer(ctx, tables, q)
	}
}

func (a *Service) time() time.Time {
	if a.Now == nil {
		return time.Time{}
	}
	return a.Now()
}

// settled waits until what was accepted is stored; some may still be in the spool.
func (a *Service) settled(ctx context.Context) error {
	if a.Spooled != nil {
		if err := a.Spooled(ctx); err != nil {
			return err
		}
	}
	return a.Replay.WaitDrained(ctx)
}
