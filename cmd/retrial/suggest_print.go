package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/query"
)

// suggestTable ranks the subjects; of a single one it also says what is unused and what
// its groups keep.
func suggestTable(out io.Writer, answer *query.SuggestAnswer) error {
	fmt.Fprintf(out, "WINDOW  %s\n", windowText(&answer.Window))
	for i, g := range answer.Window.Gaps {
		fmt.Fprintf(out, "%-6s  %s\n", nth("GAPS", i), safe.Text(g))
	}
	fmt.Fprintln(out)
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
	fmt.Fprintln(w, "SUBJECT\tEXCESS\tAFTER\tBY GROUPS\tREQUESTS\tJUDGED\tAPPLY\tREMOVE\tPROOF")
	listed := map[string]bool{}
	for _, s := range answer.Suggestions {
		listed[s.Subject] = true
		fmt.Fprintf(w, "%s\t%d\t%d\t%d\t%d\t%.1f %%\t%d\t%d\t%s\n", safe.Text(s.Subject), s.Excess.Before, s.Excess.After, s.Excess.Kept,
			s.Window.Requests, 100*s.Window.Coverage, len(s.Apply), len(s.Remove), proofText(s))
	}
	for _, u := range answer.Unseen {
		if !listed[u.Subject] {
			fmt.Fprintf(w, "%s\t%d\t\t\t0\t\t\t\tnever seen: all of it is unused (--include-unseen)\n", safe.Text(u.Subject), u.Excess)
		}
	}
	if err := w.Flush(); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	if len(answer.Suggestions) != 1 {
		return nil
	}
	s := answer.Suggestions[0]
	section := func(title string, lines []string) {
		if len(lines) > 0 {
			fmt.Fprintf(out, "\n%s\n", title)
		}
		for _, l := range lines {
			fmt.Fprintln(out, " ", safe.Text(l))
		}
	}
	var unused, keeps, failures []string
	for _, u := range s.Unused {
		more := ""
		if u.More > 0 {
			more = fmt.Sprintf(" and %d more", u.More)
		}
		if u.TooLarge && len(u.Grants) == 0 {
			more = "too large to weigh"
		}
		unused = append(unused, fmt.Sprintf("%d  %s, rule %d of %s: %s%s", u.Excess, u.Binding, u.Rule, u.Role, strings.Join(u.Grants, ", "), more))
	}
	for _, k := range s.Keeps {
		keeps = append(keeps, keepText(&k))
	}
	failures = append(failures, s.Proof.Failures...)
	section("Granted and never used, by weight:", unused)
	section("What groups go on giving:", keeps)
	section("Where the proof fails:", failures)
	section("Gaps:", s.Gaps)
	return nil
}

func keepText(k *query.KeptBinding) string {
	text := fmt.Sprintf("%s of %s to group %s: %d requests rely on it, excess %d", k.Binding, k.Role, k.Group, k.Relied, k.Excess)
	if len(k.Undoes) > 0 {
		text += "; it still gives what this takes away: " + strings.Join(k.Undoes, ", ")
	}
	return text
}

func windowText(r *query.Recording) string {
	return fmt.Sprintf("%s to %s (%s); %d requests, %.1f %% of them judged", r.From.Format(time.RFC3339), r.To.Format(time.RFC3339),
		r.To.Sub(r.From).Round(time.Second), r.Requests, 100*r.Coverage)
}

func proofText(s *query.Suggestion) string {
	switch p := &s.Proof; {
	case !p.Holds:
		return fmt.Sprintf("fails: %d refused, %d newly allowed", p.Refused, p.NewlyAllowed)
	case !s.Seen:
		return "holds: never seen" + pointless(s)
	}
	return "holds" + pointless(s)
}

// pointless names the first group that goes on giving some of what a change takes away.
func pointless(s *query.Suggestion) string {
	for _, k := range s.Keeps {
		if len(k.Undoes) > 0 {
			return "; group " + safe.Text(k.Group) + " undoes part of it"
		}
	}
	return ""
}

