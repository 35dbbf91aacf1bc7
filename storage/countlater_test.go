package storage_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// usages is what the usage of a store comes to.
const usages = "SELECT sum(count) FROM retrial.access_usage WHERE implied = ''"

// TestCountedWhenAsked: an insert fills no rollup of accesses, and whoever asks finds all of it in every one. So does whoever opens
// the store after a process that did not count.
func TestCountedWhenAsked(t *testing.T) {
	dir, in := t.TempDir(), rows(t, "c", 0)
	s, stop := storagetest.Start(t, dir)
	insert(t, s, "a", in[:100])
	insert(t, s, "b", in[100:200])
	if n := s.Uncounted(t, usages); n != 0 {
		t.Errorf("two inserts counted %d rows, want none", n)
	}
	judged := func(in []verdict.Row) (n int64) {
		for i := range in {
			if in[i].Verdict != nil {
				n++
			}
		}
		return n
	}
	if v := consistent(t, s); v.Usage != judged(in[:200]) {
		t.Errorf("%d requests are counted, want %d", v.Usage, judged(in[:200]))
	}
	insert(t, s, "c", in[200:])
	if n := s.Uncounted(t, usages); n != judged(in[:200]) {
		t.Errorf("%d requests are counted before somebody asks again, want %d", n, judged(in[:200]))
	}
	stop()

	s, stop = storagetest.Start(t, dir)
	defer stop()
	if n := s.Uncounted(t, usages); n != judged(in) {
		t.Errorf("a new process has counted %d requests, want %d", n, judged(in))
	}
	insert(t, s, "d", rows(t, "d", 1))
	if v := consistent(t, s); v.Usage != 2*judged(in) {
		t.Errorf("%d requests are counted, want %d", v.Usage, 2*judged(in))
	}
}

// TestFirstRowsOfAClusterCountNothing: what the store counts on a cluster's first day is known without counting the others' rows; on a day
// that begins while rows of the cluster itself are not counted, these come first.
func TestFirstRowsOfAClusterCountNothing(t *testing.T) {
	s := storagetest.Open(t)
	insert(t, s, "a", rows(t, "c", 0)[:100])
	insert(t, s, "b", rows(t, "d", 0)[:100])
	if n := s.Uncounted(t, usages); n != 0 {
		t.Errorf("the first rows of a cluster had %d of another counted, want none", n)
	}
	next := rows(t, "c", 0)[100:200]
	for i := range next {
		e := *next[i].Event
		e.RequestReceivedTimestamp, e.StageTimestamp = e.RequestReceivedTimestamp.Add(24*time.Hour), e.StageTimestamp.Add(24*time.Hour)
		next[i].Event = &e
	}
	insert(t, s, "c", next)
	if n := s.Uncounted(t, usages); n == 0 {
		t.Error("the first rows of a day had none of the cluster's rows before counted")
	}
}

// TestCorrectionsOfUncountedRows: rows are taken back before anybody counted them, and merged away with what takes them back.
func TestCorrectionsOfUncountedRows(t *testing.T) {
	s := storagetest.Open(t)
	in := rows(t, "c", 0)
	insert(t, s, "a", in)
	insert(t, s, "b", takenBack(in[:300]))
	s.Exec(t, "OPTIMIZE TABLE retrial.events FINAL")
	if n := s.Uncounted(t, "SELECT toInt64(count()) FROM retrial.events"); n != int64(len(in)) {
		t.Fatalf("events has %d rows after a merge, want %d", n, len(in))
	}
	if v := consistent(t, s); v.Events != int64(len(in)) {
		t.Fatalf("%d events stand, want %d", v.Events, len(in))
	}
}

// takenBack takes rows back and puts others in their places.
func takenBack(in []verdict.Row) (out []verdict.Row) {
	for _, now := range in {
		back := now
		back.Sign = -1
		if now.Verdict != nil {
			now = correct(now)
		}
		now.Revision = 2
		out = append(out, back, now)
	}
	return out
}

// interrupting fails one statement that changes something: before it is run, or after.
type interrupting struct {
	next http.RoundTripper

	mu    sync.Mutex
	left  int // statements until then; negative: none fails
	after bool
}

var errInterrupted = errors.New("interrupted")

func (i *interrupting) at(n int, after bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.left, i.after = n, after
}

// over reports whether the statement has been reached.
func (i *interrupting) over() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.left < 0
}

func (i *interrupting) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Body == nil {
		return i.next.RoundTrip(req)
	}
	sql, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body = io.NopCloser(bytes.NewReader(sql))
	i.mu.Lock()
	now, after := false, i.after
	if bytes.HasPrefix(sql, []byte("INSERT")) && i.left >= 0 {
		now = i.left == 0
		i.left--
	}
	i.mu.Unlock()
	if now && !after {
		return nil, errInterrupted
	}
	res, err := i.next.RoundTrip(req)
	if now && err == nil {
		res.Body.Close()
		return nil, errInterrupted
	}
	return res, err
}

