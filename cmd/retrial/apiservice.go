package main

import (
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
)

// newAPI is the API of a running server.
func newAPI(sys *system) http.Handler {
	return apiHandler(query.RuledStore{Store: sys.store, Set: sys.rules}, sys.runner, sys.asking, sys.log, api.LongestQuery, at(sys.site()), withRejudging(sys.runner))
}

// apiStore is what the API and the checks of the installation ask the store.
type apiStore interface {
	query.Store
	doctorQueries
}

// apiOptions are what an API is given beside its store and its replay.
type apiOptions struct {
	site     site
	rejudges query.Rejudger
	offline  bool
}

// at sets the site an API belongs to.
func at(s site) func(*apiOptions) { return func(o *apiOptions) { o.site = s } }

// withRejudging gives the API the jobs.
func withRejudging(r query.Rejudger) func(*apiOptions) { return func(o *apiOptions) { o.rejudges = r } }

// policyOnly leaves the questions about a policy: all that a logStore can be asked.
func policyOnly(o *apiOptions) { o.offline = true }

// apiHandler serves the API below /api/v1/: the questions of the store and of the installation.
func apiHandler(store apiStore, runner query.Replay, asking *api.QueryLog, log *zap.Logger, longest time.Duration, more ...func(*apiOptions)) http.Handler {
	var o apiOptions
	for _, set := range more {
		set(&o)
	}
	a := &query.Service{Store: store, Replay: runner, Rejudges: o.rejudges, Apiserver: o.site.apiserver, Scraped: o.site.scraped, Spooled: o.site.spooled, Now: o.site.now, Version: version, Offline: o.offline}
	routes := a.Questions()
	if !o.offline {
		routes = append(routes, (&doctorAPI{Service: a, store: store, site: o.site}).routes()...)
	}
	return api.New(a, routes, asking, log, longest)
}
