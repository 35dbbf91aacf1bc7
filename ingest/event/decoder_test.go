package event

import (
	"bytes"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/retrial-io/retrial/internal/jsontext"
	"github.com/retrial-io/retrial/test/recorded"
)

// TestDecoder holds decoding many in shared memory, with and without the lengths of the bodies,
// against decoding each alone.
func TestDecoder(t *testing.T) {
	var with, without Decoder
	type pair struct{ got, want *Event }
	var pairs []pair
	for range 3 {
		for _, line := range recorded.Slice(t) {
			e, err := Decode(line)
			if err != nil {
				if _, got := without.Decode(line, Bodies{}); got == nil || got.Error() != err.Error() {
					t.Fatalf("%v, alone %v", got, err)
				}
				continue
			}
			canonical := AppendJSON(nil, e)
			want, err := Decode(canonical)
			if err != nil {
				t.Fatal(err)
			}
			got, err := with.Decode(canonical, BodiesOf(e))
			if err != nil {
				t.Fatal(err)
			}
			plain, err := without.Decode(line, Bodies{})
			if err != nil {
				t.Fatal(err)
			}
			pairs = append(pairs, pair{got, want}, pair{plain, e})
		}
	}
	if len(pairs) < 4*decoderChunk {
		t.Fatalf("only %d events: no chunk was followed by another", len(pairs))
	}
	// All are compared in the end: none may have been written over by a later one.
	for _, p := range pairs {
		if !reflect.DeepEqual(p.got, p.want) {
			t.Fatalf("got %+v\nwant %+v", p.got, p.want)
		}
	}
}

// TestDecoderWithWrongBodies: lengths that are not true cost time, not the event.
func TestDecoderWithWrongBodies(t *testing.T) {
	var d Decoder
	var tried int
	for _, line := range recorded.Slice(t) {
		want, err := Decode(line)
		if err != nil || len(want.RequestObject)+len(want.ResponseObject) == 0 {
			continue
		}
		canonical := AppendJSON(nil, want)
		right := BodiesOf(want)
		for _, b := range []Bodies{{1, 1}, {right.Request + 1, right.Response}, {right.Request, right.Response + 1},
			{right.Request - 1, right.Response - 1},
			{len(canonical), len(canonical)}, {-1, -1}, {0, right.Response}, {right.Request, 0}, {2, 2}} {
			tried++
			got, err := d.Decode(canonical, b)
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Fatalf("bodies %+v of %+v: %v\n got %+v\nwant %+v", b, right, err, got, want)
			}
		}
	}
	if tried == 0 {
		t.Fatal("no event with a body")
	}
}

// TestLists decodes lists of changing sizes, good and bad, into the same memory.
func TestLists(t *testing.T) {
	lines := recorded.Slice(t)
	bodies := [][]byte{recorded.List(lines[:3]...), recorded.List(lines...), []byte(`{"items":[{},{"verb":1}],"kind":"EventList",` +
		`"apiVersion":"audit.k8s.io/v1"}`),
		[]byte(`{"items":[{"verb":"get","user":{"groups":["a","b"]}},`), []byte(listHead + "]}"), recorded.List(lines[5:20]...),
		recorded.List(append(append([][]byte{}, lines...), lines...)...), recorded.List(lines[:1]...)}
	var l Lists
	for round := range 3 {
		for i, body := range bodies {
			t.Run(fmt.Sprintf("round=%d/list=%d", round, i), func(t *testing.T) {
				want, wantErr := collect(body)
				var got []Item
				err := l.Decode(body, func(item Item) error { got = append(got, item); return nil })
				if fmt.Sprint(err) != fmt.Sprint(wantErr) || !reflect.DeepEqual(got, want) {
					t.Fatalf("%d items, %v; want %d, %v", len(got), err, len(want), wantErr)
				}
			})
		}
	}
	l.Forget()
	for i := range l.blocks {
		if !reflect.DeepEqual(l.blocks[i], block{}) {
			t.Fatalf("event %d is not forgotten", i)
		}
	}
	for i, s := range l.strs {
		if s != "" {
			t.Fatalf("string %d is not forgotten", i)
		}
	}
}

// FuzzDecoder gives bodies' lengths that may be wrong. Right ones change nothing; with wrong
// ones it may be another event, but one that can be written and read again.
func FuzzDecoder(f *testing.F) {
	for i, line := range recorded.Slice(f) {
		f.Add(line, i, -i)
	}
	f.Fuzz(func(t *testing.T, raw []byte, request, response int) {
		e, err := Decode(raw)
		if err != nil {
			return
		}
		var d Decoder
		canonical := AppendJSON(nil, e)
		got, err := d.Decode(canonical, BodiesOf(e))
		if err != nil || !bytes.Equal(AppendJSON(nil, got), canonical) {
			t.Fatalf("%v: %s\nfrom %s", err, AppendJSON(nil, got), canonical)
		}
		if _, err := d.Decode(canonical, Bodies{request, response}); err != nil {
			t.Fatalf("bodies of %d and %d bytes: %v", request, response, err)
		}
		var at *jsontext.Error
		if _, err := d.Decode(raw[:len(raw)/2], Bodies{request, response}); err != nil && !errors.As(err, &at) {
			t.Fatal(err)
		}
	})
}
