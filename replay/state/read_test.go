package state

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
	"time"

	kjson "sigs.k8s.io/json"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// slowly reads an object with encoding/json alone.
func slowly(res resource, raw []byte) (kept, error) {
	var o kept
	if res.kind() != 0 {
		err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &o)
		return o, err
	}
	var h head
	err := json.Unmarshal(raw, &h)
	return kept{Metadata: h.Metadata}, err
}

// readable drops what nobody reads.
func readable(o kept) kept {
	o.Metadata = meta{CreationTimestamp: o.Metadata.CreationTimestamp, DeletionTimestamp: o.Metadata.DeletionTimestamp}
	return o
}

var readSeeds = []struct {
	text  string
	plain bool // read without encoding/json
}{
	{`{"kind":"RoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"b","namespace":"n","uid":"u","resourceVersion":"7","creationTimestamp":"2026-01-02T00:00:00Z","labels":{"a":"b"},"annotations":{"x":"{\"a\":\"b\\n\"}"},"managedFields":[{"time":null,"n":-12,"t":[true,false,{}]}]},"subjects":[{"kind":"User","apiGroup":"rbac.authorization.k8s.io","name":"a"},{"kind":"ServiceAccount","name":"s","namespace":"n"}],"roleRef":{"apiGroup":"g","kind":"Role","name":"r"}}`, true},
	{` { "metadata" : { } , "rules" : [ { "verbs" : [ "get" , "list" ] , "apiGroups":[""],"resources":["pods"],"resourceNames":[] } , {"verbs":["get"],"nonResourceURLs":["/x"]} ] } ` + "\n", true},
	{`{"rules":[]}`, true},
	{`{}`, true},
	{`{"rules":null}`, false},
	{`{"metadata":{"deletionTimestamp":"2026-01-02T00:00:00Z","deletionGracePeriodSeconds":0,"finalizers":["x"]}}`, false},
	{`{"rules":[{"verbs":["g\u0065t"]}]}`, false},
	{`{"rules":[{"Verbs":["get"]}]}`, false},
	{`{"rules":[{"verbs":["get"],"verbs":["list"]}]}`, false},
	{`{"metadata":{"name":5}}`, false},
	{`{"subjects":[{"kind":"User","name":"é"}]}`, false},
	{`{"subjects":[{"kind":"User","name":"a"}]`, false},
	{`{"subjects":{}}`, false},
	{`{"a":1.5,"b":1e3}`, true},
	{`{"a":01}`, false},
	{`{"a":"\x"}`, false},
	{"{\"a\":\"\n\"}", false},
	{`{"a":tru}`, false},
	{`{} x`, false},
	{`{"a":1,}`, false},
	{`[]`, false},
	{`{"roleRef":{"kind":"Role","name":"r","extra":{"deep":[[[[]]]]}}}`, true},
	{`{"a":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`, true},
	{`{"spec":{"finalizers":["kubernetes"]},"kind":"Namespace","apiVersion":"v1","metadata":{"creationTimestamp":"2026-01-02T00:00:00Z"}}`, true},
	{`{"kind":5}`, true}, // of no interest in an RBAC object
}

// TestPlainGivesUp names what is read quickly and what is left to encoding/json.
func TestPlainGivesUp(t *testing.T) {
	for _, c := range readSeeds {
		var o kept
		r := reader{jsontext.NewPlain([]byte(c.text)), &interner{}}
		if ok := r.rbac(&o); ok != c.plain {
			t.Errorf("%s: read quickly %t, want %t", c.text, ok, c.plain)
		}
	}
}

// TestPlainHead names the heads that are read quickly.
func TestPlainHead(t *testing.T) {
	for text, want := range map[string]bool{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","deletionTimestamp":"2026-01-02T00:00:00Z","deletionGracePeriodSeconds":30,"finalizers":["x"],"labels":{}},"spec":{"nodeName":"n"}}`: true,
		`{"kind":"Namespace","metadata":{},"spec":{"finalizers":["kubernetes"]}}`: true,
		`{"metadata":{"deletionGracePeriodSeconds":1.5}}`:                         false,
		`{"metadata":{"deletionGracePeriodSeconds":99999999999999999999}}`:        false,
		`{"metadata":{"finalizers":null}}`:                                        false,
		`{"kind":null}`:                                                           false,
	} {
		var h head
		p := jsontext.NewPlain([]byte(text))
		if got := h.readPlainly(&p); got != want {
			t.Errorf("%s: read quickly %t, want %t", text, got, want)
		}
	}
}

