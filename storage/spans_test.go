package storage_test

import (
	"context"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// TestSpans: the spans of a partition cover its rows and no other's.
func TestSpans(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	in := map[string][]verdict.Row{"a": rows(t, "a", 1), "b": rows(t, "b", 1), "c": rows(t, "c", 2)}
	in["b"] = in["b"][:1]
	for cluster, list := range in {
		if err := s.Insert(ctx, cluster, list); err != nil {
			t.Fatal(err)
		}
	}
	spans, err := s.Spans(ctx, 1)
	if err != nil {
		t.Fatal(err)
	}
	if len(spans) != 2 {
		t.Fatalf("%d spans: %v", len(spans), spans)
	}
	for _, span := range spans {
		if span.Cluster == "c" {
			t.Error("a span of another partition")
		}
		if span.To.Sub(span.From) > 24*time.Hour {
			t.Errorf("%s spans %v to %v", span.Cluster, span.From, span.To)
		}
		for _, r := range in[span.Cluster] {
			if at := r.Event.RequestReceivedTimestamp; at.Before(span.From) || at.After(span.To) {
				t.Errorf("%s: a request of %v lies outside of %v to %v", span.Cluster, at, span.From, span.To)
			}
		}
	}
	if spans, err = s.Spans(ctx, 3); err != nil || len(spans) != 0 {
		t.Errorf("a partition without rows: %v, %v", spans, err)
	}
}
