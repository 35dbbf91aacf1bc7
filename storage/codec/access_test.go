package codec

import (
	"fmt"
	"slices"
	"testing"

	"github.com/retrial-io/retrial/verdict"
)

// A set of groups has one key, in whatever order and however often its members come.
func TestGroupSet(t *testing.T) {
	for _, n := range []int{0, 1, 3, manyGroups, 3 * manyGroups} {
		var groups []string
		for i := range n {
			groups = append(groups, fmt.Sprint("group-", i))
		}
		want := GroupSet(groups)
		again := slices.Concat(groups, groups)
		slices.Reverse(again)
		if GroupSet(again) != want {
			t.Errorf("%d groups: order and repetition change the key", n)
		}
		if GroupSet(append(again, "another")) == want {
			t.Errorf("%d groups: another member does not change the key", n)
		}
	}
}

// A grant comes back as it was, by the short way where it is plain.
func TestGrantComesBack(t *testing.T) {
	plain := verdict.Grant{BindingKind: "RoleBinding", BindingNamespace: "ns", Binding: "b", RoleKind: "Role", Role: "r",
		SubjectKind: "User", Subject: "ü,]", Rule: 12}
	plain.Reason = grantReason(&plain)
	quoted, reasoned := plain, plain
	quoted.Subject = "a\",\"b\x00"
	quoted.Reason = grantReason(&quoted)
	reasoned.Reason = "another"
	for _, c := range []struct {
		name  string
		grant verdict.Grant
		plain bool
	}{{"plain", plain, true}, {"quoted", quoted, false}, {"a reason of its own", reasoned, false}} {
		t.Run(c.name, func(t *testing.T) {
			text, err := encodeGrant(&c.grant)
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := plainGrant(text); ok != c.plain {
				t.Errorf("%s: plain %v", text, ok)
			}
			if got, err := DecodeGrant(text); err != nil || got != c.grant {
				t.Errorf("%s gives %+v, %v, want %+v", text, got, err, c.grant)
			}
		})
	}
	for _, text := range []string{"", "[", "[]", `["a","b"]`, `["a","b","c","d","e","f","g","h",x]`, `["a","b","c","d","e","f","g","h",1`,
		`["a" ,"b","c","d","e","f","g","h",1]`} {
		if g, ok := plainGrant(text); ok {
			t.Errorf("%q is taken for %+v", text, g)
		}
	}
}
