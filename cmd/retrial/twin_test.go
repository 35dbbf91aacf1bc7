package main

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/verdict"
)

// TestWhyNamesTheTwin: a request through an aggregated server is two requests of one audit ID;
// each names the other's server. Another request of the same ID does not.
func TestWhyNamesTheTwin(t *testing.T) {
	row := func(n uint64, server, uri string) verdict.Row {
		return verdict.Row{Cluster: "c", APIServer: server, Request: event.Hash128{Hi: n}, Sign: 1, Event: &event.Event{
			AuditID: "a", Stage: event.StageResponseComplete, Verb: "list", RequestURI: uri, User: event.User{Username: "u"},
			Server: server,
		}}
	}
	f := &fakeStore{rows: []verdict.Row{
		row(1, "", "/apis/w/v1/f?limit=1&watch=0"), row(2, "wardle", "/apis/w/v1/f?watch=0&limit=1"), row(3, "", "/api/v1/pods"),
	}}
	w := httptest.NewRecorder()
	apiHandler(f, f.replay(), nil, zap.NewNop(), time.Minute, at(doctor.Site{Apiserver: aggregatedServer})).ServeHTTP(w,
		httptest.NewRequest(http.MethodGet, "http://localhost/api/v1/why?auditID=a", nil))
	var got []string
	for _, r := range decodeAnswer[query.WhyAnswer](t, w).Requests {
		got = append(got, r.APIServer+"→"+r.Twin)
	}
	want := []string{"→wardle", "wardle→" + query.KubeAPIServer, "→"}
	if len(got) != len(want) || got[0] != want[0] || got[1] != want[1] || got[2] != want[2] {
		t.Errorf("got %q, want %q", got, want)
	}
}
