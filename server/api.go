package server

import (
	"context"
	"net/http"
	"os"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/internal/config"
	"github.com/retrial-io/retrial/internal/version"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
)

// newAPI returns the API below /api/v1/ of a process that judges, and what answers it: a question is answered with what was received before
// it.
func newAPI(sys *system) (http.Handler, *query.Service) {
	service, questions := questionsOf(ruledStore{sys.store, sys.rules}, sys.runner, sys.runner, sys.site())
	for i := range questions {
		if q := &questions[i]; q.Cost != query.CostNothing {
			ask := q.Ask
			q.Ask = func(ctx context.Context, request any) (any, error) {
				sys.runner.CatchUp(ctx)
				return ask(ctx, request)
			}
		}
	}
	return api.New(questions, sys.asking, sys.log, api.LongestQuery), service
}

// renew makes anew what pages ask for and is kept, until ctx ends. Failures are logged: who asks then makes it.
func renew(ctx context.Context, service *query.Service, log *zap.Logger) {
	every(ctx, time.Minute, nil, func(int) {
		if err := service.Renew(ctx); err != nil && ctx.Err() == nil {
			log.Warn("answers for pages not made anew", zap.Error(err))
		}
	})
}

// questionsOf returns the questions of store and installation, and what answers them. rejudges has the jobs that judge again; nil: none.
func questionsOf(store doctor.Store, runner query.Replay, rejudges query.Rejudger, site doctor.Site) (*query.Service, []query.Question) {
	a := &query.Service{Store: store, Replay: runner, Rejudges: rejudges, Apiserver: site.Apiserver, Scraped: site.Scraped,
		Spooled: site.Spooled, Now: site.Now, Version: version.Version}
	return a, append(a.Questions(), (&doctor.Service{Service: a, Store: store, Site: site}).Questions()...)
}

func (s *system) site() doctor.Site {
	out := doctor.Site{
		Config: s.cfg, Version: version.Version, Serving: true, Authority: s.authority, Metrics: s.reg, Apiserver: s.apiservers.history,
		Now: time.Now,
	}
	if s.otherwise != nil {
		out.Otherwise = s.otherwise.of
	}
	if s.spool != nil {
		out.Spooled = s.spool.Wait
	}
	if s.halves.ingests() {
		out.Contacts, out.Hook = s.contacts, func() string { return s.hook }
	}
	return out
}

// ClosedSite returns what the files of a data directory that no server has open say of an installation,
// without its store.
func ClosedSite(cfg config.Config) doctor.Site {
	s := doctor.Site{Config: cfg, Version: version.Version, Now: time.Now}
	if _, err := os.Stat(IdentityConfig(cfg).Dir); err == nil { // opening would make one
		if a, err := OpenIdentity(cfg); err == nil {
			s.Authority = a
		}
	}
	return s
}
