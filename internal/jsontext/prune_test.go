package jsontext

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/retrial-io/retrial/test/recorded"
)

func pruneShape() *Shape {
	return ShapeOf(map[string]*Shape{
		"kind": nil,
		"metadata": ShapeOf(map[string]*Shape{
			"name": nil, "labels": nil,
		}),
		"items": ShapeOf(map[string]*Shape{"name": nil}),
	})
}

func TestPrune(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"members", `{"kind":"K","other":{"a":[1,2]},"metadata":{"uid":"u","name":"n","x":1},"z":null}`, `{"kind":"K",` +
			`"metadata":{"name":"n"}}`},
		{"white space", " { \"kind\" : \"K\" , \"a\" : 1 , \"metadata\" : { \"name\" : \"n\" } } \n", `{"kind":"K",` +
			`"metadata":{"name":"n"}}`},
		{"whole values stay as they are", `{"metadata":{"labels":{"a": [1, {"b":2}]}}}`, `{"metadata":{"labels":{"a": [1, {"b":2}]}}}`},
		{"elements", `{"items":[{"name":"a","x":1},3,null,[{"x":2}]]}`, `{"items":[{"name":"a"},3,null,[{}]]}`},
		{"other types", `{"metadata":"text","items":7,"kind":{"a":1}}`, `{"metadata":"text","items":7,"kind":{"a":1}}`},
		{"twice", `{"kind":"a","kind":"b"}`, `{"kind":"a","kind":"b"}`},
		{"other letters' case", `{"KIND":"a","Metadata":{"x":1},"kin":1}`, `{"KIND":"a","Metadata":{"x":1}}`},
		{"escaped and not ASCII", `{"k\u0069nd":"a","ſ":1,"x":2}`, `{"k\u0069nd":"a","ſ":1}`},
		{"nothing", `{"a":1,"b":{}}`, `{}`},
		{"empty", `{}`, `{}`},
		{"empty name", `{"":1,"kind":2}`, `{"kind":2}`},
		{"no object", `[{"kind":1,"x":2}]`, `[{"kind":1}]`},
		{"broken", `{"kind":1,"x":}`, `{"kind":1,"x":}`},
		{"cut", `{"kind":1,"metadata":{"x":1`, `{"kind":1,"metadata":{"x":1`},
		{"comma at the end", `{"kind":1,}`, `{"kind":1,}`},
		{"more behind it", `{"kind":1,"x":1}{}`, `{"kind":1,"x":1}{}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := string(Prune([]byte("before "), []byte(c.text), pruneShape())); got != "before "+c.want {
				t.Errorf("got %s\nwant before %s", got, c.want)
			}
		})
	}
}

// FuzzPrune holds what encoding/json reads of the pruned against what it reads of the whole.
func FuzzPrune(f *testing.F) {
	for _, line := range recorded.Slice(f) {
		f.Add(line)
		var bodies struct{ RequestObject, ResponseObject json.RawMessage }
		if json.Unmarshal(line, &bodies) == nil {
			f.Add([]byte(bodies.RequestObject))
			f.Add([]byte(bodies.ResponseObject))
		}
	}
	shape := pruneShape()
	f.Fuzz(func(t *testing.T, raw []byte) {
		type read struct {
			Kind     any `json:"kind"`
			Metadata struct {
				Name   any `json:"name"`
				Labels any `json:"labels"`
			} `json:"metadata"`
			Items []struct {
				Name any `json:"name"`
			} `json:"items"`
		}
		var whole, pruned read
		wholeErr := json.Unmarshal(raw, &whole)
		prunedErr := json.Unmarshal(Prune(nil, raw, shape), &pruned)
		if (wholeErr == nil) != (prunedErr == nil) || !reflect.DeepEqual(whole, pruned) {
			t.Fatalf("%s\nwhole  %+v, %v\npruned %+v, %v", raw, whole, wholeErr, pruned, prunedErr)
		}
	})
}
