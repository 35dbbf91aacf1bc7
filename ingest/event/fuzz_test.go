package event

import (
	"bytes"
	"errors"
	"reflect"
	"testing"

	"github.com/retrial-io/retrial/internal/jsontext"
	"github.com/retrial-io/retrial/test/recorded"
)

// addEvents seeds a fuzz target with recorded events, and with texts the grammar is about.
func addEvents(f *testing.F, wrap func([]byte) []byte) {
	for _, line := range recorded.Slice(f) {
		f.Add(wrap(line))
	}
	for _, text := range []string{"", "{}", "null", "[]", `{"user":{}}`, `{"verb":"\ud800"}`, "{\"verb\":\"\xff\"}", `{"requestObject": ` +
		`[ 1e9 , {"a" : null} ] }`,
		`{"responseStatus":{"code":-1}}`, `{"annotations":{"b":"","a":null}}`, `{"user":{"extra":{"a":["",null]}}}`} {
		f.Add(wrap([]byte(text)))
	}
}

// FuzzDecode compares with upstream's decoder wherever both accept, and takes what was
// decoded through the encoder and back.
func FuzzDecode(f *testing.F) {
	addEvents(f, func(b []byte) []byte { return b })
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := Decode(raw)
		if err != nil {
			var at *jsontext.Error
			if !errors.As(err, &at) || at.Offset < 0 || at.Offset > len(raw) || e != nil {
				t.Fatalf("%v at %+v", err, at)
			}
			return
		}
		if u, err := upstream(raw); err == nil && !repeated(raw) {
			sameAsUpstream(t, raw, e, u)
		}
		canonical := AppendJSON(nil, e)
		again, err := Decode(canonical)
		if err != nil || !reflect.DeepEqual(again, e) {
			t.Fatalf("round trip: %v\n got %+v\nwant %+v", err, again, e)
		}
		if !bytes.Equal(AppendJSON(nil, again), canonical) {
			t.Fatal("encoding is not stable")
		}
	})
}

// FuzzDecodeList holds a list against its items decoded alone.
func FuzzDecodeList(f *testing.F) {
	addEvents(f, func(b []byte) []byte { return append(append([]byte(listHead), b...), "]}"...) })
	f.Add(recorded.List(recorded.Slice(f)[:3]...))
	f.Add([]byte(`{"items":[{},{"verb":1}],"kind":"EventList","apiVersion":"audit.k8s.io/v1"}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		items, err := collect(body)
		if err != nil {
			if !errors.Is(err, ErrNotEventList) || len(items) != 0 {
				t.Fatalf("%d items, %v", len(items), err)
			}
			return
		}
		for i, item := range items {
			alone, err := Decode(item.Raw)
			if item.Index != i || (err == nil) != (item.Err == nil) || !reflect.DeepEqual(alone, item.Event) {
				t.Fatalf("item %d: %v, alone %v\n%s", i, item.Err, err, item.Raw)
			}
		}
	})
}
