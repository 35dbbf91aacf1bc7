package safe

import (
	"encoding/json"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestText(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"plain":               {`kubectl/v1.36 "x" C:\a`, `kubectl/v1.36 "x" C:\a`},
		"other scripts":       {"пользователь 用户", "пользователь 用户"},
		"terminal escape":     {"\x1b[2Jgone", `\x1b[2Jgone`},
		"forged line":         {"a\nallow\tb", `a\nallow\tb`},
		"right to left":       {"admin\u202egnp.exe", `admin\u202egnp.exe`},
		"zero width":          {"ad\u200bmin", `ad\u200bmin`},
		"8-bit control":       {"\u009b2J", `\u009b2J`},
		"not UTF-8":           {"a\xff", `a\xff`},
		"escape in the input": {"\\x1b\n", `\\x1b\n`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Text(tc.in); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzText(f *testing.F) {
	f.Add("a\x1b[0m\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		out := Text(s)
		if !utf8.ValidString(out) {
			t.Fatalf("not UTF-8: %q", out)
		}
		for _, r := range out {
			if r != ' ' && (!unicode.IsPrint(r) || unicode.Is(unicode.Cf, r)) {
				t.Fatalf("%q still holds %U", out, r)
			}
		}
	})
}

func TestJSON(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"plain":         {`{"a":"b<&>\u001b"}` + "\n", `{"a":"b<&>\u001b"}` + "\n"},
		"other scripts": {`["пользователь"]`, `["пользователь"]`},
		"8-bit control": {"[\"\u009b2J\"]", `["\u009b2J"]`},
		"delete":        {"[\"\x7f\"]", `["\u007f"]`},
		"right to left": {"[\"a\u202eb\"]", `["a\u202eb"]`},
		"tag":           {"[\"\U000e0041\"]", `["\udb40\udc41"]`},
		"not UTF-8":     {"[\"\x9b\"]", "[\"\ufffd\"]"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(JSON([]byte(tc.in))); got != tc.want {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func FuzzJSON(f *testing.F) {
	f.Add("a\x1b[0m\u202e\u009b\U000e0041")
	f.Fuzz(func(t *testing.T, s string) {
		in, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var want, got string
		if err := json.Unmarshal(in, &want); err != nil {
			t.Fatal(err)
		}
		out := JSON(in)
		if err := json.Unmarshal(out, &got); err != nil || got != want {
			t.Fatalf("%q became %q (%v)", want, got, err)
		}
		for _, r := range string(out) {
			if r != ' ' && (!unicode.IsPrint(r) || unicode.Is(unicode.Cf, r)) {
				t.Fatalf("%q still holds %U", out, r)
			}
		}
	})
}
