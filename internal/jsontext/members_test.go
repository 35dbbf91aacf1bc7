package jsontext

import (
	"strings"
	"testing"
)

func TestMembers(t *testing.T) {
	read := func(text, until string) (string, bool) {
		var b strings.Builder
		ok := Members([]byte(text), func(name string, value []byte) bool {
			b.WriteString(name + "=" + string(value) + ";")
			return name != until
		})
		return b.String(), ok
	}
	for _, c := range []struct {
		name, text, until, want string
		ok                      bool
	}{
		{"values of all kinds", ` {"a":1,"b":{"c":[1, 2]},"d":null,"e\u0066":"x"} `, "", `a=1;b={"c":[1,2]};d=;ef="x";`, true},
		{"empty", `{}`, "", "", true},
		{"left early, what follows is not read", `{"a":1,"b":!`, "a", "a=1;", true},
		{"no object", `[1]`, "", "", false},
		{"nothing", ``, "", "", false},
		{"broken", `{"a":1,}`, "", "a=1;", false},
		{"cut off", `{"a":1,"b":{`, "", "a=1;", false},
		{"more behind it", `{"a":1}{}`, "", "a=1;", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, ok := read(c.text, c.until); got != c.want || ok != c.ok {
				t.Errorf("got %q, %v; want %q, %v", got, ok, c.want, c.ok)
			}
		})
	}
}
