package detect

import (
	"testing"

	"github.com/retrial-io/retrial/ingest/event"
)

// TestNeedles: a guard reports that an expression is false for an unparsed body only if the
// interpreter, which parses it, does not report true.
func TestNeedles(t *testing.T) {
	const admin = `{"roleRef":{"name":"cluster-admin"},"subjects":[{"name":"x"}]}`
	const plain = `{"roleRef":{"name":"view"},"subjects":[{"name":"alice"},{"name":"bob"}]}`
	const hidden = `{"roleRef":{"name":"cluster-\u0061dmin"}}`
	const number = `{"roleRef":7,"subjects":"all"}`
	for _, c := range []struct {
		expr, body string
		knows      known
	}{
		{`object.?roleRef.?name.orValue("") == "cluster-admin"`, admin, unknown},
		{`object.?roleRef.?name.orValue("") == "cluster-admin"`, plain, isFalse},
		{`object.?roleRef.?name.orValue("") == "cluster-admin"`, hidden, unknown},
		{`object.?roleRef.?name.orValue("") == "cluster-admin"`, number, isFalse}, // fails in the interpreter
		{`object.roleRef.name.startsWith("cluster-")`, plain, isFalse},
		{`"cluster-admin" == object.roleRef.name`, plain, isFalse},
		{`object.?subjects.orValue([]).exists(s, s.?name.orValue("") in ["carol", "dave"])`, plain, isFalse},
		{`object.?subjects.orValue([]).exists(s, s.?name.orValue("") in ["carol", "bob"])`, plain, unknown},
		{`object.?roleRef.?name.orValue("") == "edit" || object.?subjects.orValue([]).exists(s, s.name == "carol")`, plain, isFalse},
		{`object.?roleRef.?name.orValue("") == "edit" || object.?subjects.orValue([]).size() > 1`, plain, unknown},
		{`object.?roleRef.?name.orValue("") == "edit" && object.?subjects.orValue([]).size() > 1`, plain, isFalse},
		{`object.?roleRef.?name.orValue("edit") == "edit"`, `{}`, unknown},
		{`object.?roleRef.?name.orValue("") != "edit"`, plain, unknown},
		{`!(object.?roleRef.?name.orValue("") == "edit")`, plain, unknown},
		{`!(object.roleRef.name == "edit")`, number, unknown}, // fails: no reason to select it
		{`object.?subjects.orValue([]).all(s, s.name == "carol")`, plain, unknown},
		{`object.?roleRef.?name.orValue("") == "käse"`, plain, unknown},
		{`object.?roleRef.?name.orValue("") == userAgent`, plain, unknown},
		{`verb == "create" && object.?roleRef.?name.orValue("") == "edit"`, plain, isFalse},
	} {
		set := mustLoad(t, goodRule+"expr: '"+c.expr+"'\n")
		in := input{}
		in.reset("c", &event.Event{Verb: "create", RequestObject: []byte(c.body)}, nil)
		e := set.rules[0].expr
		got := unknown
		if e.guard != nil {
			got = e.guard(&in)
		}
		if got != c.knows {
			t.Errorf("%s of %s: %d, want %d", c.expr, c.body, got, c.knows)
		}
		if is, err := (&expr{prog: e.prog}).bool(&in); got == isFalse && is {
			t.Errorf("%s of %s is true, and a guard says it is not; %v", c.expr, c.body, err)
		}
	}
}
