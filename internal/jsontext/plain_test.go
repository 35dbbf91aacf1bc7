package jsontext

import (
	"slices"
	"testing"
)

// TestPlain: what is read plainly, and what is left to encoding/json.
func TestPlain(t *testing.T) {
	for text, want := range map[string]bool{
		` { "names" : [ "a" , "b" ] , "n" : -5 , "other" : { "x" : [1.5, null, "\u00e9"] } } `: true,
		`{}`:                         true,
		`{"names":[]}`:               true,
		`{"names":["a","b"],"n":7}`:  true,
		`{"names":["\u0061"]}`:       false,
		`{"names":["é"]}`:            false,
		`{"Names":[]}`:               false,
		`{"names":[],"names":[]}`:    false,
		`{"names":null}`:             false,
		`{"n":1.5}`:                  false,
		`{"n":99999999999999999999}`: false,
		`{"n":"1"}`:                  false,
		`{"n":1,}`:                   false,
		`{"n":1} x`:                  false,
		`{"n":1`:                     false,
		"{\"n\":1}\x00":              false,
		`[]`:                         false,
		``:                           false,
	} {
		p := NewPlain([]byte(text))
		var names []string
		var n int64
		got := p.Object([]string{"names", "n"}, func(i int) bool {
			if i == 0 {
				return p.Texts(&names)
			}
			return p.Integer(&n)
		}) && p.Done()
		if got != want {
			t.Errorf("%s: read plainly %t, want %t", text, got, want)
		}
	}
	p := NewPlain([]byte(`{"names":["a","b"]}`))
	var names []string
	if p.Object([]string{"names"}, func(int) bool { return p.Texts(&names) }); !slices.Equal(names, []string{"a", "b"}) {
		t.Errorf("got %q", names)
	}
}
