// Package review prints what a draft of roles and bindings would refuse and allow: for a terminal, for a comment on a pull request, and as
// SARIF.
package review

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query"
)

// Classes of accesses as answers have them.
const (
	revoked = "REVOKED"
	gained  = "GAINED"
)

// words say what the accesses of a class are, those that break something first.
var words = []struct {
	class query.DraftClass
	text  string
}{ //nolint:gochecknoglobals // constant table
	{revoked, "would be refused"}, {"MAYBE_REVOKED", "may be refused"}, {"UNKNOWN", "a webhook decides"},
	{gained, "would be allowed"}, {"MAYBE_GAINED", "may be allowed"},
}

// Conditions are what --fail-on takes.
func Conditions() []string { return []string{"revoked", "gained", "maybe", "escalation"} }

// Failing says which of some conditions an answer meets.
func Failing(a *query.WhatIfAnswer, on []string) (texts []string) {
	s := &a.Summary
	for _, c := range []struct {
		on         string
		n          int
		noun, what string
	}{
		{"revoked", int(s.Revoked), "access", "would be refused"}, {"gained", int(s.Gained), "access", "would be allowed"},
		{"maybe", int(s.MaybeRevoked + s.MaybeGained + s.Unknown), "access", "may change"},
		{"escalation", a.Escalation.OpenedCount, "way", "to cluster administrator would be opened"},
	} {
		if c.n > 0 && slices.Contains(on, c.on) {
			texts = append(texts, phrase.Number(c.n, c.noun)+" "+c.what)
		}
	}
	return texts
}

// Table prints what breaks first: for whom, how often, and when last.
func Table(p *cli.Page, a *query.WhatIfAnswer) {
	p.Printf("%s\n", Sentence(a))
	if len(a.Accesses) > 0 {
		p.Table("\nCLASS\tSUBJECT\tACCESS\tREQUESTS\tLAST\tALLOWED NOW BY\tTHEN BY\tBECAUSE OF")
	}
	for i := range a.Accesses {
		x := &a.Accesses[i]
		p.Named(x.Subject)
		p.Printf("%s\t%s\t%s\t%d\t%s\t%s\t%s\t%s\n", x.Class, x.Subject, access(x), x.Count, x.Last.UTC().Format(time.RFC3339),
			bindings(x.Before), bindings(x.After), because(x))
	}
	paths := func(title string, list []query.Path, count int) {
		if count == 0 {
			return
		}
		p.Table("")
		p.Printf("\n%s (%d):\n", title, count)
		for i := range list {
			p.Printf("  %s\n", list[i].Text)
		}
	}
	paths("Ways to cluster administrator that the draft opens", a.Escalation.Opened, a.Escalation.OpenedCount)
	paths("Ways that it closes", a.Escalation.Closed, a.Escalation.ClosedCount)
	p.Table("\nDRAFT\tOBJECT\tFILE")
	for _, c := range a.Changes {
		p.Printf("%s\t%s\t%s\n", c.What, c.Object, place(c.File, c.Line))
	}
	for _, n := range Notes(a) {
		p.Hint("note: %s", n)
	}
}

// Sentence sums an answer up.
func Sentence(a *query.WhatIfAnswer) string {
	var parts []string
	for _, w := range words {
		if n := *a.Summary.Of(w.class); n > 0 {
			parts = append(parts, fmt.Sprintf("%s %s (%s)", phrase.Number(int(n), "access"), w.text,
				phrase.Number(int(*a.Requests.Of(w.class)), "request")))
		}
	}
	if len(parts) == 0 {
		parts = append(parts, "no recorded access changes")
	}
	text := strings.Join(parts, ", ")
	text = fmt.Sprintf("%s%s; %d unchanged.", strings.ToUpper(text[:1]), text[1:], a.Summary.Unchanged)
	if !a.First.IsZero() {
		text += fmt.Sprintf(" Those whom it concerns asked from %s to %s.", a.First.UTC().Format(time.RFC3339),
			a.Last.UTC().Format(time.RFC3339))
	}
	return text
}

// Notes are what a reader has to know besides.
func Notes(a *query.WhatIfAnswer) []string {
	notes := slices.Clone(a.Notes)
	if a.More > 0 {
		notes = append(notes, phrase.Number(a.More, "access")+" more: ask about fewer --subject, or a shorter time")
	}
	unjudged := int64(0)
	for _, n := range a.Unjudged {
		unjudged += n
	}
	if unjudged > 0 {
		notes = append(notes, phrase.Number(int(unjudged), "request")+" had no certain verdict, and are in no class: see retrial drift")
	}
	if a.Unreadable > 0 {
		notes = append(notes, phrase.Number(int(a.Unreadable), "write")+
			" of roles, bindings or certificates have no content on record: what they imply is not looked at")
	}
	return notes
}

// place writes a file and a line in it.
func place(file string, line int) string {
	if file == "" {
		return ""
	}
	return fmt.Sprintf("%s:%d", file, line)
}
