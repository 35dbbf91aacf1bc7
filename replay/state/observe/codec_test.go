package observe

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/retrial-io/retrial/internal/jsontext"
	"github.com/retrial-io/retrial/replay/state/instant"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// TestPlainObservation makes sure that what Append writes is read quickly.
func TestPlainObservation(t *testing.T) {
	for _, o := range []Observation{
		{Source: SourceAudit, Resource: kept.Roles, Namespace: "n", Name: "r", UID: "u", ResourceVersion: "5",
			Object: []byte(`{"rules":[]}`), NotBefore: instant.Time(1_000), NotAfter: instant.Time(2_000)},
		{Source: SourceAudit, Resource: kept.Roles, Namespace: "n", Name: "r", Unknown: true, Patch: true,
			Object: []byte(`[{"op":"remove","path":"/rules/0"}]`), NotBefore: instant.Time(1), NotAfter: instant.Time(2)},
		{Source: SourceWatch, Resource: kept.Roles, Namespace: "n", Name: "r", Deleted: true, UID: "u"},
		{Source: SourceSnapshot, Resource: kept.Roles, AllOf: true, Complete: true, NotBefore: instant.Time(1), NotAfter: instant.Time(2),
			Since: instant.Time(1)},
		{Source: SourceAudit, Resource: kept.Roles, Namespace: "n", Name: "r", Unknown: true},
	} {
		raw := o.Append(nil)
		var j observationJSON
		if p := jsontext.NewPlain(raw); !j.readPlainly(&p) {
			t.Errorf("%s is left to encoding/json", raw)
		}
		got, err := Decode(raw)
		if err != nil || !reflect.DeepEqual(got, o) {
			t.Errorf("got %+v, error %v\nwant %+v", got, err, o)
		}
	}
}

// FuzzAppend holds observations written quickly against encoding/json.
func FuzzAppend(f *testing.F) {
	f.Add(uint8(2), "roles.rbac.authorization.k8s.io", "n", "a-name", "uid", uint8(0), int64(1_700_000_000_123_456_000), int64(0),
		[]byte(`{"a":[1,"b",{"c":null}]}`))
	f.Add(uint8(3), "pods", "", "<", "\u2028", uint8(15), int64(-1), int64(5), []byte(`{"a": "\u003c"}`))
	f.Add(uint8(9), "", "é", `"`, `\`, uint8(1), int64(0), int64(0), []byte(` null`))
	f.Add(uint8(1), "x", "", "", "", uint8(0), int64(0), int64(1)<<62, []byte(`{"a":1.5}`))
	f.Add(uint8(1), "x", "", "", "", uint8(0), int64(0), int64(0), []byte(`{"a":"&"}`))
	f.Fuzz(func(t *testing.T, source uint8, res, namespace, name, uid string, flags uint8, before, after int64, object []byte) {
		o := Observation{Source: Source(source), Resource: res, Namespace: namespace, Name: name, UID: uid, ResourceVersion: uid,
			Object:  object,
			Deleted: flags&1 != 0, Unknown: flags&2 != 0, AllOf: flags&4 != 0, Complete: flags&8 != 0}
		if before != 0 {
			o.NotBefore = time.Unix(before>>20, before&(1<<20-1))
		}
		if after != 0 {
			o.NotAfter, o.Since = time.Unix(0, after), time.Unix(after>>10, 0)
		}
		want := o.appendSlowly([]byte("x"))
		if got, ok := o.appendQuickly([]byte("x")); ok && string(got) != string(want) {
			t.Fatalf("got %s\nwant %s", got, want)
		}
	})
}

// TestAppendQuickly makes sure that usual observations are written quickly.
func TestAppendQuickly(t *testing.T) {
	o := Observation{Source: SourceAudit, Resource: kept.Roles, Namespace: "n", Name: "r", UID: "u", ResourceVersion: "5",
		Object: []byte(`{"kind":"Role","rules":[{"verbs":["get"]}]}`), NotBefore: instant.Time(1_000), NotAfter: instant.Time(2_000)}
	if _, ok := o.appendQuickly(nil); !ok {
		t.Errorf("%+v is left to encoding/json", o)
	}
}

// FuzzObservation holds observations read plainly against encoding/json.
func FuzzObservation(f *testing.F) {
	f.Add([]byte(`{"v":2,"source":"audit","resource":"pods","name":"p","created":true,"notAfter":"2026-01-02T00:00:00Z","object":{` +
		`"kind":"Pod"}}`))
	f.Add([]byte(`{"v":9,"source":"audit"}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want, got observationJSON
		wantErr := json.Unmarshal(raw, &want)
		if p := jsontext.NewPlain(raw); got.readPlainly(&p) && (wantErr != nil || !reflect.DeepEqual(got, want)) {
			t.Fatalf("got %+v\nwant %+v, error %v", got, want, wantErr)
		}
	})
}
