package spool

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/ingest/stream/streamtest"
	"github.com/retrial-io/retrial/internal/sample"
	"github.com/retrial-io/retrial/test/perevent"
)

// post returns the records of 400 events of the recorded log, as the receiver makes them.
func post(b *testing.B) (recs []stream.Record, bytes int64) {
	b.Helper()
	log, err := sample.OpenAuditLog()
	if err != nil {
		b.Fatal(err)
	}
	defer log.Close()
	for lines := event.NewLines(log, 0); len(recs) < 400; {
		line, _, err := lines.Next()
		if err != nil {
			b.Fatal(err)
		}
		e, err := event.Decode(line)
		if err != nil {
			b.Fatal(err)
		}
		r := streamtest.EventRecord("prod", "webhook", "", time.Unix(1700000000, 0), e)
		recs, bytes = append(recs, r), bytes+int64(len(r.Value))
	}
	return recs, bytes
}

type never struct{}

func (never) Produce(context.Context, ...stream.Record) error { return stream.ErrTransient }

type always struct{}

func (always) Produce(context.Context, ...stream.Record) error { return nil }

// BenchmarkProduce puts posts of 400 recorded events through the spool: while Kafka takes
// them, and onto a real disk while it does not, from several posts at once; and sends them.
func BenchmarkProduce(b *testing.B) {
	recs, size := post(b)
	run := func(b *testing.B, dir string, k stream.Appender, parallel int) *Spool {
		d, err := OpenDir(dir)
		if err != nil {
			b.Fatal(err)
		}
		s, err := Open(Config{FS: d, MaxBytes: 1 << 40, MinFree: -1}, k)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = s.Close(); _ = d.Close() })
		b.SetParallelism(parallel)
		m := perevent.Start(b)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				if err := s.Produce(b.Context(), recs...); err != nil {
					b.Error(err)
				}
			}
		})
		m.Report(400*b.N, size*int64(b.N))
		return s
	}
	b.Run("kafka=there", func(b *testing.B) { run(b, b.TempDir(), always{}, 2) })
	for _, parallel := range []int{1, 8} {
		b.Run(fmt.Sprintf("kafka=away/posts=%d", parallel), func(b *testing.B) {
			s := run(b, b.TempDir(), never{}, parallel)
			b.ReportMetric(float64(s.Status().Bytes)/(400*float64(b.N)), "disk-B/event")
		})
	}
	b.Run("drain", func(b *testing.B) {
		dir := b.TempDir()
		d, err := OpenDir(dir)
		if err != nil {
			b.Fatal(err)
		}
		s, err := Open(Config{FS: d, MaxBytes: 1 << 40, MinFree: -1}, never{})
		if err != nil {
			b.Fatal(err)
		}
		for range b.N {
			if err := s.Produce(b.Context(), recs...); err != nil {
				b.Fatal(err)
			}
		}
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
		if s, err = Open(Config{FS: d, MaxBytes: 1 << 40, MinFree: -1}, always{}); err != nil {
			b.Fatal(err)
		}
		m := perevent.Start(b)
		drainer := &drainer{s: s, decoder: stream.NewDecoder()}
		for more := true; more; {
			if more, err = drainer.step(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
		m.Report(400*b.N, size*int64(b.N))
		if left, _ := os.ReadDir(dir); s.Status().Spooling {
			b.Errorf("not drained: %v", left)
		}
		_ = s.Close()
		_ = d.Close()
	})
}