// header says, as comments, what the whole is made of.
func header(w io.Writer, answer *query.SuggestAnswer) {
	comment(w, "window: %s", windowText(&answer.Window))
	for _, g := range answer.Window.Gaps {
		comment(w, "window gap: %s", g)
	}
	comment(w, "%s", verdictOn(answer))
	comment(w, "")
}

// finalYAML writes the objects of the final state.
func finalYAML(w io.Writer, answer *query.SuggestAnswer) error {
	header(w, answer)
	return yamlObjects(w, answer.Plan.Final)
}

// suggestYAML writes what to apply, and around it, as comments, why and what to remove.
func suggestYAML(w io.Writer, answer *query.SuggestAnswer) error {
	header(w, answer)
	plan := answer.Plan
	for _, s := range answer.Suggestions {
		comment(w, "subject: %s", s.Subject)
		comment(w, "%d requests, %.1f %% of them judged", s.Window.Requests, 100*s.Window.Coverage)
		comment(w, "excess: %d, after the change %d, by groups %d", s.Excess.Before, s.Excess.After, s.Excess.Kept)
		comment(w, "proof: %s; %d requests replayed, %d refused; %d refusals on record, %d newly allowed", proofText(s),
			s.Proof.Requests, s.Proof.Refused, s.Proof.Refusals, s.Proof.NewlyAllowed)
		for _, k := range s.Keeps {
			if len(k.Undoes) > 0 {
				comment(w, "kept: %s", keepText(&k))
			}
		}
		for _, g := range s.Gaps {
			comment(w, "gap: %s", g)
		}
		if !s.Changes() {
			comment(w, "nothing to change")
		}
		fmt.Fprintln(w, "#")
	}
	if err := yamlObjects(w, plan.Apply); err != nil {
		return err
	}
	if len(plan.Remove) == 0 {
		return nil
	}
	comment(w, "When the above is applied, take the subjects out of what it replaces (the way back: -o json, rollback):")
	for i := range plan.Remove {
		command, err := removeCommand(&plan.Remove[i])
		if err != nil {
			return err
		}
		comment(w, "  %s", command)
	}
	return nil
}

// removeCommand is what to type. Names are anybody's: they are quoted for a shell, and what
// does not print is escaped by comment, which makes such a command one to read first.
func removeCommand(r *query.RemovedBinding) (string, error) {
	where := ""
	if r.Namespace != "" {
		where = " -n " + phrase.ShellWord(r.Namespace)
	}
	object := phrase.ShellWord(strings.ToLower(r.Kind) + "/" + r.Name)
	if r.Action == query.RemoveWhole {
		return "kubectl delete " + object + where, nil
	}
	raw, err := json.Marshal(r.Object)
	if err != nil {
		return "", fmt.Errorf("print %s %s: %w", r.Kind, r.Name, err)
	}
	var left struct {
		Subjects json.RawMessage `json:"subjects"`
	}
	if err := json.Unmarshal(raw, &left); err != nil {
		return "", fmt.Errorf("print %s %s: %w", r.Kind, r.Name, err)
	}
	return "kubectl patch " + object + where + " --type=merge -p " + phrase.ShellWord(`{"subjects":`+string(left.Subjects)+`}`), nil
}

// yamlObjects writes each object as a document of its own. One with characters that a
// terminal obeys is written as JSON, which is YAML too and can escape them.
func yamlObjects(w io.Writer, objects []query.RBACObject) error {
	for i, o := range objects {
		if i > 0 {
			fmt.Fprintln(w, "---")
		}
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(o); err != nil {
			return fmt.Errorf("print as yaml: %w", err)
		}
		doc := safe.JSON(text.Bytes())
		if !bytes.Contains(doc, []byte(`\`)) {
			var err error
			if doc, err = yaml.JSONToYAML(doc); err != nil {
				return fmt.Errorf("print as yaml: %w", err)
			}
		}
		if _, err := w.Write(doc); err != nil {
			return fmt.Errorf("write the result: %w", err)
		}
	}
	return nil
}
