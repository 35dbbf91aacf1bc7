package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/invopop/jsonschema"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/ingest/importer"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/server"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/test/golden"
)

// outputs are what commands print as JSON and YAML, by kind.
func outputs() map[string]any {
	kinds := map[string]any{
		"Import": importer.Summary{}, "FollowedList": []server.Followed{}, "Evaluation": server.Summary{},
		"ClusterList": []server.Registered{},
		"AskedList":   []queries.Asked{}, "Doctor": doctor.Answer{}, "ConfigCheck": doctor.ConfigReport{},
		"DetectionRuleList": []detect.Rule{}, "Event": query.Event{},
	}
	for _, answer := range []any{query.WhoCanAnswer{}, query.CanAnswer{}, query.ChangesAnswer{}, query.EscalationsAnswer{},
		query.HygieneAnswer{}, query.WhyAnswer{}, query.ExplainDenyAnswer{}, query.DriftAnswer{}, query.LineageAnswer{},
		query.RefusalsAnswer{}, query.PolicyChangesAnswer{}, query.FirstUsesAnswer{}, query.DangersAnswer{}, query.WhatIfAnswer{},
		completenessAnswer{}, query.AskAnswer{}, []query.Finding{}, []query.Suggestion{}, query.RejudgeJobsAnswer{}, server.Partitions{}} {
		kinds[cli.KindOf(reflect.TypeOf(answer))] = answer
	}
	for _, q := range plainQuestions() {
		kinds[cli.KindOf(q.Answer)] = reflect.New(q.Answer).Elem().Interface()
	}
	return kinds
}

type document = map[string]any

// outputSchema describes them.
func outputSchema(t *testing.T) document {
	t.Helper()
	r := &jsonschema.Reflector{Anonymous: true, AllowAdditionalProperties: true, Mapper: func(t reflect.Type) *jsonschema.Schema {
		switch t {
		case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[any](), reflect.TypeFor[metav1.ObjectMeta]():
			return &jsonschema.Schema{Type: "object"}
		case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime]():
			return &jsonschema.Schema{Type: "string", Format: "date-time"}
		}
		return nil
	}, Namer: func(t reflect.Type) string {
		if t.Name() == "" || t.PkgPath() == "" {
			return ""
		}
		pkg := filepath.Base(t.PkgPath())
		return strings.ToUpper(pkg[:1]) + pkg[1:] + strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	}}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Join("..", ".."))
	for _, folder := range []string{"query", "doctor", "server", "verdict", "analysis", "replay", "ingest", "storage/queries"} {
		if err := r.AddGoComments("github.com/retrial-io/retrial", "./"+folder, jsonschema.WithFullComment()); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(here)
	defs, all := document{}, []any{}
	for _, kind := range slices.Sorted(maps.Keys(outputs())) {
		text, err := json.Marshal(r.ReflectFromType(reflect.TypeOf(outputs()[kind])))
		if err != nil {
			t.Fatal(err)
		}
		var s document
		if err := json.Unmarshal(text, &s); err != nil {
			t.Fatal(err)
		}
		members, _ := s["$defs"].(document)
		maps.Copy(defs, members)
		delete(s, "$defs")
		delete(s, "$schema")
		if s["type"] == "array" {
			s = document{"type": "object", "required": []any{"items"}, "properties": document{"items": s}}
		}
		envelope := document{"type": "object", "required": []any{"apiVersion", "kind"}, "properties": document{
			"apiVersion": document{"const": cli.APIVersion}, "kind": document{"const": kind}}}
		defs[kind] = document{"allOf": []any{envelope, s}}
		all = append(all, document{"$ref": "#/$defs/" + kind})
	}
	oneLine(defs)
	return document{"$schema": "https://json-schema.org/draft/2020-12/schema", "title": "What retrial prints as JSON and YAML",
		"description": "Names of members are stable: new ones are added, old ones keep their meaning. " +
			"Readers pass over members they do not know.",
		"oneOf": all, "$defs": defs}
}

// oneLine makes one line of every description.
func oneLine(v any) {
	switch v := v.(type) {
	case document:
		if text, ok := v["description"].(string); ok {
			v["description"] = strings.Join(strings.Fields(text), " ")
		}
		for _, sub := range v {
			oneLine(sub)
		}
	case []any:
		for _, sub := range v {
			oneLine(sub)
		}
	}
}

