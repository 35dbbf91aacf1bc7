package spool

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"go.uber.org/goleak"

	"github.com/retrial-io/retrial/ingest/stream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestKafkaIsThere(t *testing.T) {
	r := open(t, newDisk(), newKafka())
	r.put(t, rec("prod", "a", 100))
	if got := ids(r.kafka.records()); !slices.Equal(got, []string{"a"}) {
		t.Errorf("kafka has %v", got)
	}
	if files, _ := r.disk.List(); len(files) != 0 {
		t.Errorf("files %v were made for records that kafka took", files)
	}
}

func TestOutage(t *testing.T) {
	r := open(t, newDisk(), newKafka())
	r.kafka.set(gone)
	var want []stream.Record
	for i := range 50 {
		p, e := policy("prod", fmt.Sprintf("p%d", i)), rec("prod", fmt.Sprintf("e%d", i), 200<<10)
		r.put(t, p)
		r.put(t, e)
		want = append(want, p, e)
	}
	if calls := r.kafka.calls; calls != 1 {
		t.Errorf("kafka was asked %d times: what comes behind a spooled record has to go behind it", calls)
	}
	if got := r.metric(t, "spooled_records_total"); got != 100 {
		t.Errorf("%v records spooled", got)
	}
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	if err := r.Wait(gone); !errors.Is(err, context.Canceled) {
		t.Errorf("waiting for the spool to be empty: %v", err)
	}
	r.kafka.set(nil)
	r.put(t, rec("prod", "last", 10)) // kafka is back, but older records are not there yet
	want = append(want, rec("prod", "last", 10))
	r.drain()
	if err := r.Wait(t.Context()); err != nil || r.Status().Spooling {
		t.Errorf("waiting for the spool to be empty: %v", err)
	}
	for _, topic := range []string{stream.TopicPolicy, stream.TopicEvents} {
		of := func(recs []stream.Record) []stream.Record {
			return slices.DeleteFunc(slices.Clone(recs), func(r stream.Record) bool { return r.Topic != topic })
		}
		if got := of(r.kafka.records()); !reflect.DeepEqual(got, of(want)) {
			t.Errorf("%s: came out as %v", topic, ids(got))
		}
	}
	got := ids(r.kafka.records())
	for i := range 50 {
		if p, e := slices.Index(got, fmt.Sprintf("p%d", i)), slices.Index(got, fmt.Sprintf("e%d", i)); p > e {
			t.Errorf("the copy of a policy write came behind its event: %d and %d", p, e)
		}
	}
	r.put(t, rec("prod", "direct", 10))
	if got := ids(r.kafka.records()); got[len(got)-1] != "direct" {
		t.Error("kafka takes records again, and a new one did not go there")
	}
	if files := r.disk.files("seg"); len(files) != 0 {
		t.Errorf("%v are left", files)
	}
	if b, n := r.metric(t, "bytes"), r.metric(t, "records"); b != 0 || n != 0 {
		t.Errorf("%v bytes and %v records are left by the metrics", b, n)
	}
}

func TestWhatIsSpooled(t *testing.T) {
	for name, tc := range map[string]struct {
		err     error
		spooled bool
	}{
		"cannot be reached": {stream.ErrTransient, true},
		"refuses access":    {stream.ErrAuth, true},
		"is full":           {stream.ErrFull, false},
		"record too large":  {&stream.TooLargeError{Limit: 5}, false},
		"client is closed":  {stream.ErrClosed, false},
		"fault":             {errors.New("invalid message"), false},
	} {
		t.Run(name, func(t *testing.T) {
			r := open(t, newDisk(), newKafka())
			r.kafka.set(func([]stream.Record) error { return fmt.Errorf("produce: %w", tc.err) })
			err := r.Produce(t.Context(), rec("prod", "a", 10))
			if tc.spooled != (err == nil) || err != nil && !errors.Is(err, tc.err) {
				t.Errorf("%v", err)
			}
		})
	}
	t.Run("sender went away", func(t *testing.T) {
		r := open(t, newDisk(), newKafka())
		ctx, cancel := context.WithCancel(t.Context())
		r.kafka.set(func([]stream.Record) error { cancel(); return stream.ErrTransient })
		if err := r.Produce(ctx, rec("prod", "a", 10)); !errors.Is(err, stream.ErrTransient) {
			t.Errorf("%v", err)
		}
		if r.Status().Spooling {
			t.Error("a record nobody waits for was spooled")
		}
	})
	t.Run("larger than kafka will take", func(t *testing.T) {
		r := open(t, newDisk(), newKafka(), func(c *Config) { c.MaxRecordBytes = 1000 })
		r.kafka.set(gone)
		err := r.Produce(t.Context(), rec("prod", "a", 10), rec("prod", "b", 2000))
		var tooLarge *stream.TooLargeError
		if !errors.As(err, &tooLarge) || tooLarge.Index != 1 || tooLarge.Limit != 1000 {
			t.Errorf("%v", err)
		}
	})
}

