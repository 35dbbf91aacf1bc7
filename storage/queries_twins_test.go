package storage_test

import (
	"context"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// TestDirectRequests: of an aggregated server's requests those count that no kube-apiserver's
// event stands before: not those with a twin, nor what the kube-apiserver asks for itself.
func TestDirectRequests(t *testing.T) {
	s := storagetest.Open(t)
	var template verdict.Row
	for _, r := range rows(t, "c", 0) {
		if r.Verdict != nil && r.Event.User.Username != "" {
			template = r
			break
		}
	}
	at := template.Event.RequestReceivedTimestamp
	var in []verdict.Row
	add := func(server, id, user string, after time.Duration, code int32) {
		r := template
		e := *template.Event
		e.AuditID, e.User.Username, e.Server, e.RequestReceivedTimestamp = id, user, server, at.Add(after)
		e.ResponseStatus = &event.Status{Code: code}
		r.Event, r.APIServer = &e, server
		r.Request = event.RequestKey(r.Cluster, &e)
		r.EventKey = event.EventKey(r.Request, &e)
		r.Position.Offset += int64(len(in) + 1_000_000)
		in = append(in, r)
	}
	add("", "1", "alice", 0, 200)
	add("wardle", "1", "alice", time.Millisecond, 200) // its twin
	add("wardle", "2", "alice", 2*time.Second, 200)
	add("wardle", "3", "bob", time.Second, 403)
	add("wardle", "4", "system:kube-aggregator", 0, 200)
	add("", "5", "eve", 0, 403)
	add("wardle", "5", "eve", 3*time.Second, 200) // the kube-apiserver refused it
	add("metrics", "6", "alice", 0, 200)          // another server, not asked about
	insert(t, s, "twins", in)

	got, err := s.DirectRequests(context.Background(), "c", []string{"wardle"}, []string{"system:kube-aggregator"}, at.Add(-time.Hour),
		at.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 1 || got[0].APIServer != "wardle" || got[0].Requests != 3 || got[0].Users != 3 || got[0].AuditID != "3" ||
		got[0].User != "bob" ||
		!got[0].First.Equal(at.Add(time.Second)) || !got[0].Last.Equal(at.Add(3*time.Second)) {
		t.Fatalf("got %+v", got)
	}
	if got, err = s.DirectRequests(context.Background(), "c", []string{"wardle"}, nil, at.Add(24*time.Hour),
		at.Add(25*time.Hour)); err != nil || len(got) != 0 {
		t.Errorf("a range without requests: %+v, %v", got, err)
	}
}
