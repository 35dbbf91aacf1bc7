package kept

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// TestPlainHead names the heads that are read quickly.
func TestPlainHead(t *testing.T) {
	for text, want := range map[string]bool{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","deletionTimestamp":"2026-01-02T00:00:00Z",` +
			`"deletionGracePeriodSeconds":30,"finalizers":["x"],"labels":{}},"spec":{"nodeName":"n"}}`: true,
		`{"kind":"Namespace","metadata":{},"spec":{"finalizers":["kubernetes"]}}`: true,
		`{"metadata":{"deletionGracePeriodSeconds":1.5}}`:                         false,
		`{"metadata":{"deletionGracePeriodSeconds":99999999999999999999}}`:        false,
		`{"metadata":{"finalizers":null}}`:                                        false,
		`{"kind":null}`:                                                           false,
	} {
		var h Head
		p := jsontext.NewPlain([]byte(text))
		if got := h.readPlainly(&p); got != want {
			t.Errorf("%s: read quickly %t, want %t", text, got, want)
		}
	}
}

// FuzzHead holds heads read plainly against encoding/json.
func FuzzHead(f *testing.F) {
	f.Add([]byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","deletionGracePeriodSeconds":30,"finalizers":["x"]},"spec":{` +
		`"finalizers":[]}}`))
	f.Add([]byte(`{"Kind":"Pod","metadata":null}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want Head
		wantErr := json.Unmarshal(raw, &want)
		if got, err := ReadHead(raw); (err == nil) != (wantErr == nil) || err == nil && !reflect.DeepEqual(got, want) {
			t.Fatalf("got %+v, error %v\nwant %+v, error %v", got, err, want, wantErr)
		}
	})
}