// Posts that wait together share a sync.
func TestGroupCommit(t *testing.T) {
	d := newDisk()
	entered, leave := make(chan struct{}), make(chan struct{})
	first := true
	d.set(func(op, _ string) error {
		if op == "sync" && first {
			first = false
			close(entered)
			<-leave
		}
		return nil
	})
	r := open(t, d, newKafka())
	r.kafka.set(gone)
	var wg sync.WaitGroup
	wg.Go(func() { r.put(t, rec("prod", "first", 10)) })
	<-entered
	for i := range 20 {
		wg.Go(func() { r.put(t, rec("prod", fmt.Sprint(i), 10)) })
	}
	r.until(t, "all to wait", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.round != nil && r.round.records == 20
	})
	close(leave)
	wg.Wait()
	if d.syncs != 2 {
		t.Errorf("%d syncs for 21 posts, 20 of which came together", d.syncs)
	}
}

func TestBounds(t *testing.T) {
	t.Run("one cluster leaves a quarter to the others", func(t *testing.T) {
		r := open(t, newDisk(), newKafka(), func(c *Config) { c.MaxBytes = 4 << 20 })
		r.kafka.set(gone)
		flood := 0
		var err error
		for ; err == nil; flood++ {
			err = r.Produce(t.Context(), rec("flood", fmt.Sprint(flood), 64<<10))
		}
		if !errors.Is(err, stream.ErrFull) || r.metric(t, "refused_records_total", refusedShare) != 1 {
			t.Fatalf("%v", err)
		}
		if used := r.Status().Bytes; used < 2800<<10 || used > 3<<20 {
			t.Errorf("one cluster took %d bytes of %d", used, 4<<20)
		}
		for i := range 8 {
			r.put(t, rec("quiet", fmt.Sprint(i), 64<<10))
		}
		for i := 0; i < 100 && err != nil; i++ { // refused forever, not once in a while
			err = r.Produce(t.Context(), rec("flood", "more", 64<<10))
		}
		if err == nil {
			t.Error("the flood got more once others had come")
		}
		r.kafka.set(nil)
		r.drain()
		r.drained(t)
		r.kafka.set(gone)
		r.put(t, rec("flood", "again", 64<<10))
	})
	t.Run("full", func(t *testing.T) {
		r := open(t, newDisk(), newKafka(), func(c *Config) { c.MaxBytes = 1 << 20 })
		r.kafka.set(gone)
		var err error
		for i := 0; err == nil; i++ {
			err = r.Produce(t.Context(), rec(fmt.Sprintf("c%d", i), "x", 300<<10))
		}
		if !errors.Is(err, stream.ErrFull) || r.Status().Bytes > 1<<20 {
			t.Errorf("%v with %d bytes", err, r.Status().Bytes)
		}
	})
	t.Run("room that is left alone", func(t *testing.T) {
		d := newDisk()
		d.free = 10 << 20
		r := open(t, d, newKafka(), func(c *Config) { c.MinFree = 10 << 20 })
		r.kafka.set(gone)
		if err := r.Produce(t.Context(), rec("prod", "a", 10)); !errors.Is(err, stream.ErrFull) ||
			r.metric(t, "refused_records_total", refusedRoom) != 1 {
			t.Errorf("%v", err)
		}
		d.mu.Lock()
		d.free *= 2
		d.mu.Unlock()
		r.put(t, rec("prod", "b", 10))
	})
}

