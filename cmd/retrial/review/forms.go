package review

import (
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/query"
)

type (
	found  = query.DraftedAccess
	object = map[string]any
)

// access says what is asked for, in one line.
func access(x *found) string {
	what := x.Path
	if what == "" {
		word := query.ResourceWord{Name: x.Resource, Group: x.APIGroup, Sub: x.Subresource}
		what = word.String()
	}
	text := x.Verb + " " + what
	if x.Name != "" {
		text += " " + x.Name
	}
	if x.Namespace != "" {
		text += " in " + x.Namespace
	}
	if x.Check != "" {
		text += " (" + x.Check + ")"
	}
	return text
}

// bindings names the bindings of grants, three at most.
func bindings(grants []query.GrantNames) string {
	var out []string
	for i, g := range grants {
		if i == 3 {
			out = append(out, fmt.Sprintf("%d more", len(grants)-i))
			break
		}
		out = append(out, g.Binding)
	}
	return strings.Join(out, ", ")
}

// because names the objects by which an access changes, or what is not known.
func because(x *found) string {
	if len(x.Because) == 0 && len(x.Missing) > 0 {
		return "not known: " + strings.Join(x.Missing, ", ")
	}
	return strings.Join(x.Because, ", ")
}

// mostCommented bounds the lines of a table in a comment, which may have 65,536 letters.
const mostCommented = 100

// Markdown writes a comment on a pull request.
func Markdown(w io.Writer, a *query.WhatIfAnswer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "### What this change of roles and bindings would do in %s\n\n%s\n", code(a.Cluster), Sentence(a))
	if len(a.Accesses) > 0 {
		b.WriteString("\n| class | subject | access | requests | last | because of |\n| --- | --- | --- | ---: | --- | --- |\n")
	}
	for i := range a.Accesses {
		if i == mostCommented {
			fmt.Fprintf(&b, "\n… and %s.\n", phrase.Number(len(a.Accesses)+a.More-i, "access")+" more")
			break
		}
		x := &a.Accesses[i]
		class := string(x.Class)
		if class == revoked {
			class = "**" + class + "**"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %d | %s | %s |\n", class, code(x.Subject), code(access(x)), x.Count,
			x.Last.UTC().Format(time.RFC3339), code(because(x)))
	}
	paths := func(title string, list []query.Path, count int) {
		if count > 0 {
			fmt.Fprintf(&b, "\n%s (%d):\n\n", title, count)
		}
		for i := range list[:min(len(list), mostCommented/5)] {
			fmt.Fprintf(&b, "- %s\n", code(list[i].Text))
		}
	}
	paths("**Ways to cluster administrator that it opens**", a.Escalation.Opened, a.Escalation.OpenedCount)
	paths("Ways that it closes", a.Escalation.Closed, a.Escalation.ClosedCount)
	for i, n := range Notes(a) {
		if i == 0 {
			b.WriteString("\nNotes:\n\n")
		}
		fmt.Fprintf(&b, "- %s\n", code(n))
	}
	if _, err := io.WriteString(w, b.String()); err != nil {
		return fmt.Errorf("write the comment: %w", err)
	}
	return nil
}

// code writes a text that anybody may have chosen as code, which ends no cell and mentions nobody.
func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + strings.NewReplacer("`", "'", "|", `\|`).Replace(safe.Text(text)) + "`"
}

// levels are what is found, as SARIF has it.
var levels = []struct{ id, level, text string }{ //nolint:gochecknoglobals // constant table
	{revoked, "error", "A recorded access would be refused"}, {"MAYBE_REVOKED", "warning", "A recorded access may be refused"},
	{"UNKNOWN", "warning", "A webhook decides about a recorded access"}, {gained, "warning", "A refused access would be allowed"},
	{"MAYBE_GAINED", "note", "A refused access may be allowed"}, {"ESCALATION", "error", "A way to cluster administrator is opened"},
}

// SARIF writes what is found as SARIF 2.1.0, each with the object of the draft that is the cause.
func SARIF(w io.Writer, a *query.WhatIfAnswer, version string) error {
	rules, results, level := []object{}, []object{}, map[string]string{}
	for _, l := range levels {
		level[l.id] = l.level
		rules = append(rules, object{"id": l.id, "shortDescription": object{"text": l.text},
			"defaultConfiguration": object{"level": l.level}})
	}
	add := func(id, text string, causes []string) {
		results = append(results, object{"ruleId": id, "level": level[id], "message": object{"text": text},
			"locations": located(a, causes)})
	}
	for i := range a.Accesses {
		x := &a.Accesses[i]
		add(string(x.Class), fmt.Sprintf("%s: %s (%d requests, the last at %s)", x.Subject, access(x), x.Count,
			x.Last.UTC().Format(time.RFC3339)), x.Because)
	}
	for i := range a.Escalation.Opened {
		p := &a.Escalation.Opened[i]
		add("ESCALATION", p.Text, objectsOf(p))
	}
	return cli.PrintAs(w, "json", object{"$schema": "https://json.schemastore.org/sarif-2.1.0.json", "version": "2.1.0",
		"runs": []object{{"tool": object{"driver": object{"name": "retrial", "version": version, "rules": rules}}, "results": results}}})
}

// objectsOf names the bindings and roles that a path rests on.
func objectsOf(p *query.Path) (out []string) {
	of := func(requests []query.Needed) {
		for i := range requests {
			for _, g := range requests[i].Grants {
				out = append(out, g.Binding, g.Role)
			}
		}
	}
	of(p.Holds)
	for i := range p.Steps {
		of(p.Steps[i].Requests)
	}
	return out
}

// located returns where the first of some objects is in the draft; of what the draft deletes only the name is told.
func located(a *query.WhatIfAnswer, causes []string) []object {
	logical := object(nil)
	for _, cause := range causes {
		for _, c := range a.Changes {
			if c.Object != cause {
				continue
			}
			named := []object{{"fullyQualifiedName": c.Object, "kind": "object"}}
			if c.File != "" {
				uri := url.URL{Path: filepath.ToSlash(c.File)}
				return []object{{"logicalLocations": named, "physicalLocation": object{
					"artifactLocation": object{"uri": uri.String()}, "region": object{"startLine": c.Line}}}}
			}
			if logical == nil {
				logical = object{"logicalLocations": named}
			}
		}
	}
	if logical == nil {
		return []object{}
	}
	return []object{logical}
}
