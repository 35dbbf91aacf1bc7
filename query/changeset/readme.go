package changeset

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/internal/manifest"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/query"
)

// owners writes a file for each owner of objects, which is for reading: no script and no kustomization has it.
func (c *change) owners() error {
	taken := map[string]bool{}
	for _, owner := range slices.Sorted(maps.Keys(c.owned)) {
		var b bytes.Buffer
		manifest.Comment(&b, "%s writes these objects: change them in its source, or it writes them again.", owner)
		manifest.Comment(&b, "This file says what they should become. It is not applied: no script and no kustomization here has it.")
		for i := range c.owned[owner] {
			s := &c.owned[owner][i]
			if i > 0 && s.after != nil {
				b.WriteString("---\n")
			}
			b.WriteString("#\n")
			switch {
			case s.after == nil:
				manifest.Comment(&b, "Delete %s%s.", s.key, losing(s))
				continue
			case len(s.went) > 0:
				manifest.Comment(&b, "Change %s: take %s out of it.", s.key, subjects(s.went))
			default:
				manifest.Comment(&b, "Change the rules of %s to those that are needed:", s.key)
			}
			if err := manifest.Role(&b, s.after, c.notes[s.key.String()]); err != nil {
				return err //nolint:wrapcheck // it says what failed
			}
		}
		name := slug(owner)
		if taken[name] {
			name = fileName(owner)
		}
		taken[name] = true
		c.add("owners/"+name+".yaml", &b)
	}
	return nil
}

// slug returns a text as a short name: words of letters and digits.
func slug(text string) string {
	words := strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') })
	name := strings.Join(words, "-")
	return strings.TrimPrefix(name[:min(len(name), mostName)], "a-")
}

// mostSubjects bounds the table of subjects.
const mostSubjects = 100

// readme writes what the directory is and in which order it is used.
func (c *change) readme() error {
	a := c.answer
	var b bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# Narrower roles for cluster %s\n", code(a.Cluster))
	line("`retrial suggest -o dir` made this of what was recorded: %s. %s.\n", query.RecordingText(&a.Window), capital(a.Verdict()))
	for i, g := range a.Window.Gaps {
		if i == 0 {
			line("What the recording lacks:\n")
		}
		line("- %s", safe.Text(g))
	}
	if len(a.Window.Gaps) > 0 {
		line("")
	}
	line("| for | unused today, by weight | then | requests | maturity |\n| --- | ---: | ---: | ---: | --- |")
	shown := 0
	for _, s := range a.Suggestions {
		if !s.Changes() {
			continue
		}
		if shown++; shown > mostSubjects {
			continue
		}
		state := "learned"
		if !s.Maturity.Learned {
			state = "still learning: " + s.Maturity.Why
		}
		name := code(s.Subject)
		if s.What != leastpriv.WhatSubject {
			name = s.What + " " + name
		}
		line("| %s | %d | %d | %d | %s |", name, s.Excess.Before, s.Excess.After, s.Window.Requests, cell(state))
	}
	if shown > mostSubjects {
		line("\nAnd %s.", phrase.Number(shown-mostSubjects, "more subject"))
	}
	c.order(&b)
	c.withKustomize(&b)
	c.leftOut(&b)
	c.add("README.md", &b)
	return nil
}

// order writes the steps.
func (c *change) order(b *bytes.Buffer) {
	n := 0
	step := func(command, format string, args ...any) {
		n++
		fmt.Fprintf(b, "%d. %s\n", n, fmt.Sprintf(format, args...))
		if command != "" {
			fmt.Fprintf(b, "\n   ```sh\n   %s\n   ```\n\n", command)
		}
	}
	b.WriteString("\n## In this order\n\n" +
		"The scripts are commands of `kubectl`; read them first. `KUBECTL=\"kubectl --context NAME\"` before one " +
		"chooses the cluster. Each may be run again. It leaves an object alone that has changed since this was made, and says so.\n\n")
	objects := 0
	for _, of := range c.made {
		objects += len(of)
	}
	var doing []string
	if objects > 0 {
		doing = append(doing, "make "+phrase.Number(objects, "object")+" (`apply/`)")
	}
	if len(c.edited) > 0 {
		doing = append(doing, "narrow "+phrase.Number(len(c.edited), "role")+" in place (`patches/`)")
	}
	if len(doing) > 0 {
		step("sh "+applyScript, "First what replaces: %s.", strings.Join(doing, ", then "))
	}
	if len(c.owned) > 0 {
		step("", "Change in their sources what others write (`owners/`). No script does, and the other steps need not wait for it:\n")
		for _, owner := range slices.Sorted(maps.Keys(c.owned)) {
			fmt.Fprintf(b, "   - %s: %s\n", safe.Text(owner), phrase.Number(len(c.owned[owner]), "object"))
		}
		b.WriteString("\n")
	}
	if len(c.removed) > 0 {
		step("sh "+removeScript, "Then take away what that replaces: delete, or take subjects out of, %s (`remove/`).",
			phrase.Number(len(c.removed), "object"))
	}
	if objects+len(c.edited)+len(c.removed) > 0 {
		step("retrial refusals --since 1d --cluster "+safe.Text(phrase.ShellWord(c.answer.Cluster)),
			"Look for refusals that there were not before.")
		step("sh "+rollbackScript, "The way back, at any time (`rollback/`):")
	}
}

// withKustomize says how a kustomization takes the change in.
func (c *change) withKustomize(b *bytes.Buffer) {
	if len(c.made)+len(c.edited)+len(c.removed) == 0 {
		return
	}
	b.WriteString("## With kustomize\n\nWhere a kustomization has the objects that change, name this directory in it:\n\n```yaml\n")
	if len(c.made) > 0 {
		b.WriteString("resources:\n- PATH           # what is new\n")
	}
	if len(c.edited)+len(c.removed) > 0 {
		b.WriteString("components:\n")
	}
	if len(c.edited) > 0 {
		b.WriteString("- PATH/patches   # what is narrowed\n")
	}
	if len(c.removed) > 0 {
		b.WriteString("- PATH/remove    # what goes: a commit later, when the rest is in the cluster\n")
	}
	b.WriteString("```\n\nEach patch tests what it changes: where the kustomization has other rules or subjects, or not the object, " +
		"the build fails. " +
		"The way back is to take these lines out.\n")
}

// leftOut says what is in no file, and what is not known.
func (c *change) leftOut(b *bytes.Buffer) {
	list := func(title string, lines []string) {
		for i, l := range lines {
			if i == 0 {
				fmt.Fprintf(b, "\n## %s\n\n", title)
			}
			fmt.Fprintf(b, "- %s\n", safe.Text(l))
		}
	}
	list("In no file, for their names: change them by hand", c.unworded)
	var gaps []string
	for _, s := range c.answer.Suggestions {
		for _, g := range s.Gaps {
			if s.Changes() && len(gaps) < mostSubjects {
				gaps = append(gaps, s.Subject+": "+g)
			}
		}
	}
	list("What is not known, or cannot be done", gaps)
}

// code writes a text that anybody may have chosen as code.
func code(text string) string { return "`" + cell(strings.ReplaceAll(text, "`", "'")) + "`" }

// cell writes a text that ends no cell of a table.
func cell(text string) string { return strings.ReplaceAll(safe.Text(text), "|", `\|`) }

func capital(s string) string { return strings.ToUpper(s[:1]) + s[1:] }
