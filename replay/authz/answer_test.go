package authz

import "testing"

func TestSameErrors(t *testing.T) {
	cases := []struct {
		text string
		errs []string
		want bool
	}{
		{"a", []string{"a"}, true},
		{"[a]", []string{"a"}, false},
		{"[a, b]", []string{"b", "a"}, true},
		{"[a, a]", []string{"a", "b"}, false},
		{"[b, a, c]", []string{"a", "b", "c"}, true},
		{"[a, b, c]", []string{"a", "b"}, false},
		{"[a, b, c]", []string{"a, b", "c"}, true},
		{"[ab, a]", []string{"a", "ab"}, true},
		{"", []string{"a"}, false},
		{"[]", []string{"a", "b"}, false},
		{"a", nil, false},
	}
	for _, tc := range cases {
		if got := sameErrors(tc.text, tc.errs); got != tc.want {
			t.Errorf("%q against %q: %v", tc.text, tc.errs, got)
		}
	}
}
