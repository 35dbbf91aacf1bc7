package storage_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// TestConcurrent inserts into four partitions at once, each block twice, while readers
// read and queries are cancelled: at the end every row is there once.
func TestConcurrent(t *testing.T) {
	s := storagetest.Open(t)
	ctx := context.Background()
	const partitions, blocks = 4, 4
	var g errgroup.Group
	size := 0
	for p := range partitions {
		in := rows(t, "c", int32(p))[:200]
		size = len(in)
		// Each partition has requests of its own.
		for i := range in {
			in[i].Event.AuditID = fmt.Sprintf("%d/%s", p, in[i].Event.AuditID)
			shift(&in[i], 0)
		}
		g.Go(func() error {
			for b := range blocks {
				for i := range in {
					in[i].Position.Offset += int64(size)
					shift(&in[i], time.Minute)
				}
				for range 2 {
					if err := s.Insert(ctx, fmt.Sprintf("%d/%d", p, b), in); err != nil {
						return err
					}
				}
				known, err := s.Known(ctx, in)
				if err != nil {
					return err
				}
				if len(known) != size {
					return fmt.Errorf("knows %d of %d rows just inserted", len(known), size)
				}
			}
			return nil
		})
	}
	g.Go(func() error {
		for range 10 {
			cctx, cancel := context.WithCancel(ctx)
			err := s.Affected(cctx, verdict.AffectedFilter{Cluster: "c", Partitions: []int32{0, 1, 2, 3}}, func(verdict.Row) error {
				cancel() // a reader that goes away in the middle
				return nil
			})
			cancel()
			_ = err // either the visit was over before, or it was cancelled
			if _, err := s.Overview(ctx, "c", time.Unix(0, 0), time.Unix(1<<31, 0)); err != nil {
				return err
			}
		}
		return nil
	})
	if err := g.Wait(); err != nil {
		t.Fatal(err)
	}
	if v := consistent(t, s); v.Events != partitions*blocks*int64(size) {
		t.Fatalf("%d events, want %d", v.Events, partitions*blocks*size)
	}
}