func TestDiskThatFails(t *testing.T) {
	for name, tc := range map[string]struct {
		op   string
		err  error
		want error
	}{
		"full":               {"write", syscall.ENOSPC, stream.ErrFull},
		"full for new files": {"open", syscall.ENOSPC, stream.ErrFull},
		"write error":        {"write", syscall.EIO, stream.ErrTransient},
		"sync fails":         {"sync", syscall.EIO, stream.ErrTransient},
		"folder sync fails":  {"syncdir", syscall.EIO, stream.ErrTransient},
	} {
		t.Run(name, func(t *testing.T) {
			for _, before := range []int{0, 3} { // records that were spooled before
				d := newDisk()
				r := open(t, d, newKafka(), func(c *Config) { c.SegmentBytes = 1 }) // a file for each
				r.kafka.set(gone)
				var want []string
				for i := range before {
					r.put(t, rec("prod", fmt.Sprint(i), 10))
					want = append(want, fmt.Sprint(i))
				}
				d.set(func(op, _ string) error {
					if op == tc.op {
						return tc.err
					}
					return nil
				})
				if err := r.Produce(t.Context(), rec("prod", "lost", 10)); !errors.Is(err, tc.want) {
					t.Fatalf("%v, want %v", err, tc.want)
				}
				d.set(nil)
				if err := r.Produce(t.Context(), rec("prod", "early", 10)); !errors.Is(err, tc.want) {
					t.Errorf("the disk was asked again at once: %v", err)
				}
				r.mu.Lock()
				r.retry = r.retry.Add(-retryDisk)
				r.mu.Unlock()
				r.put(t, rec("prod", "after", 10))
				r.kafka.set(nil)
				r.drain()
				r.drained(t)
				if got := ids(r.kafka.records()); !slices.Equal(got, append(want, "after")) {
					t.Errorf("kafka got %v", got)
				}
				r.stop()
			}
		})
	}
}

// A restart finds what was spooled, whichever brokers are there then.
func TestRestart(t *testing.T) {
	d := newDisk()
	r := open(t, d, newKafka())
	r.kafka.set(gone)
	r.put(t, rec("prod", "a", 10), rec("prod", "b", 10))
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := r.Produce(t.Context(), rec("prod", "late", 10)); !errors.Is(err, stream.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	other := newKafka()
	r = open(t, d, other)
	if st := r.Status(); !st.Spooling || st.Records != 2 {
		t.Errorf("%+v", st)
	}
	r.put(t, rec("prod", "c", 10))
	r.drain()
	r.drained(t)
	if got := ids(other.records()); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%v", got)
	}
}

func TestPositionOutlivesTheProcess(t *testing.T) {
	for name, tc := range map[string]struct {
		spoil func(*disk)
		again bool
	}{
		"kept":    {func(*disk) {}, false},
		"damaged": {func(d *disk) { d.names[positionName].bytes[12] ^= 1 }, true},
		"lost":    {func(d *disk) { delete(d.names, positionName) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDisk()
			r := open(t, d, newKafka())
			r.kafka.set(gone)
			for i := range 8 {
				r.put(t, rec("prod", fmt.Sprint(i), 1<<20))
			}
			sent := 0
			r.kafka.set(func([]stream.Record) error {
				if sent++; sent > 1 {
					return stream.ErrTransient
				}
				return nil
			})
			r.drain()
			r.until(t, "some to be sent", func() bool { return r.metric(t, "drained_records_total") > 0 })
			r.stop()
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
			first := len(r.kafka.records())
			tc.spoil(d)
			r = open(t, d, newKafka())
			r.drain()
			r.drained(t)
			got := ids(r.kafka.records())
			want := 8 - first
			if tc.again {
				want = 8
			}
			if len(got) != want || got[len(got)-1] != "7" || first == 0 || first == 8 {
				t.Errorf("%d were sent before, then %v", first, got)
			}
		})
	}
}

