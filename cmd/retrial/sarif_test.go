package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/retrial-io/retrial/cmd/retrial/review"
	"github.com/retrial-io/retrial/query"
)

// isSARIF holds a text to the schema of SARIF 2.1.0.
func isSARIF(t *testing.T, text string) {
	t.Helper()
	if err := againstSARIF(t, text); err != nil {
		t.Errorf("%v\n%.500s", err, text)
	}
}

// againstSARIF says what in a text is not as the schema has it.
func againstSARIF(t *testing.T, text string) error {
	t.Helper()
	schema, err := jsonschema.NewCompiler().Compile(filepath.Join("testdata", "sarif", "sarif-2.1.0.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	doc, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return schema.Validate(doc)
}

// TestSARIF: an answer is SARIF whatever is in it: nothing, every class, names that are hostile, objects without a file.
func TestSARIF(t *testing.T) {
	write := func(a *query.WhatIfAnswer) {
		t.Helper()
		var out strings.Builder
		if err := review.SARIF(&out, a, "v1.2.3"); err != nil {
			t.Fatal(err)
		}
		isSARIF(t, out.String())
	}
	if againstSARIF(t, `{"version": "2.1.0", "runs": [{"tool": {"driver": {"name": "x", "rule": []}}}]}`) == nil {
		t.Fatal("the schema takes what is none")
	}
	write(&query.WhatIfAnswer{})
	for _, name := range hostileTexts() {
		a := query.WhatIfAnswer{Cluster: name}
		a.Escalation.Opened = []query.Path{{Text: name}}
		for _, class := range []query.DraftClass{"REVOKED", "MAYBE_REVOKED", "UNKNOWN", "GAINED", "MAYBE_GAINED"} {
			for _, because := range [][]string{nil, {"Role/a/" + name}, {"ClusterRole/" + name}} {
				a.Accesses = append(a.Accesses, query.DraftedAccess{Class: class, Subject: name, Verb: name, Name: name, Because: because})
			}
		}
		changes, err := json.Marshal(object{"changes": []object{{"object": "Role/a/" + name, "what": "replaced", "file": name, "line": 3},
			{"object": "ClusterRole/" + name, "what": "deleted"}}})
		if err == nil {
			err = json.Unmarshal(changes, &a)
		}
		if err != nil {
			t.Fatal(err)
		}
		write(&a)
	}
}