// FuzzPlain holds what is read quickly against encoding/json.
func FuzzPlain(f *testing.F) {
	for _, c := range readSeeds {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, res := range []resource{resRoleBinding, resNamespace} {
			var in interner
			want, wantErr := slowly(res, raw)
			got, gotErr := in.read(res, raw)
			if (wantErr == nil) != (gotErr == nil) {
				t.Fatalf("%s: error %v, want %v", res, gotErr, wantErr)
			}
			if wantErr == nil && !reflect.DeepEqual(readable(got), readable(want)) {
				t.Fatalf("%s:\n got %+v\nwant %+v", res, readable(got), readable(want))
			}
		}
		var wantHead head
		wantHeadErr := json.Unmarshal(raw, &wantHead)
		if gotHead, err := readHead(raw); (err == nil) != (wantHeadErr == nil) || err == nil && !reflect.DeepEqual(gotHead, wantHead) {
			t.Fatalf("head\n got %+v, error %v\nwant %+v, error %v", gotHead, err, wantHead, wantHeadErr)
		}
		var want observationJSON
		wantErr := json.Unmarshal(raw, &want)
		var got observationJSON
		if p := jsontext.NewPlain(raw); got.readPlainly(&p) && (wantErr != nil || !reflect.DeepEqual(got, want)) {
			t.Fatalf("observation\n got %+v\nwant %+v, error %v", got, want, wantErr)
		}
	})
}

// TestPlainObservation makes sure that what Append writes is read quickly.
func TestPlainObservation(t *testing.T) {
	for _, o := range []Observation{
		{Source: SourceAudit, Resource: Roles, Namespace: "n", Name: "r", UID: "u", ResourceVersion: "5", Object: []byte(`{"rules":[]}`), NotBefore: timeOf(1_000), NotAfter: timeOf(2_000)},
		{Source: SourceAudit, Resource: Roles, Namespace: "n", Name: "r", Unknown: true, Patch: true, Object: []byte(`[{"op":"remove","path":"/rules/0"}]`), NotBefore: timeOf(1), NotAfter: timeOf(2)},
		{Source: SourceWatch, Resource: Roles, Namespace: "n", Name: "r", Deleted: true, UID: "u"},
		{Source: SourceSnapshot, Resource: Roles, AllOf: true, Complete: true, NotBefore: timeOf(1), NotAfter: timeOf(2), Since: timeOf(1)},
		{Source: SourceAudit, Resource: Roles, Namespace: "n", Name: "r", Unknown: true},
	} {
		raw := o.Append(nil)
		var j observationJSON
		if p := jsontext.NewPlain(raw); !j.readPlainly(&p) {
			t.Errorf("%s is left to encoding/json", raw)
		}
		got, err := DecodeObservation(raw)
		if err != nil || !reflect.DeepEqual(got, o) {
			t.Errorf("got %+v, error %v\nwant %+v", got, err, o)
		}
	}
}

// FuzzAppend holds observations written quickly against encoding/json.
func FuzzAppend(f *testing.F) {
	f.Add(uint8(2), "roles.rbac.authorization.k8s.io", "n", "a-name", "uid", uint8(0), int64(1_700_000_000_123_456_000), int64(0), []byte(`{"a":[1,"b",{"c":null}]}`))
	f.Add(uint8(3), "pods", "", "<", "\u2028", uint8(15), int64(-1), int64(5), []byte(`{"a": "\u003c"}`))
	f.Add(uint8(9), "", "é", `"`, `\`, uint8(1), int64(0), int64(0), []byte(` null`))
	f.Add(uint8(1), "x", "", "", "", uint8(0), int64(0), int64(1)<<62, []byte(`{"a":1.5}`))
	f.Add(uint8(1), "x", "", "", "", uint8(0), int64(0), int64(0), []byte(`{"a":"&"}`))
	f.Fuzz(func(t *testing.T, source uint8, res, namespace, name, uid string, flags uint8, before, after int64, object []byte) {
		o := Observation{Source: Source(source), Resource: res, Namespace: namespace, Name: name, UID: uid, ResourceVersion: uid, Object: object,
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
	o := Observation{Source: SourceAudit, Resource: Roles, Namespace: "n", Name: "r", UID: "u", ResourceVersion: "5",
		Object: []byte(`{"kind":"Role","rules":[{"verbs":["get"]}]}`), NotBefore: timeOf(1_000), NotAfter: timeOf(2_000)}
	if _, ok := o.appendQuickly(nil); !ok {
		t.Errorf("%+v is left to encoding/json", o)
	}
}
