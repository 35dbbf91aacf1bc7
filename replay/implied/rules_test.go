package implied

import (
	"encoding/json"
	"reflect"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// texts are rules as clients write them, and as they may.
var texts = []string{
	`[]`, `null`, `{}`, `[null]`, `[{}]`, ``, `[`, `[{"verbs":["get"]}`, `[{"verbs":["get"]}] x`, `[{"verbs":["get",]}]`,
	`[{"verbs":["get"],}]`,
	`[{"verbs":["get","list"],"apiGroups":[""],"resources":["pods"],"resourceNames":["a"]}]`,
	` [ { "verbs" : [ "get" ] , "nonResourceURLs" : [ "/healthz" ] } , { "verbs" : [ ] } ] `,
	`[{"verbs":["get"],"verbs":["list"]}]`, `[{"verbs":[],"verbs":["list"]}]`, `[{"Verbs":["get"]}]`, `[{"verbs":null}]`,
	`[{"verbs":[null]}]`, `[{"verbs":"get"}]`, `[{"verbs":[1]}]`,
	`[{"verbs":["ge\u0074","\ud800","a\"b","é"]}]`, "[{\"verbs\":[\"\xff\"]}]", `[{"other":{"verbs":["get"]},"verbs":["get"]}]`,
	`[{"verbs":["get"]},7]`,
}

func FuzzRules(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		var want []rbacv1.PolicyRule
		err := json.Unmarshal(raw, &want)
		got, ok := readRules(raw)
		if ok != (err == nil) || ok && !reflect.DeepEqual(got, want) {
			t.Errorf("%q is read as %#v, %v, want %#v, %v", raw, got, ok, want, err)
		}
	})
}

// TestSameRules holds the comparison of rules against Kubernetes'.
func TestSameRules(t *testing.T) {
	var all [][]rbacv1.PolicyRule
	for _, text := range texts {
		if rules, ok := readRules([]byte(text)); ok {
			all = append(all, rules)
		}
	}
	for _, a := range all {
		for _, b := range all {
			if got, want := sameRules(a, b), equality.Semantic.DeepEqual(a, b); got != want {
				t.Errorf("%#v and %#v: %v, want %v", a, b, got, want)
			}
		}
	}
}
