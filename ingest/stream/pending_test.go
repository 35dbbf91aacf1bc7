package stream

import (
	"errors"
	"reflect"
	"strings"
	"testing"
)

func TestMetadataRoundTrip(t *testing.T) {
	many := map[int32]int64{}
	for i := range int32(500) {
		many[i] = 1 << 60
	}
	for _, tc := range []struct {
		name string
		m    metadata
		want string
	}{
		{"nothing", metadata{pending: NoPending(nil)}, "r1;e=0"},
		{"range", metadata{epoch: 4294967295, pending: Pending{First: 0, Last: 0}}, "r1;e=4294967295;p=0-0"},
		{"range and policy", metadata{epoch: 7, pending: Pending{First: 1200, Last: 1399,
			PolicyOffsets: map[int32]int64{3: 5, 0: 17, 1: 0}}}, "r1;e=7;p=1200-1399;o=0:17,1:0,3:5"},
		{"policy alone", metadata{epoch: 7, pending: NoPending(map[int32]int64{2: 9223372036854775807})}, "r1;e=7;o=2:9223372036854775807"},
		{"fingerprint", metadata{epoch: 7, pending: NoPending(nil), done: 1<<64 - 1}, "r1;e=7;r=ffffffffffffffff-0"},
		{"fingerprints", metadata{epoch: 7, pending: Pending{First: 1, Last: 2}, done: 10, announced: 11}, "r1;e=7;p=1-2;r=a-b"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := tc.m.encode()
			if err != nil || s != tc.want {
				t.Fatalf("encoded %q, %v, want %q", s, err, tc.want)
			}
			m, err := decodeMetadata(s)
			if err != nil || !reflect.DeepEqual(m, tc.m) {
				t.Errorf("decoded %+v %v", m, err)
			}
		})
	}
	if s, err := (metadata{epoch: 1, pending: NoPending(many)}).encode(); err == nil {
		t.Errorf("metadata of %d bytes was accepted", len(s))
	}
}

func TestMetadataOfOthers(t *testing.T) {
	for _, s := range []string{"", "r0;e=1", "{}", "r1;e=x", "r1;e=1;p=3", "r1;e=1;p=a-b", "r1;e=1;p=1-", "r1;e=1;o=1", "r1;e=1;o=x:1",
		"r1;e=1;r=1", "r1;e=1;r=g-1", "r1;e=1;r=1-g", "r1;e=99999999999"} {
		if m, err := decodeMetadata(s); !errors.Is(err, errMetadata) || m.pending.Has() {
			t.Errorf("decodeMetadata(%q) = %+v, %v", s, m, err)
		}
	}
	if m, err := decodeMetadata("r1;e=3;z=later;p=1-2"); err != nil || m.epoch != 3 || m.pending.Last != 2 {
		t.Errorf("a field of a later version is not skipped: %+v %v", m, err)
	}
}

func FuzzDecodeMetadata(f *testing.F) {
	f.Add("r1;e=7;p=1200-1399;r=1f-a0;o=0:17,1:0,3:5")
	f.Fuzz(func(t *testing.T, s string) {
		m, err := decodeMetadata(s)
		if err != nil || len(s) > 1000 {
			return
		}
		again, err := m.encode()
		if err != nil {
			t.Fatal(err)
		}
		if !m.pending.Has() { // a range of none is not written
			m.pending.First, m.pending.Last = -1, -1
		}
		if len(m.pending.PolicyOffsets) == 0 {
			m.pending.PolicyOffsets = nil
		}
		if m2, err := decodeMetadata(again); err != nil || !reflect.DeepEqual(m2, m) {
			t.Errorf("%q became %q: %+v, %+v, %v", s, again, m, m2, err)
		}
	})
}

func TestVerifyCommit(t *testing.T) {
	for _, tc := range []struct {
		name      string
		committed int64
		metadata  string
		end       int64
		ok        bool
		want      string
	}{
		{"at the end", 10, "r1;e=3", 10, true, ""},
		{"below the end", 4, "r1;e=3;p=4-9", 10, true, ""},
		{"past the end", 11, "r1;e=3;o=0:5", 10, false, "r1;e=4"},
		{"announced past the end", 4, "r1;e=3;p=4-10", 10, false, "r1;e=4"},
		{"log is gone", 30000, "r1;e=3", 0, false, "r1;e=4"},
		{"no metadata, fine", 10, "", 10, true, ""},
		{"no metadata, past the end", 11, "", 10, false, ""},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := VerifyCommit(tc.committed, tc.metadata, tc.end)
			if got != tc.want || ok != tc.ok || strings.Contains(got, "p=") {
				t.Errorf("got %q, %v, want %q, %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}