func TestOutputSchemaGolden(t *testing.T) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", " ")
	if err := enc.Encode(outputSchema(t)); err != nil {
		t.Fatal(err)
	}
	golden.File(t, "docs/output.schema.json", b.String())
	for kind, answer := range outputs() {
		text, err := cli.Envelope(cli.Kinded{Kind: kind, Answer: answer})
		if err != nil || bytes.Count(text, []byte(`"apiVersion":`)) != 1 {
			t.Errorf("%s: a member of its own is called as one of the envelope: %.200s, error %v", kind, text, err)
		}
	}
}

// conforms returns what of a value its schema does not describe, "" for nothing.
func conforms(defs, schema document, v any, at string) string {
	if name, ok := schema["$ref"].(string); ok {
		def, _ := defs[strings.TrimPrefix(name, "#/$defs/")].(document)
		return conforms(defs, def, v, at)
	}
	if all, ok := schema["allOf"].([]any); ok {
		merged := document{"type": "object", "properties": document{}}
		for _, one := range all {
			s := one.(document)
			for s["$ref"] != nil {
				s = defs[strings.TrimPrefix(s["$ref"].(string), "#/$defs/")].(document)
			}
			properties, _ := s["properties"].(document)
			maps.Copy(merged["properties"].(document), properties)
		}
		return conforms(defs, merged, v, at)
	}
	switch v := v.(type) {
	case map[string]any:
		properties, described := schema["properties"].(document)
		for name, member := range v {
			s, ok := properties[name].(document)
			if additional, is := schema["additionalProperties"].(document); !ok && is {
				s, ok = additional, true
			}
			if described && !ok {
				return fmt.Sprintf("%s.%s is not described", at, name)
			}
			if c, is := s["const"]; is && c != member {
				return fmt.Sprintf("%s.%s is %v, want %v", at, name, member, c)
			}
			if wrong := conforms(defs, s, member, at+"."+name); ok && wrong != "" {
				return wrong
			}
		}
	case []any:
		items, _ := schema["items"].(document)
		for i, item := range v {
			if wrong := conforms(defs, items, item, fmt.Sprintf("%s[%d]", at, i)); wrong != "" {
				return wrong
			}
		}
	}
	return ""
}

// TestOutputsHaveOneEnvelope asks commands about files, in every form: JSON is of the published schema.
func TestOutputsHaveOneEnvelope(t *testing.T) {
	dir := t.TempDir()
	defs := outputSchema(t)["$defs"].(document)
	of := []string{"--state", writeState(t, dir), "--events", writeLog(t, filepath.Join(dir, "log.jsonl"), recorded(t)[:300])}
	id := decoded(t, recorded(t)[0]).AuditID
	for line, kind := range map[string]string{
		"who-can list secrets": "WhoCan", "can alice": "Can", "can alice get pods": "Can", "changes --from 2026-01-01": "Changes",
		"escalations --include-system": "Escalations", "hygiene --include-system": "Hygiene", "findings": "FindingList",
		"drift":     "Drift",
		"why " + id: "Why", "explain-deny " + id: "ExplainDeny", "suggest --all --include-system": "SuggestionList",
		"evaluate": "Evaluation",
	} {
		words := append(strings.Fields(line), of...)
		code, out, errs := commandLine(t, "", append(words, "-o", "json")...)
		var doc document
		if err := json.Unmarshal([]byte(out), &doc); err != nil {
			t.Errorf("%s: exit code %d, no JSON: %v: %.300s %s", line, code, err, out, errs)
			continue
		}
		if doc["kind"] != kind || defs[kind] == nil {
			t.Errorf("%s: kind %v, want %s", line, doc["kind"], kind)
		} else if wrong := conforms(defs, defs[kind].(document), doc, kind); wrong != "" {
			t.Errorf("%s: %s", line, wrong)
		}
		for _, form := range []string{"wide", "name", "csv", "jsonpath={.kind}"} {
			if kind == "Evaluation" && (form == "wide" || form == "name") {
				continue
			}
			again, out, errs := commandLine(t, "", append(words, "-o", form)...)
			if again != code || out == "" && form != "name" || strings.HasPrefix(form, "jsonpath") && out != kind+"\n" {
				t.Errorf("%s -o %s: exit code %d: %.200q %s", line, form, again, out, errs)
			}
		}
	}
}
