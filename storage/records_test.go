package storage_test

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

func TestPolicy(t *testing.T) {
	dir := t.TempDir()
	ctx := context.Background()
	at := time.Date(2026, 1, 2, 3, 4, 5, 6000, time.UTC)
	var in []verdict.PolicyVersion
	for i := range 40 {
		in = append(in, verdict.PolicyVersion{
			Cluster: "c", Resource: "roles.rbac.authorization.k8s.io", Namespace: "n'\t", Name: fmt.Sprint("r", i), UID: "u",
			ResourceVersion: fmt.Sprint(i), Deleted: i%7 == 0, Observation: []byte(fmt.Sprintf(`{"v":1,"i":%d,"text":"\\\t\u0000"}`, i)),
			Position: event.Position{Epoch: uint32(1 + i/30), Partition: int32(i % 2), Offset: int64(i / 4)}, Index: int32(i % 4),
			Observed: at,
		})
	}
	end := int64(10)
	load := func(s interface {
		LoadPolicy(context.Context, []string, func(verdict.PolicyVersion) error) error
		PolicyEnds(context.Context) (map[int32]event.Position, error)
		PolicyClusters(context.Context) ([]string, error)
	}) {
		t.Helper()
		got := map[string]verdict.PolicyVersion{}
		last := map[int32]verdict.PolicyVersion{}
		err := s.LoadPolicy(ctx, []string{"b", "c"}, func(v verdict.PolicyVersion) error {
			p := v.Position
			if l, ok := last[p.Partition]; ok &&
				(l.Position.Epoch > p.Epoch || l.Position.Epoch == p.Epoch && l.Position.Offset > p.Offset) {
				t.Fatalf("%+v after %+v", v, l)
			}
			last[p.Partition] = v
			got[v.Name] = v
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(got) != len(in) {
			t.Fatalf("%d of %d versions", len(got), len(in))
		}
		for _, v := range in {
			if !reflect.DeepEqual(got[v.Name], v) {
				t.Fatalf("changed in the store\n was %+v\n is  %+v", v, got[v.Name])
			}
		}
		if err := s.LoadPolicy(ctx, []string{"b"}, func(v verdict.PolicyVersion) error {
			return fmt.Errorf("an observation of cluster %q", v.Cluster)
		}); err != nil {
			t.Fatal(err)
		}
		ends, err := s.PolicyEnds(ctx)
		want := map[int32]event.Position{0: {Epoch: 2, Offset: end}, 1: {Epoch: 2, Partition: 1, Offset: end}}
		if err != nil || !reflect.DeepEqual(ends, want) {
			t.Fatalf("ends %v, want those of the newest epoch: %v; %v", ends, want, err)
		}
		if clusters, err := s.PolicyClusters(ctx); err != nil || !slices.Equal(clusters, []string{"c"}) {
			t.Fatalf("clusters %q: %v", clusters, err)
		}
	}
	s, closeStore := storagetest.Start(t, dir)
	for range 2 { // the second time changes nothing
		if err := s.SavePolicy(ctx, in[:25]); err != nil {
			t.Fatal(err)
		}
		if err := s.SavePolicy(ctx, in[20:]); err != nil {
			t.Fatal(err)
		}
		load(s)
	}
	// Delivered again, the same observations are read from other positions.
	for i := range in {
		in[i].Position.Epoch, in[i].Position.Offset = 2, in[i].Position.Offset+100
	}
	if err := s.SavePolicy(ctx, in); err != nil {
		t.Fatal(err)
	}
	end = 110
	load(s)
	if v := totals(t, s).PolicyVersions; v != uint64(len(in)) {
		t.Fatalf("%d versions, want the same %d", v, len(in))
	}
	closeStore()
	s = storagetest.OpenAt(t, dir) // migrations a second time, the data still there
	load(s)
}

func TestDeadLetters(t *testing.T) {
	s := storagetest.Open(t)
	var in []verdict.StoredDeadLetter
	for i := range 10 {
		in = append(in, verdict.StoredDeadLetter{
			DeadLetter: event.DeadLetter{Cluster: "c", Source: "webhook", Reason: "malformed-item", Detail: "d", Digest: "sha256:00",
				Size: 10, Prefix: []byte("\x00\xff{")},
			Position: event.Position{Epoch: 1, Partition: 0, Offset: int64(i)}, Received: received,
		})
	}
	for range 2 {
		if err := s.SaveDeadLetters(context.Background(), "t", in); err != nil {
			t.Fatal(err)
		}
		if got := totals(t, s).DeadLetters; got != 10 {
			t.Fatalf("%d dead letters, want 10", got)
		}
	}
}
