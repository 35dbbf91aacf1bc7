package detect

import (
	"strings"
	"testing"
	"testing/fstest"
)

const goodRule = `
id: pods-read
title: Pods read
description: Somebody read pods.
severity: low
attack: [T1613]
kind: event
match: {verbs: [get], resources: [pods]}
`

func files(pairs ...string) fstest.MapFS {
	fs := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		fs[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return fs
}

func TestBrokenRules(t *testing.T) {
	with := func(more string) string { return goodRule + more }
	without := func(member string) string {
		var kept []string
		for _, l := range strings.Split(goodRule, "\n") {
			if !strings.HasPrefix(l, member+":") {
				kept = append(kept, l)
			}
		}
		return strings.Join(kept, "\n") + "\n"
	}
	for _, c := range []struct{ name, text, want string }{
		{"not YAML", "id: [", "yaml"},
		{"unknown member", with("expression: 'true'\n"), `unknown field "expression"`},
		{"syntax", with("expr: 'verb =='\n"), "expr:1:8"},
		{"unknown variable", with("expr: 'verb == \"get\" && usr == \"x\"'\n"), "expr:1:18"},
		{"wrong types compared", with("expr: 'code == \"200\"'\n"), "found no matching overload"},
		{"not a bool", with("expr: 'user'\n"), "type is string, want bool"},
		{"group not a string", with("groupBy: [code]\n"), "type is int, want string"},
		{"too long", with("expr: 'user == \"" + strings.Repeat("x", 5000) + "\"'\n"), "longer than 4096 bytes"},
		{"no id", without("id"), "id: want"},
		{"no title", without("title"), "title and description"},
		{"severity", without("severity") + "severity: huge\n", `severity "huge"`},
		{"technique", without("attack") + "attack: [1613]\n", `attack`},
		{"kind", without("kind") + "kind: query\n", `kind "query"`},
		{"event with counts", with("counts: [{atLeast: 2}]\n"), "no counts and no baseline"},
		{"window without counts", without("kind") + "kind: window\nwindow: {length: 5m}\n", "needs window.length and counts"},
		{"window that does not divide", without("kind") + "kind: window\nwindow: {length: 5m, every: 2m}\ncounts: [{atLeast: 2}]\n",
			"divide length"},
		{"fold too short", without("kind") + "kind: window\nwindow: {length: 5m, fold: 1m}\ncounts: [{atLeast: 2}]\n", "fold"},
		{"threshold of none", without("kind") + "kind: window\nwindow: {length: 5m}\ncounts: [{atLeast: 0}]\n", "counts[0].atLeast"},
		{"after nothing", without("kind") + "kind: window\nwindow: {length: 5m}\ncounts: [{atLeast: 1, after: true}]\n",
			"no threshold before it"},
		{"first-seen without baseline", without("kind") + "kind: first-seen\n", "baseline"},
		{"duration", without("kind") + "kind: first-seen\nbaseline: 2 weeks\n", "want 90s, 10m, 1h or 14d"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Load(files("good.yaml", strings.Replace(goodRule, "pods-read", "other", 1), "broken.yaml", c.text))
			if err == nil {
				t.Fatal("loaded")
			}
			if !strings.Contains(err.Error(), "broken.yaml") || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %q does not name the file and say %q", err, c.want)
			}
		})
	}
}

func TestLoadTellsOfEveryBrokenFile(t *testing.T) {
	_, err := Load(files("a.yaml", "x: 1", "b.yaml", "y: 1"))
	if err == nil || !strings.Contains(err.Error(), "a.yaml") || !strings.Contains(err.Error(), "b.yaml") {
		t.Errorf("error %v does not name both files", err)
	}
}

func TestLoadReplacesById(t *testing.T) {
	set, err := Load(files("a.yaml", goodRule), files("mine.yml", strings.Replace(goodRule, "severity: low", "severity: high", 1),
		"README.md", "no rule"))
	if err != nil {
		t.Fatal(err)
	}
	if r := set.Rules(); len(r) != 1 || r[0].Severity != "high" {
		t.Errorf("rules = %+v, want the second one alone", r)
	}
	if _, err := Load(files("a.yaml", goodRule, "b.yaml", goodRule)); err == nil || !strings.Contains(err.Error(),
		`b.yaml: id "pods-read" is that of a.yaml`) {
		t.Errorf("two rules of one id in one place: %v", err)
	}
}

// TestRunawayExpression stops a loop over a body of any size a client likes, and does not take that
// for an answer.
func TestRunawayExpression(t *testing.T) {
	set, err := Load(files("loop.yaml", goodRule+`
expr: requestPatch.exists(a, requestPatch.exists(b, requestPatch.exists(c, false)))
`))
	if err != nil {
		t.Fatal(err)
	}
	d := New(set, Config{})
	e := podGet("bob", "1", 0)
	e.RequestObject = []byte("[" + strings.Repeat("1,", 999) + "1]")
	d.Observe("prod", e, nil)
	if s := d.Stats(); s.Errors["pods-read"] != 1 || !strings.Contains(s.FirstError["pods-read"], "cost limit") {
		t.Errorf("stats %+v: want one error of the cost limit", s)
	}
	if found := d.Flush(); len(found) != 1 || !strings.Contains(found[0].Text, "; it is too large to be checked") {
		t.Errorf("findings %+v, want one that says that it was not checked", found)
	}
}
