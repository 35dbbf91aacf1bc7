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
		name  string
		epoch uint32
		p     Pending
		want  string
	}{
		{"nothing", 0, NoPending(nil), "r1;e=0"},
		{"range", 4294967295, Pending{First: 0, Last: 0}, "r1;e=4294967295;p=0-0"},
		{"range and policy", 7, Pending{First: 1200, Last: 1399, PolicyOffsets: map[int32]int64{3: 5, 0: 17, 1: 0}}, "r1;e=7;p=1200-1399;o=0:17,1:0,3:5"},
		{"policy alone", 7, NoPending(map[int32]int64{2: 9223372036854775807}), "r1;e=7;o=2:9223372036854775807"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := encodeMetadata(tc.epoch, tc.p)
			if err != nil || s != tc.want {
				t.Fatalf("encoded %q, %v, want %q", s, err, tc.want)
			}
			epoch, p, err := decodeMetadata(s)
			if err != nil || epoch != tc.epoch || !reflect.DeepEqual(p, tc.p) {
				t.Errorf("decoded %d %+v %v", epoch, p, err)
			}
		})
	}
	if s, err := encodeMetadata(1, NoPending(many)); err == nil {
		t.Errorf("metadata of %d bytes was accepted", len(s))
	}
}

func TestMetadataOfOthers(t *testing.T) {
	for _, s := range []string{"", "r0;e=1", "{}", "r1;e=x", "r1;e=1;p=3", "r1;e=1;p=a-b", "r1;e=1;p=1-", "r1;e=1;o=1", "r1;e=1;o=x:1", "r1;e=99999999999"} {
		if _, p, err := decodeMetadata(s); !errors.Is(err, errMetadata) || p.Has() {
			t.Errorf("decodeMetadata(%q) = %+v, %v", s, p, err)
		}
	}
	if epoch, p, err := decodeMetadata("r1;e=3;z=later;p=1-2"); err != nil || epoch != 3 || p.Last != 2 {
		t.Errorf("a field of a later version is not skipped: %d %+v %v", epoch, p, err)
	}
}

func FuzzDecodeMetadata(f *testing.F) {
	f.Add("r1;e=7;p=1200-1399;o=0:17,1:0,3:5")
	f.Fuzz(func(t *testing.T, s string) {
		epoch, p, err := decodeMetadata(s)
		if err != nil || len(s) > 1000 {
			return
		}
		again, err := encodeMetadata(epoch, p)
		if err != nil {
			t.Fatal(err)
		}
		e2, p2, err := decodeMetadata(again)
		if err != nil || e2 != epoch || p2.Has() != p.Has() || p.Has() && (p2.First != p.First || p2.Last != p.Last) || len(p2.PolicyOffsets) != len(p.PolicyOffsets) {
			t.Errorf("%q became %q: %d %+v, %d %+v, %v", s, again, epoch, p, e2, p2, err)
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
