package storage_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/test/perevent"
	"github.com/retrial-io/retrial/verdict"
)

// corpus returns rows made of a whole recorded log when RETRIAL_CORPUS names its folder,
// else of the slice in testdata; n rows, repeated with shifted times as often as needed.
func corpus(b *testing.B, n int) []verdict.Row {
	b.Helper()
	all := lines(b)
	if dir := os.Getenv("RETRIAL_CORPUS"); dir != "" {
		data, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
		if err != nil {
			b.Fatal(err)
		}
		all = bytes.Split(bytes.TrimSpace(data), []byte("\n"))
	}
	out := make([]verdict.Row, 0, n)
	for round := 0; len(out) < n; round++ {
		part := all[:min(len(all), n-len(out))]
		in := rowsOf(b, part, "c", 0, received)
		for i := range in {
			in[i].Position.Offset += int64(round * len(all))
			shift(&in[i], time.Duration(round)*10*time.Minute)
		}
		out = append(out, in...)
	}
	return out
}

// shift moves a row in time and gives it the keys of its new time.
func shift(r *verdict.Row, by time.Duration) {
	r.Event.RequestReceivedTimestamp = r.Event.RequestReceivedTimestamp.Add(by)
	r.Event.StageTimestamp = r.Event.StageTimestamp.Add(by)
	r.Request = event.RequestKey(r.Cluster, r.Event)
	r.EventKey = event.EventKey(r.Request, r.Event)
}

// BenchmarkInsert inserts blocks of real rows; CPU counts the whole process: new times and
// keys for the rows (0.3 µs each), encoding, engine, views and merges that ran meanwhile.
func BenchmarkInsert(b *testing.B) {
	for _, size := range []int{1000, 20000} {
		b.Run(fmt.Sprintf("rows=%d", size), func(b *testing.B) {
			s := storagetest.Open(b)
			in := corpus(b, size)
			runtime.GC()
			var bytes int64
			for i := range in {
				bytes += int64(in[i].Size)
			}
			m := perevent.Start(b)
			for i := range b.N {
				for j := range in {
					in[j].Position.Offset += int64(size)
					shift(&in[j], time.Hour)
				}
				insert(b, s, fmt.Sprint("t", i), in)
			}
			m.Report(b.N*size, bytes*int64(b.N))
		})
	}
}

// BenchmarkAppend appends rows to a block; nothing is encoded or sent.
func BenchmarkAppend(b *testing.B) {
	for _, size := range []int{1000, 20000} {
		b.Run(fmt.Sprintf("rows=%d", size), func(b *testing.B) {
			add := storage.Appender(corpus(b, size))
			b.ReportAllocs()
			m := perevent.Start(b)
			for b.Loop() {
				if err := add(); err != nil {
					b.Fatal(err)
				}
			}
			m.Report(b.N*size, 0)
		})
	}
}

// BenchmarkKnown looks a block up: new rows in a store that has others of the same
// minutes, and the same block again.
func BenchmarkKnown(b *testing.B) {
	s := storagetest.Open(b)
	const size = 20000
	in := corpus(b, size)
	for i := range 10 {
		for j := range in {
			in[j].Position.Offset += size
			in[j].Event.AuditID = fmt.Sprintf("%d-%d", i, j)
			shift(&in[j], 0)
		}
		insert(b, s, fmt.Sprint("t", i), in)
	}
	ctx := context.Background()
	for _, stored := range []bool{true, false} {
		if !stored {
			for j := range in {
				in[j].Event.AuditID = fmt.Sprintf("new-%d", j)
				shift(&in[j], 0)
			}
		}
		b.Run(fmt.Sprintf("rows=20k/stored=%v", stored), func(b *testing.B) {
			for range b.N {
				known, err := s.Known(ctx, in)
				if err != nil || (len(known) > 0) != stored {
					b.Fatal(len(known), err)
				}
			}
		})
	}
}
