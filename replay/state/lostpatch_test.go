package state_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/rbacindex"
)

// patch makes a patch of an object: its body, what the object becomes by it, and the answer's code. A
// merge patch and an applied configuration have the list they set; operations are of a JSON patch.
func (l *lossy) patch(k rbacindex.Key, had map[string]any) (body []byte, became map[string]any, code int32) {
	wanted := l.body(k)
	list := "subjects"
	if k.Kind == rbacindex.KindClusterRole {
		list = "rules"
	}
	became = maps.Clone(had)
	set := func(to []any) {
		if became != nil {
			became[list] = to
		}
	}
	code = 200
	switch kind := l.rnd.IntN(5); {
	case kind == 0: // a configuration is applied, which makes what is not there
		if had == nil {
			return marshal(l.t, wanted), wanted, 201
		}
		if role, is := had["roleRef"]; is && fmt.Sprint(role) != fmt.Sprint(wanted["roleRef"]) {
			return marshal(l.t, wanted), had, 422
		}
		set(wanted[list].([]any))
		if l.rnd.IntN(4) == 0 { // by whom the list belonged to, and who does not name it any more
			delete(wanted, list)
			set([]any{})
		}
		return marshal(l.t, wanted), became, code
	case kind == 1:
		body = marshal(l.t, map[string]any{list: wanted[list], "metadata": map[string]any{"labels": map[string]any{"a": "b"}}})
		set(wanted[list].([]any))
	case kind == 2:
		body = []byte(`{"metadata":{"annotations":{"a":"b"}}}`)
	default:
		var ops []string
		ops, code = l.operations(list, wanted[list].([]any), became)
		body = []byte("[" + strings.Join(ops, ",") + "]")
	}
	if had == nil {
		return body, nil, 404
	}
	return body, became, code
}

// operations makes operations of a JSON patch on an object's list and carries them out.
func (l *lossy) operations(list string, wanted []any, o map[string]any) (ops []string, code int32) {
	var is []any
	if o != nil {
		is = slices.Clone(o[list].([]any))
	}
	quote := func(v any) string { return string(marshal(l.t, v)) }
	code = 200
	for range 1 + l.rnd.IntN(3) {
		i := 0
		if len(is) > 0 {
			i = l.rnd.IntN(len(is))
		}
		at := fmt.Sprintf("/%s/%d", list, i)
		switch kind := l.rnd.IntN(6); {
		case kind == 0:
			ops, is = append(ops, fmt.Sprintf(`{"op":"replace","path":"/%s","value":%s}`, list, quote(wanted))), slices.Clone(wanted)
		case kind == 1:
			ops = append(ops, `{"op":"add","path":"/metadata/labels","value":{}}`)
		case kind < 4 && len(wanted) > 0:
			// Who reads names of members as they please takes this for an operation on labels.
			ops, is = append(ops, fmt.Sprintf(`{"op":"add","path":"x/%s/-","Path":"/metadata/labels","value":%s}`, list,
				quote(wanted[0]))), append(is, wanted[0])
		case kind == 4 && list == "subjects" && len(is) > 0:
			ops = append(ops, fmt.Sprintf(`{"op":"replace","path":"%s/name","value":"u1"}`, at))
			var other map[string]any
			if err := json.Unmarshal(marshal(l.t, is[i]), &other); err != nil {
				l.t.Fatal(err)
			}
			other["name"] = "u1"
			is[i] = other
		case len(is) > 0:
			ops, is = append(ops, fmt.Sprintf(`{"op":"remove","path":"%s"}`, at)), slices.Delete(is, i, i+1)
		default:
			return append(ops, fmt.Sprintf(`{"op":"remove","path":"/%s/7"}`, list)), 422
		}
	}
	if o != nil {
		o[list] = is
	}
	return ops, code
}
