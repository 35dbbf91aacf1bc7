package jsontext

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/retrial-io/retrial/test/recorded"
)

// sameValue holds Value against encoding/json.
func sameValue(t *testing.T, raw []byte) (ok bool) {
	t.Helper()
	got, ok := Value(raw)
	if !ok {
		return false
	}
	var want any
	if err := json.Unmarshal(raw, &want); err != nil || !reflect.DeepEqual(got, want) {
		t.Fatalf("%s\n got %#v\nwant %#v, %v", raw, got, want, err)
	}
	return true
}

func TestValue(t *testing.T) {
	for text, want := range map[string]bool{
		`{"a":[1,-2.5e3,true,false,null,"x\u00e9\n",{}],"b":{"c":[]},"a":2}`: true,
		` [ ] `:             true,
		`"\ud800"`:          true,
		"\"\xff\"":          true,
		`null`:              true,
		`0`:                 true,
		`1e999`:             false, // encoding/json has an opinion
		`nul`:               false,
		`truth`:             false,
		`[1,]`:              false,
		`{"a":1}{}`:         false,
		``:                  false,
		`{"a" 1}`:           false,
		`[1`:                false,
		"\"\n\"":            false,
		`{"a":"b","a":01}`:  false,
		`{"a":{"b":[{}]}} `: true,
	} {
		if got := sameValue(t, []byte(text)); got != want {
			t.Errorf("%s: read %t, want %t", text, got, want)
		}
	}
	for _, line := range recorded.Slice(t) {
		if !sameValue(t, line) {
			t.Errorf("a recorded event is not read: %s", line)
		}
	}
}

func FuzzValue(f *testing.F) {
	for _, line := range recorded.Slice(f) {
		f.Add(line)
	}
	f.Add([]byte(`{"a":[1,-2.5e3,true,false,null,"x\u00e9\n",{}],"b":{"c":[]},"a":2}`))
	f.Fuzz(func(t *testing.T, raw []byte) { sameValue(t, raw) })
}
