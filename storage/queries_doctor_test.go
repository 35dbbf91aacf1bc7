package storage_test

import (
	"context"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// TestLogTraits: what the doctor is told of a log is what its events are, rows that were
// taken back left out.
func TestLogTraits(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := rows(t, "c", 0)
	in = in[:min(len(in), 40)]
	base := in[0].Event.RequestReceivedTimestamp
	change := func(i int, edit func(*verdict.Row)) {
		e := *in[i].Event
		e.RequestReceivedTimestamp, e.StageTimestamp = base, base.Add(time.Second)
		e.Level, e.Verb, e.Stage, e.ObjectRef, e.Annotations = event.LevelMetadata, "create", event.StageResponseComplete, nil, nil
		in[i].Event, in[i].Source, in[i].Received = &e, "webhook", base.Add(3*time.Second)
		edit(&in[i])
	}
	for i := range in {
		change(i, func(*verdict.Row) {})
	}
	policy := func(level event.Level, verb string, code int32) func(*verdict.Row) {
		return func(r *verdict.Row) {
			r.Event.Level, r.Event.Verb = level, verb
			r.Event.ObjectRef = &event.ObjectRef{Resource: "roles", APIGroup: "rbac.authorization.k8s.io"}
			r.Event.ResponseStatus = &event.Status{Code: code}
		}
	}
	change(0, policy(event.LevelMetadata, "create", 201))
	change(1, policy(event.LevelRequest, "patch", 200))
	change(2, policy(event.LevelRequest, "create", 201))
	change(3, policy(event.LevelRequestResponse, "patch", 200))
	change(4, policy(event.LevelMetadata, "delete", 200))
	change(5, policy(event.LevelMetadata, "create", 403))
	change(6, func(r *verdict.Row) {
		r.Event.Level, r.Event.ObjectRef = event.LevelRequest, &event.ObjectRef{Resource: "secrets"}
	})
	change(7, func(r *verdict.Row) {
		r.Event.Level, r.Event.ObjectRef = event.LevelMetadata, &event.ObjectRef{Resource: "secrets"}
	})
	change(8, func(r *verdict.Row) { r.Event.Verb = "list" })
	change(9, func(r *verdict.Row) { r.Event.Stage = event.StageRequestReceived })
	change(10, func(r *verdict.Row) { r.Source = "import"; r.Received = base.Add(-time.Hour) })
	change(11, func(r *verdict.Row) { r.Received = base.Add(500 * time.Millisecond) })
	insert(t, s, "a", in)
	insert(t, s, "other", rows(t, "another", 1)[:10])

	got, err := s.LogTraits(ctx, "c", base.Add(-time.Hour), base.Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	want := queries.LogTraits{
		Events: int64(len(in)), Live: int64(len(in)) - 1, Reads: 1, Received: 1, Complete: int64(len(in)) - 1,
		PolicyWrites: 5, PolicyBlind: 2, SecretBodies: 1, MinDelay: -500 * time.Millisecond, MedianDelay: 2 * time.Second,
	}
	if got != want {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	if got, err := s.LogTraits(ctx, "nobody", base.Add(-time.Hour), base.Add(time.Hour)); err != nil || got != (queries.LogTraits{}) {
		t.Errorf("of a cluster without events: %+v, %v", got, err)
	}
}

func TestDeadLettersAreCounted(t *testing.T) {
	s := storagetest.Open(t)
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	var in []verdict.StoredDeadLetter
	for i, reason := range []string{"too-large", "malformed-item", "malformed-item", "old"} {
		l := verdict.StoredDeadLetter{Received: at.Add(time.Duration(i) * time.Second), Position: event.Position{Offset: int64(i)}}
		l.Cluster, l.Reason = "c", reason
		if reason == "old" {
			l.Received = at.Add(-time.Hour)
		}
		in = append(in, l)
	}
	for range 2 { // what is stored twice counts once
		if err := s.SaveDeadLetters(context.Background(), "", in); err != nil {
			t.Fatal(err)
		}
	}
	got, err := s.DeadLetters(context.Background(), at)
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0] != (queries.Letters{Cluster: "c", Reason: "malformed-item", Count: 2, Last: at.Add(2 * time.Second)}) ||
		got[1].Reason != "too-large" {
		t.Errorf("%+v", got)
	}
}
