package content

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	kjson "sigs.k8s.io/json"

	"github.com/retrial-io/retrial/internal/jsontext"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// slowly reads an object with encoding/json alone.
func slowly(res kept.Resource, raw []byte) (rbacObject, error) {
	var o rbacObject
	if res.RBACKind() != 0 {
		err := kjson.UnmarshalCaseSensitivePreserveInts(raw, &o)
		return o, err
	}
	var h kept.Head
	err := json.Unmarshal(raw, &h)
	return rbacObject{Metadata: h.Metadata}, err
}

// readable drops what nobody reads.
func readable(o rbacObject) rbacObject {
	o.Metadata = kept.Meta{CreationTimestamp: o.Metadata.CreationTimestamp, DeletionTimestamp: o.Metadata.DeletionTimestamp}
	return o
}

var readSeeds = []struct {
	text  string
	plain bool // read without encoding/json
}{
	{`{"kind":"RoleBinding","apiVersion":"rbac.authorization.k8s.io/v1","metadata":{"name":"b","namespace":"n","uid":"u",` +
		`"resourceVersion":"7","creationTimestamp":"2026-01-02T00:00:00Z","labels":{"a":"b"},"annotations":{"x":"{\"a\":\"b\\n\"}"},` +
		`"managedFields":[{"time":null,"n":-12,"t":[true,false,{}]}]},"subjects":[{"kind":"User",` +
		`"apiGroup":"rbac.authorization.k8s.io","name":"a"},{"kind":"ServiceAccount","name":"s","namespace":"n"}],"roleRef":{` +
		`"apiGroup":"g","kind":"Role","name":"r"}}`, true},
	{` { "metadata" : { } , "rules" : [ { "verbs" : [ "get" , "list" ] , "apiGroups":[""],"resources":["pods"],"resourceNames":[] } , ` +
		`{"verbs":["get"],"nonResourceURLs":["/x"]} ] } ` + "\n", true},
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
	{`{"spec":{"finalizers":["kubernetes"]},"kind":"Namespace","apiVersion":"v1",` +
		`"metadata":{"creationTimestamp":"2026-01-02T00:00:00Z"}}`, true},
	{`{"kind":5}`, true}, // of no interest in an RBAC object
}

// TestPlainGivesUp names what is read quickly and what is left to encoding/json.
func TestPlainGivesUp(t *testing.T) {
	for _, c := range readSeeds {
		var o rbacObject
		r := reader{jsontext.NewPlain([]byte(c.text)), &Interner{}}
		if ok := r.rbac(&o); ok != c.plain {
			t.Errorf("%s: read quickly %t, want %t", c.text, ok, c.plain)
		}
	}
}

// FuzzPlain holds what is read quickly against encoding/json.
func FuzzPlain(f *testing.F) {
	for _, c := range readSeeds {
		f.Add([]byte(c.text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		for _, res := range []kept.Resource{kept.ResRoleBinding, kept.ResNamespace} {
			var in Interner
			want, wantErr := slowly(res, raw)
			got, gotErr := in.read(res, raw)
			if (wantErr == nil) != (gotErr == nil) {
				t.Fatalf("%s: error %v, want %v", res, gotErr, wantErr)
			}
			if wantErr == nil && !reflect.DeepEqual(readable(got), readable(want)) {
				t.Fatalf("%s:\n got %+v\nwant %+v", res, readable(got), readable(want))
			}
		}
	})
}