func TestDamage(t *testing.T) {
	// Three frames in one segment, and another segment behind it.
	build := func(t *testing.T) *disk {
		d := newDisk()
		r := open(t, d, newKafka(), func(c *Config) { c.SegmentBytes = 3000 })
		r.kafka.set(gone)
		for _, id := range []string{"a", "b", "c", "d"} {
			r.put(t, rec("prod", id, 1000))
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		if n := len(d.files("seg")); n != 2 {
			t.Fatalf("%d segments", n)
		}
		return d.kill()
	}
	const name = "0000000000000001.seg"
	for what, tc := range map[string]struct {
		spoil func(b []byte) []byte
		want  string
		kept  int
		torn  bool
		name  string
	}{
		"nothing":                   {func(b []byte) []byte { return b }, "abcd", 0, false, name},
		"a frame's records":         {func(b []byte) []byte { b[headerBytes+1100+300] ^= 1; return b }, "acd", 1, false, name},
		"a frame's head":            {func(b []byte) []byte { b[heads(b)[1]+9] ^= 1; return b }, "acd", 1, false, name},
		"the segment's beginning":   {func(b []byte) []byte { b[0] ^= 1; return b }, "abcd", 1, false, name},
		"first head":                {func(b []byte) []byte { b[heads(b)[0]] ^= 1; return b }, "bcd", 1, false, name},
		"cut, another is behind it": {func(b []byte) []byte { return b[:len(b)-5] }, "abd", 1, false, name},
		"cut between two frames":    {func(b []byte) []byte { return b[:heads(b)[2]] }, "abd", 1, false, name},
		"longer than acknowledged":  {func(b []byte) []byte { return append(b, b[heads(b)[2]:]...) }, "abcd", 0, false, name},
		"all of it":                 {func(b []byte) []byte { return bytes.Repeat([]byte{7}, len(b)) }, "d", 1, false, name},
		"the newest's end":          {func(b []byte) []byte { return b[:len(b)-5] }, "abc", 0, true, "0000000000000002.seg"},
		"garbage behind the newest": {func(b []byte) []byte { return append(b, "RSF1 garbage that is not a head at all"...) }, "abcd", 0,
			true, "0000000000000002.seg"},
		"zeros behind the newest": {func(b []byte) []byte { return append(b, make([]byte, 5000)...) }, "abcd", 0, true,
			"0000000000000002.seg"},
		"the newest is a header only": {func(b []byte) []byte { return b[:headerBytes] }, "abc", 0, false, "0000000000000002.seg"},
		"the newest is empty":         {func([]byte) []byte { return nil }, "abc", 0, false, "0000000000000002.seg"},
	} {
		t.Run(what, func(t *testing.T) {
			d := build(t)
			d.names[tc.name].bytes = tc.spoil(d.names[tc.name].bytes)
			r := open(t, d, newKafka())
			r.drain()
			r.drained(t)
			if got := strings.Join(ids(r.kafka.records()), ""); got != tc.want {
				t.Errorf("sent %q, want %q", got, tc.want)
			}
			if kept := d.files("kept"); len(kept) != tc.kept {
				t.Errorf("kept %v", kept)
			}
			if got := r.metric(t, "unsent_records_total", damagedFrame); (got > 0) != (tc.kept > 0) {
				t.Errorf("%v records counted as unsent", got)
			}
			if torn := r.metric(t, "torn_bytes_total"); (torn > 0) != tc.torn {
				t.Errorf("%v bytes counted as torn", torn)
			}
			if told := r.logs.FilterMessageSnippet("kept").Len() +
				r.logs.FilterMessageSnippet("truncated").Len(); (told > 0) != (tc.kept > 0 || tc.torn) {
				t.Errorf("the log:\n%s", r.logged())
			}
			if n := r.Status().Records; n != 0 {
				t.Errorf("%d records are left by the status", n)
			}
			// What was kept is found again at the next start, and not sent.
			r.stop()
			again := open(t, d.kill(), newKafka())
			if n := again.metric(t, "kept_segments"); n != float64(tc.kept) || again.Status().Spooling {
				t.Errorf("the next start counts %v kept segments", n)
			}
		})
	}
}

// heads returns where frames begin.
func heads(b []byte) []int {
	var at []int
	for i := headerBytes; i+headBytes <= len(b); {
		h, ok := parseHead(b[i:])
		if !ok {
			return at
		}
		at = append(at, i)
		i += int(h.size)
	}
	return at
}

func TestNewerRelease(t *testing.T) {
	d := newDisk()
	d.names["0000000000000001.seg"] = &inode{bytes: []byte("RTLSPL2\nwhatever is in there")}
	if _, err := tryOpen(d, newKafka()); err == nil || !strings.Contains(err.Error(), "newer release") {
		t.Errorf("%v", err)
	}
	if len(d.files("seg")) != 1 {
		t.Error("it is gone")
	}
}

// Records of a codec this release cannot read are set aside, not lost.
func TestNewerCodec(t *testing.T) {
	d := newDisk()
	r := open(t, d, newKafka())
	r.kafka.set(gone)
	r.put(t, rec("prod", "a", 10))
	// A frame whose record's version header says 9.
	one := rec("prod", "b", 10)
	raw := stream.AppendRecord(nil, &one)
	raw[bytes.Index(raw, []byte("\x02v\x02"))+3] = '9'
	d.names["0000000000000001.seg"].bytes = append(d.names["0000000000000001.seg"].bytes, r.codec.frame("prod", 1, raw).bytes...)
	r = open(t, d.kill(), newKafka())
	r.drain()
	r.drained(t)
	if got := ids(r.kafka.records()); !slices.Equal(got, []string{"a"}) {
		t.Errorf("%v", got)
	}
	if n := r.metric(t, "unsent_records_total", damagedVersion); n != 1 || len(r.disk.files("kept")) != 1 {
		t.Errorf("%v counted, kept %v", n, r.disk.files("kept"))
	}
}

// A broker that takes less than the one the records were meant for.
func TestKafkaTakesLess(t *testing.T) {
	r := open(t, newDisk(), newKafka())
	r.kafka.set(gone)
	for _, id := range []string{"a", "large", "b"} {
		r.put(t, rec("prod", id, 100*len(id)))
	}
	r.kafka.set(func(recs []stream.Record) error {
		for _, rec := range recs {
			if len(rec.Value) > 400 {
				return stream.ErrTooLarge
			}
		}
		return nil
	})
	r.drain()
	r.drained(t)
	if got := ids(r.kafka.records()); !slices.Equal(got, []string{"a", "b"}) {
		t.Errorf("%v", got)
	}
	if n := r.metric(t, "unsent_records_total", damagedSize); n != 1 || len(r.disk.files("kept")) != 1 ||
		r.metric(t, "drained_records_total") != 2 {
		t.Errorf("%v counted, kept %v", n, r.disk.files("kept"))
	}
}

func TestFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "deep", "spool")
	d, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDir(dir); !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), fmt.Sprintf("pid %d", os.Getpid())) {
		t.Errorf("second owner: %v", err)
	}
	if free, err := d.Free(); err != nil || free <= 0 {
		t.Errorf("%d bytes free, %v", free, err)
	}
	k := newKafka()
	k.set(gone)
	s, err := Open(Config{FS: d, MinFree: -1}, k)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Produce(t.Context(), rec("prod", "a", 3<<20)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Close(), d.Close(), d.Close()); err != nil {
		t.Fatal(err)
	}
	if d, err = OpenDir(dir); err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	r := &rig{kafka: newKafka(), stop: func() {}}
	if r.Spool, err = Open(Config{FS: d, MinFree: -1}, r.kafka); err != nil {
		t.Fatal(err)
	}
	r.drain()
	r.until(t, "the spool to be empty", func() bool { return !r.Status().Spooling })
	r.stop()
	if got := r.kafka.records(); len(got) != 1 || !reflect.DeepEqual(got[0], rec("prod", "a", 3<<20)) {
		t.Errorf("%v", ids(got))
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestFolderThatCannotBeUsed(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDir(filepath.Join(file, "spool")); err == nil || !strings.Contains(err.Error(), "spool folder") {
		t.Errorf("below a file: %v", err)
	}
	if os.Getuid() == 0 {
		return // root may write everywhere; the next check would pass for nothing
	}
	dir := filepath.Join(t.TempDir(), "ro")
	if err := os.Mkdir(dir, 0o500); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenDir(dir); !errors.Is(err, os.ErrPermission) {
		t.Errorf("read-only: %v", err)
	}
}

// Crashes at any time, many times over, with Kafka and the disk failing at random: what was
// acknowledged arrives, in the order of its key, nothing twice but what a crash explains.
func TestCrashes(t *testing.T) {
	for seed := range uint64(300) {
		if failed := !t.Run(fmt.Sprint(seed), func(t *testing.T) { crashes(t, seed) }); failed {
			return
		}
	}
}

func crashes(t *testing.T, seed uint64) {
	rnd := rand.New(rand.NewPCG(seed, 1))
	d, k := newDisk(), newKafka()
	var acked []string
	n := 0
	for life := range 6 {
		r := open(t, d, k, func(c *Config) { c.SegmentBytes, c.MaxBytes = 2000, 1<<20 })
		if rnd.IntN(3) > 0 {
			r.drain()
		}
		for range rnd.IntN(30) {
			switch rnd.IntN(12) {
			case 0:
				k.set(gone)
			case 1:
				k.set(nil)
			case 2: // Kafka took it and the answer was lost
				k.set(func(recs []stream.Record) error { k.recs = append(k.recs, recs...); return stream.ErrTransient })
			case 3:
				ops := []string{"write", "sync", "syncdir", "remove", "rename", "open"}
				bad := ops[rnd.IntN(len(ops))]
				d.set(func(op, _ string) error {
					if op == bad {
						return syscall.EIO
					}
					return nil
				})
			case 4, 5:
				d.set(nil)
				r.mu.Lock()
				r.retry = r.retry.Add(-retryDisk)
				r.mu.Unlock()
			default:
				id := fmt.Sprintf("%d", n)
				n++
				one := rec("prod", id, 1+rnd.IntN(600))
				one.Key = []byte("key")
				if r.Produce(t.Context(), one) == nil {
					acked = append(acked, id)
				}
			}
		}
		d.set(nil)
		r.stop()
		switch {
		case life == 5 || rnd.IntN(4) == 0:
			if err := r.Close(); err != nil {
				t.Fatal(err)
			}
		case rnd.IntN(2) == 0:
			d = d.kill()
			if names := d.files("seg"); len(names) > 0 && rnd.IntN(2) == 0 { // it died while it wrote
				file := d.names[slices.Max(names)]
				if at := heads(file.bytes); len(at) > 0 {
					frame := file.bytes[at[len(at)-1]:]
					file.bytes = append(file.bytes, frame[:rnd.IntN(len(frame))]...)
				}
			}
		default:
			d = d.powerLoss(rnd)
		}
	}
	k.set(nil)
	r := open(t, d, k)
	r.drain()
	r.drained(t)
	r.stop()
	got := ids(k.records())
	at := -1
	for _, id := range acked {
		first := slices.Index(got, id)
		if first < 0 {
			t.Fatalf("%s was acknowledged and never arrived; arrived: %v\n%s", id, got, r.logged())
		}
		if first < at {
			t.Errorf("%s came before one that was acknowledged before it: %v", id, got)
		}
		at = first
	}
	if kept := d.files("kept"); len(kept) > 0 {
		t.Errorf("%v kept: nothing was damaged but what nobody was told of\n%s", kept, r.logged())
	}
}

// Posts of many clusters while Kafka comes and goes.
func TestConcurrently(t *testing.T) {
	r := open(t, newDisk(), newKafka(), func(c *Config) { c.SegmentBytes = 20 << 10 })
	r.drain()
	var wg sync.WaitGroup
	for c := range 8 {
		wg.Go(func() {
			for i := range 150 {
				if c == 0 && i%15 == 0 {
					r.kafka.set(gone)
				}
				if c == 0 && i%15 == 7 {
					r.kafka.set(nil)
				}
				one := rec(fmt.Sprintf("c%d", c), fmt.Sprint(i), 500)
				one.Key = binary.BigEndian.AppendUint32(nil, uint32(c))
				r.put(t, one)
			}
		})
	}
	wg.Wait()
	r.kafka.set(nil)
	r.drained(t)
	next := map[string]int{}
	for _, got := range r.kafka.records() {
		id := ids([]stream.Record{got})[0]
		if id != fmt.Sprint(next[got.Cluster]) {
			t.Fatalf("cluster %s: %s came, %d was next", got.Cluster, id, next[got.Cluster])
		}
		next[got.Cluster]++
	}
	for c := range 8 {
		if n := next[fmt.Sprintf("c%d", c)]; n != 150 {
			t.Errorf("c%d: %d arrived", c, n)
		}
	}
	if r.metric(t, "spooled_records_total") == 0 {
		t.Error("nothing was spooled: the test shows nothing")
	}
}
