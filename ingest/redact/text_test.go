package redact

import (
	"math/rand/v2"
	"strings"
	"testing"
)

// suspiciousPatterns are texts suspicious has to see, one or more for every case of suspect.
var suspiciousPatterns = []string{
	"eyJ", "ZXlK", "PRIVATE KEY", "PodExecOptions", `Secret"`, `Secret\`, "SecretL", "S0tLS1CRUdJTi",
	"Bearer", "bearer", "BEARER", "bEARER", `orization"`, `orization\`, "orization:", "orization=", "orization ",
	"TokenRe", "ExecCredential", `\u0061`, `\u002d`, `\u0039`,
}

// suspiciousSlow asks suspect about every byte.
func suspiciousSlow(b []byte) bool {
	for i := range b {
		if suspect(b, i) {
			return true
		}
	}
	return false
}

func TestSuspiciousAtEveryPlace(t *testing.T) {
	for _, pattern := range suspiciousPatterns {
		for before := range 20 {
			for after := range 20 {
				text := strings.Repeat("x", before) + pattern + strings.Repeat("x", after)
				if !suspicious([]byte(text)) {
					t.Errorf("%q: not seen", text)
				}
			}
			cut := strings.Repeat("x", before) + pattern[:len(pattern)-1]
			if suspicious([]byte(cut)) {
				t.Errorf("%q: seen", cut)
			}
		}
	}
}

func TestSuspiciousLooksAtEnough(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	seen := map[bool]int{}
	for range 200_000 {
		var b []byte
		for range 1 + rng.IntN(5) {
			p := suspiciousPatterns[rng.IntN(len(suspiciousPatterns))]
			from := rng.IntN(len(p))
			b = append(b, p[from:from+rng.IntN(len(p)-from+1)]...)
			for range rng.IntN(4) {
				b = append(b, "x\\u0eSZJK\"\xff"[rng.IntN(10)])
			}
		}
		got, want := suspicious(b), suspiciousSlow(b)
		if got != want {
			t.Fatalf("%q: %v, want %v", b, got, want)
		}
		seen[got]++
	}
	if seen[true] < 1000 || seen[false] < 1000 {
		t.Errorf("texts seen and not: %v", seen)
	}
}
