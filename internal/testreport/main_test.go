package main

import (
	"strings"
	"testing"
)

func TestReport(t *testing.T) {
	const p = `"Package":"github.com/retrial-io/retrial/x"`
	lines := strings.Join([]string{
		`{"Action":"run",` + p + `,"Test":"TestGood"}`,
		`{"Action":"output",` + p + `,"Test":"TestGood","Output":"noise\n"}`,
		`{"Action":"pass",` + p + `,"Test":"TestGood"}`,
		`{"Action":"output",` + p + `,"Test":"TestBad","Output":"    x_test.go:7: wrong\n"}`,
		`{"Action":"fail",` + p + `,"Test":"TestBad"}`,
		`{"Action":"output",` + p + `,"Test":"TestAway","Output":"=== RUN   TestAway\n"}`,
		`{"Action":"output",` + p + `,"Test":"TestAway","Output":"    x_test.go:9: NOT RUN: no browser\n"}`,
		`{"Action":"output",` + p + `,"Test":"TestAway","Output":"--- SKIP: TestAway (0.00s)\n"}`,
		`{"Action":"skip",` + p + `,"Test":"TestAway"}`,
		`{"Action":"fail",` + p + `,"Elapsed":1.25}`,
		`{"Action":"pass","Package":"github.com/retrial-io/retrial/y","Elapsed":0.5}`,
		"plain text of the go command",
	}, "\n")
	var out strings.Builder
	if code := report(strings.NewReader(lines), &out); code != 1 {
		t.Errorf("a failed test gave exit code %d", code)
	}
	for _, want := range []string{
		"x_test.go:7: wrong\n", "FAIL  github.com/retrial-io/retrial/x  1.2s\n", "ok    github.com/retrial-io/retrial/y  0.5s\n",
		"skipped x TestAway: NOT RUN: no browser\n", "plain text of the go command\n", "1 passed, 2 failed, 1 skipped\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, out.String())
		}
	}
	if strings.Contains(out.String(), "noise") {
		t.Error("what a passed test wrote is shown")
	}
	if code := report(strings.NewReader(`{"Action":"pass",`+p+`,"Test":"TestGood"}`), &out); code != 0 {
		t.Errorf("nothing failed, exit code %d", code)
	}
}
