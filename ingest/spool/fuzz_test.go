package spool

import (
	"context"
	"testing"

	"github.com/retrial-io/retrial/ingest/stream"
)

// FuzzSegment opens a spool whose only segment holds anything at all: it is drained, or set
// aside, or refused with an error, and never more records come out than go by its frames.
func FuzzSegment(f *testing.F) {
	d := newDisk()
	s, err := Open(Config{FS: d, MinFree: -1}, never{})
	if err != nil {
		f.Fatal(err)
	}
	for _, id := range []string{"a", "b"} {
		if err := s.Produce(f.Context(), rec("prod", id, 50)); err != nil {
			f.Fatal(err)
		}
	}
	whole := d.names["0000000000000001.seg"].bytes
	f.Add(whole)
	f.Add(whole[:len(whole)-3])
	f.Add(append([]byte("RTLSPL9\n"), whole[8:]...))
	f.Add(segmentHeader(7, 99))
	f.Fuzz(func(t *testing.T, b []byte) {
		d := newDisk()
		d.names["0000000000000001.seg"] = &inode{bytes: b}
		k := newKafka()
		s, err := Open(Config{FS: d, MinFree: -1}, k)
		if err != nil {
			return
		}
		drainer := &drainer{s: s, decoder: stream.NewDecoder()}
		for more, steps := true, 0; more; steps++ {
			if more, err = drainer.step(context.Background()); err != nil || steps > 1000 {
				t.Fatalf("step %d: %v", steps, err)
			}
		}
		if st := s.Status(); st.Spooling || st.Records != 0 || st.Bytes != 0 {
			t.Errorf("not empty in the end: %+v", st)
		}
		if len(k.recs) > len(b)/headBytes*64 {
			t.Errorf("%d records of %d bytes", len(k.recs), len(b))
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
}
