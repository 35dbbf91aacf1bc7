package cli

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

type thingAnswer struct {
	Name  string   `json:"name"`
	Count int      `json:"count"`
	Of    []string `json:"of"`
}

func TestEnvelopes(t *testing.T) {
	xs := []thingAnswer{{Name: "x"}}
	for want, answer := range map[string]any{
		`{"apiVersion":"retrial.io/v1","kind":"Thing","name":"a<b","count":3,"of":null}`:           thingAnswer{Name: "a<b", Count: 3},
		`{"apiVersion":"retrial.io/v1","kind":"ThingList","items":[]}`:                             []thingAnswer{},
		`{"apiVersion":"retrial.io/v1","kind":"Other","items":[{"name":"x","count":0,"of":null}]}`: Kinded{"Other", xs},
		`{"apiVersion":"retrial.io/v1","kind":"Nothing"}`:                                          Kinded{"Nothing", struct{}{}},
	} {
		if got, err := Envelope(answer); err != nil || string(got) != want {
			t.Errorf("got %s, error %v, want %s", got, err, want)
		}
	}
}

func TestJSONPath(t *testing.T) {
	answer := []thingAnswer{{"a\x1b", 1000000, []string{"x", "y"}}, {"b", 2, nil}}
	for expression, want := range map[string]string{
		"{.items[*].name}": `a\x1b b` + "\n",
		".items[0].count":  "1000000\n",
		"kind":             "ThingList\n",
		`{range .items[*]}{.name}{"\t"}{.count}{"\n"}{end}`: "a\\x1b\t1000000\nb\t2\n",
		"{.items[?(@.count>5)].of[1]}":                      "y\n",
		"{.nothing}":                                        "",
	} {
		var out bytes.Buffer
		if err := Show(Streams{Out: &out, Err: io.Discard}, "jsonpath="+expression, answer, nil); err != nil || out.String() != want {
			t.Errorf("%s: got %q, error %v, want %q", expression, out.String(), err, want)
		}
	}
	for form, want := range map[string]string{"jsonpath={.items[": "unterminated", "jsonpath=": "want an expression such as",
		"jsonpath":            "want one of table",
		"jsonpath=EXPRESSION": "", "wide": "", "xml": "want one of table, wide, name, json, yaml, csv, jsonpath=EXPRESSION"} {
		var output string
		c := &cobra.Command{Use: "show", Args: cobra.NoArgs, RunE: func(*cobra.Command, []string) error { return nil }, SilenceErrors: true,
			SilenceUsage: true}
		AddOutput(c, &output)
		c.SetArgs([]string{"-o", form})
		err := c.Execute()
		if coded := (Exit{}); want == "" != (err == nil) || err != nil && (!errors.As(err, &coded) || coded.Code != ExitUsage ||
			!strings.Contains(err.Error(), want)) {
			t.Errorf("-o %s: %v, want %q", form, err, want)
		}
	}
}

// TestColours: as --color says, and on a terminal alone by default.
func TestColours(t *testing.T) {
	for arg, want := range map[string]bool{"--color=always": true, "--color=never": false, "--color=auto": false, "": false} {
		var out, errs bytes.Buffer
		root := &cobra.Command{Use: "program"}
		s := Streams{Out: &out, Err: &errs}.WithLook(root)
		root.RunE = func(*cobra.Command, []string) error { return Show(s, "table", nil, list) }
		if code := Run(t.Context(), root, strings.Fields(arg), s); code != ExitOK {
			t.Fatalf("%s: exit code %d", arg, code)
		}
		if strings.Contains(out.String(), "\x1b[") != want || strings.Contains(errs.String(), "\x1b[") != want {
			t.Errorf("%q: %q %q", arg, out.String(), errs.String())
		}
	}
	var errs bytes.Buffer
	root := &cobra.Command{Use: "program", RunE: func(*cobra.Command, []string) error { return nil }}
	s := Streams{Out: io.Discard, Err: &errs}.WithLook(root)
	if code := Run(t.Context(), root, []string{"--color=blue"}, s); code != ExitUsage ||
		!strings.Contains(errs.String(), "want auto, always, never") {
		t.Errorf("exit code %d: %s", code, errs.String())
	}
}
