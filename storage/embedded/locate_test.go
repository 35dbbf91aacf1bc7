package embedded

import (
	"errors"
	"strings"
	"testing"
)

// TestMachine: every machine that cannot run the engine is told what it lacks and what to
// use instead.
func TestMachine(t *testing.T) {
	good := machine{os: "linux", arch: "amd64", avx2: true}
	for name, tc := range map[string]struct {
		change func(*machine)
		part   string // empty: suitable
	}{
		"suitable":   {func(*machine) {}, ""},
		"no AVX2":    {func(m *machine) { m.avx2 = false }, "AVX2"},
		"musl":       {func(m *machine) { m.musl = true }, "glibc"},
		"arm64":      {func(m *machine) { m.arch = "arm64" }, "linux/arm64"},
		"another OS": {func(m *machine) { m.os = "darwin" }, "darwin/amd64"},
	} {
		t.Run(name, func(t *testing.T) {
			m := good
			tc.change(&m)
			err := m.check()
			if tc.part == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if !errors.Is(err, ErrUnsuitable) || !strings.Contains(err.Error(), tc.part) ||
				!strings.Contains(err.Error(), "--clickhouse-dsn") {
				t.Fatalf("got %v; want it to name %q and the alternative", err, tc.part)
			}
		})
	}
}

func TestFirstWord(t *testing.T) {
	for sql, want := range map[string]string{
		"select 1":                    "SELECT",
		" \n(SELECT 1)":               "SELECT",
		"-- note\nWITH 1 AS x ...":    "WITH",
		"/* a */ INSERT INTO t":       "INSERT",
		"":                            "",
		"-- only a note, no new line": "",
	} {
		if got := firstWord(sql); got != want {
			t.Errorf("firstWord(%q) = %q, want %q", sql, got, want)
		}
	}
}
