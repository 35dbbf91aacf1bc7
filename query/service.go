// Package query answers questions about what was done on clusters, what made it possible and
// what is too much: one question a file, each a method of Service. It knows nothing of HTTP, of
// flags and of where answers are shown; package cmd/retrial serves it.
//
//	WhoCanRequest ─▶ Service.WhoCan ─┬─▶ Store   (rows, rollups, findings)   ─▶ WhoCanAnswer
//	                                 └─▶ Replay  (what is known of a cluster, and when)
//
// Questions is the table of all. A request's tags (package params) make its parameters in a URL, its
// flags, and its documentation.
package query

import (
	"context"
	"sync"
	"time"

	"github.com/retrial-io/retrial/replay"
	"github.com/retrial-io/retrial/replay/config"
)

// Service answers questions. Everything but the store and the replay may be left out.
type Service struct {
	Store    Store
	Replay   Replay
	Rejudges Rejudger // nil: nobody judges
	// Apiserver returns a cluster's apiserver configuration over time; nil for none.
	Apiserver func(cluster, server string) *config.History
	Scraped   func(cluster string) []string // the apiservers of a cluster whose metrics are read
	Spooled   func(context.Context) error   // waits until nothing is spooled; nil: nothing is here
	Now       func() time.Time              // nil: no moment is known
	Version   string                        // of the replica that answers
	Offline   bool                          // answers from a log: questions about the policy alone

	once  sync.Once
	owned *replay.Engine // see engine
}

// engine returns the engine that questions decide with. There is one, since it keeps what it has
// compiled of configurations.
func (a *Service) engine() *replay.Engine {
	a.once.Do(func() { a.owned = replay.New(replay.Config{Version: a.Version, Apiserver: a.Apiserver}) })
	return a.owned
}

// time is the moment it is.
func (a *Service) time() time.Time {
	if a.Now == nil {
		return time.Time{}
	}
	return a.Now()
}

// settled waits until what was accepted is stored: it may be in the spool, too.
func (a *Service) settled(ctx context.Context) error {
	if a.Spooled != nil {
		if err := a.Spooled(ctx); err != nil {
			return err
		}
	}
	return a.Replay.WaitDrained(ctx)
}
