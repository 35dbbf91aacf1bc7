package main

import (
	"net/http"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/internal/version"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
)

// apiHandler serves the questions of a store and a replica that a test has made.
func apiHandler(store doctor.Store, replica query.Replay, asking *api.QueryLog, log *zap.Logger, longest time.Duration,
	more ...func(*query.Service, *doctor.Site)) http.Handler {
	a, site := &query.Service{Store: store, Replay: replica, Version: version.Version}, doctor.Site{}
	for _, set := range more {
		set(a, &site)
	}
	a.Apiserver = site.Apiserver
	questions := append(a.Questions(), (&doctor.Service{Service: a, Store: store, Site: site}).Questions()...)
	return api.New(questions, asking, log, longest)
}

// at sets the site.
func at(s doctor.Site) func(*query.Service, *doctor.Site) {
	return func(_ *query.Service, site *doctor.Site) { *site = s }
}

// withRejudging gives the jobs.
func withRejudging(r query.Rejudger) func(*query.Service, *doctor.Site) {
	return func(a *query.Service, _ *doctor.Site) { a.Rejudges = r }
}
