package main

import (
	"strings"
	"testing"
)

func TestReflowed(t *testing.T) {
	long := strings.Repeat("x", 130)
	for name, c := range map[string]struct {
		source string
		want   int
	}{
		"declarations":       {"package p\n\nimport (\n\t\"a\"\n\t\"b\"\n)\n\ntype t struct {\n\ta int\n\tb string\n}\n", 11},
		"statements":         {"package p\n\nfunc f() {\n\tif a {\n\t\tb()\n\t}\n\tswitch {\n\tcase c:\n\t\td()\n\t}\n}\n", 11},
		"wrapped arguments":  {"package p\n\nvar a = f(b,\n\tc, d,\n\te)\n", 3},
		"wrapped parameters": {"package p\n\nfunc f(\n\ta int,\n\tb int,\n) {\n\tg()\n}\n", 5},
		"wrapped literal":    {"package p\n\nvar a = []int{\n\t1,\n\t2,\n}\n", 3},
		"wrapped operators":  {"package p\n\nvar a = b ||\n\tc ||\n\td\n", 3},
		"wide literal":       {"package p\n\nvar a = []string{\n\t\"" + long + "\",\n\t\"" + long + "\",\n}\n", 5},
		"function literal":   {"package p\n\nvar a = f(func() {\n\tg()\n},\n\tb)\n", 5},
		"comment in a list":  {"package p\n\nvar a = f(\n\tb, // why\n\tc)\n", 4},
		"raw string":         {"package p\n\nvar a = `b\nc\nd`\n", 5},
		"wide line":          {"package p\n\nvar a = \"" + long + long + "\"\n", 4},
		"paragraphs":         {"// Package p\n// does this\n// and that.\n//\n// It also\n// rests.\npackage p\n", 4},
		"wide paragraph":     {"// " + long + "\n// " + long + "\npackage p\n", 3},
		"drawing":            {"// Package p:\n//\n//\ta → b\n//\tb → c\npackage p\n", 5},
	} {
		if n, err := reflowed([]byte(c.source)); err != nil || n != c.want {
			t.Errorf("%s: %d lines, error %v; want %d:\n%s", name, n, err, c.want, c.source)
		}
	}
	if _, err := reflowed([]byte("no Go")); err == nil {
		t.Error("no error of what is not Go")
	}
}

func TestApart(t *testing.T) {
	for file, want := range map[string]bool{
		"storage/store.go": false, "storage/storagetest/store.go": true, "cmd/retrial/benchmarks.go": true, "cmd/retrial/ask.go": false,
		"cmd/retrial-bench/main.go": true, "test/golden/golden.go": true, "internal/linearscan/scan.go": true, "ingest/latest.go": false,
	} {
		if kits.MatchString(file) != want {
			t.Errorf("%s is apart: %t, want %t", file, !want, want)
		}
	}
	for file, want := range map[string]string{"storage/codec/block.go": "storage/codec", "replay/state/content/patch.go": "replay/state",
		"query/api.go": "query"} {
		if room(file) != want {
			t.Errorf("%s counts as %s, want %s", file, room(file), want)
		}
	}
}