// TestInterruptedCount: counting ends at each of its statements, before or after it has taken effect. Then the same process goes on,
// with more rows, or another opens the store. Every rollup is as if nothing had happened.
func TestInterruptedCount(t *testing.T) {
	storagetest.Need(t)
	engine, err := embedded.Open(embedded.Config{Path: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close() })
	line := &interrupting{next: engine, left: -1}
	open := func() *storage.Store {
		t.Helper()
		s, err := storage.Open(context.Background(), storage.Config{Transport: line})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { s.Close() })
		return s
	}
	in := rows(t, "c", 0)
	// begin empties the store and gives it rows; end gives it the rest and returns what its rollups come to.
	begin := func() *storage.Store {
		t.Helper()
		s := open()
		for _, table := range s.Strings(t, "SELECT name FROM system.tables WHERE database = 'retrial' AND engine LIKE '%%MergeTree' "+
			"AND name NOT IN ('schema_version', 'meta')") {
			s.Exec(t, "TRUNCATE TABLE retrial."+table)
		}
		insert(t, s, "a", in[:100])
		consistent(t, s)
		insert(t, s, "b", takenBack(in[:20]))
		insert(t, s, "c", in[100:200])
		insert(t, s, "d", rows(t, "d", 1)[:100])
		return s
	}
	end := func(s *storage.Store) []string {
		t.Helper()
		insert(t, s, "e", in[200:])
		consistent(t, s)
		return sumsOf(t, s)
	}
	want := end(begin())
	for n, reached := 0, true; reached; n++ {
		for _, after := range []bool{false, true} {
			s := begin()
			line.at(n, after)
			err := s.RollUp(context.Background())
			reached = line.over()
			line.at(-1, false)
			if reached != (err != nil) {
				t.Fatalf("statement %d: reached %v, error: %v", n, reached, err)
			}
			reopened := (n%2 == 0) == after
			if reopened {
				s = open()
			}
			if got := end(s); !slices.Equal(got, want) {
				t.Errorf("statement %d, after it %v, another process %v: rollups differ\n want %s\n is   %s", n, after, reopened, want, got)
			}
		}
		if !reached && n < 8 {
			t.Fatalf("counting has %d statements", n)
		}
	}
}

// sumsOf returns a hash of what each rollup comes to, first and last times and partitions included.
func sumsOf(t *testing.T, s *storage.Store) (out []string) {
	t.Helper()
	const times = ", sum(count) AS n, min(first_seen), max(last_seen)"
	for table, query := range map[string]string{
		"access_usage": "SELECT cluster, day, access, recorded, replayed, outcome, class, kpart, ingest_day, implied, covered" + times,
		"grant_usage":  "SELECT cluster, day, granted, access, kpart, ingest_day, implied" + times,
		"unmatched": "SELECT cluster, slot, outcome, class, subject, apiserver, cause, missing, recorded, recorded_reason, replayed, " +
			"code, config_version, kpart, ingest_day, imported" + times,
		"objects": "SELECT cluster, resource, namespace, name, slot, user_name, verb, subresource, recorded, kpart, ingest_day, " +
			"imported" + times,
		"arrivals": "SELECT cluster, ingested, apiserver, source, day, kpart, ingest_day, imported, sum(count) AS n",
		"refused":  "SELECT * EXCEPT count, sum(count) AS n",
		"halves":   "SELECT cluster, minute, kpart, ingest_day, imported, sum(digest), sum(count) AS n",
		"volume":   "SELECT cluster, minute, recorded, replayed, outcome, class, kpart, ingest_day, sum(count) AS n",
		"activity": "SELECT cluster, slot, subject, user_agent, recorded, outcome, kpart, ingest_day, sum(count) AS n",
		"accesses": "SELECT cluster, access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path, " +
			"max(seen), 1 AS n",
		"group_sets": "SELECT group_set, groups, max(seen), 1 AS n",
	} {
		sums := s.Strings(t, fmt.Sprintf("SELECT toString(groupBitXor(cityHash64(*))) FROM (%s FROM retrial.%s GROUP BY ALL "+
			"HAVING n != 0) WHERE 1", query, table))
		out = append(out, table+" "+strings.Join(sums, ","))
	}
	slices.Sort(out)
	return out
}

// TestCountedLikeByViews: what is counted later is what views of events count where other processes write, corrections included.
func TestCountedLikeByViews(t *testing.T) {
	in := rows(t, "c", 0)
	var want []string
	for name, open := range map[string]func(testing.TB) *storage.Store{"later": storagetest.Open, "by views": storagetest.OpenShared} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			insert(t, s, "a", in[:200])
			insert(t, s, "b", takenBack(in[50:100]))
			insert(t, s, "c", in[200:])
			consistent(t, s)
			got := sumsOf(t, s)
			if want == nil {
				want = got
			}
			if !slices.Equal(got, want) {
				t.Errorf("rollups differ\n %s\n %s", want, got)
			}
		})
	}
}
