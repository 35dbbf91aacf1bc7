package query

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
)

// SuggestTexts are the changes of named subjects as text, to be read, kept and applied.
type SuggestTexts struct {
	// Apply is YAML: the objects to write and, as comments, what it rests on and what to remove then.
	Apply string `json:"apply"`
	// Remove are the commands that remove what the objects replace, a line each.
	Remove string `json:"remove"`
	// Rollback is YAML: the objects as they were and, as comments, which new ones to delete then.
	Rollback string `json:"rollback"`
}

// texts writes them.
func (a *SuggestAnswer) texts() (*SuggestTexts, error) {
	var apply, remove, rollback strings.Builder
	if err := a.WriteYAML(&apply, false); err != nil {
		return nil, err
	}
	for i := range a.Plan.Remove {
		command, err := RemoveCommand(&a.Plan.Remove[i])
		if err != nil {
			return nil, err
		}
		fmt.Fprintln(&remove, safe.Text(command))
	}
	for _, s := range a.Suggestions {
		comment(&rollback, "the way back from the change for subject: %s", s.Subject)
	}
	if err := yamlObjects(&rollback, a.Plan.Rollback); err != nil {
		return nil, err
	}
	if err := deletions(&rollback, a.Plan.Apply, a.Plan.Rollback); err != nil {
		return nil, err
	}
	return &SuggestTexts{Apply: apply.String(), Remove: remove.String(), Rollback: rollback.String()}, nil
}

// deletions writes as comments how to delete the objects that a change made and its way back does not hold.
func deletions(w io.Writer, made, back []RBACObject) error {
	type object struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	read := func(o RBACObject) (out object, err error) {
		text, err := json.Marshal(o)
		if err == nil {
			err = json.Unmarshal(text, &out)
		}
		if err != nil {
			err = fmt.Errorf("print an object: %w", err)
		}
		return out, err
	}
	stays := map[object]bool{}
	for _, o := range back {
		k, err := read(o)
		if err != nil {
			return err
		}
		stays[k] = true
	}
	begun := false
	for _, o := range made {
		k, err := read(o)
		if err != nil {
			return err
		}
		if stays[k] {
			continue
		}
		if !begun {
			comment(w, "When the above is applied, delete what the change made:")
			begun = true
		}
		where := ""
		if k.Metadata.Namespace != "" {
			where = " -n " + phrase.ShellWord(k.Metadata.Namespace)
		}
		comment(w, "  kubectl delete %s%s", phrase.ShellWord(strings.ToLower(k.Kind)+"/"+k.Metadata.Name), where)
	}
	return nil
}

// Verdict says in a few words whether the proofs hold.
func (a *SuggestAnswer) Verdict() string {
	failed := 0
	for _, one := range a.Suggestions {
		if !one.Proof.Holds {
			failed++
		}
	}
	switch {
	case failed > 0:
		return fmt.Sprintf("%d proofs do not hold", failed)
	case !a.Plan.Holds:
		return "every proof holds alone, not all of them together"
	}
	return "every proof holds, also with all suggestions in force together"
}

// WriteYAML writes what to apply and, as comments, why and what to remove; or the objects of the final state.
func (a *SuggestAnswer) WriteYAML(w io.Writer, final bool) error {
	comment(w, "window: %s", RecordingText(&a.Window))
	for _, g := range a.Window.Gaps {
		comment(w, "window gap: %s", g)
	}
	comment(w, "%s", a.Verdict())
	comment(w, "")
	if final {
		return yamlObjects(w, a.Plan.Final)
	}
	plan := a.Plan
	for _, s := range a.Suggestions {
		comment(w, "subject: %s", s.Subject)
		comment(w, "%d requests, %.1f %% of them judged", s.Window.Requests, 100*s.Window.Coverage)
		comment(w, "excess: %d, after the change %d, by groups %d", s.Excess.Before, s.Excess.After, s.Excess.Kept)
		comment(w, "proof: %s; %d requests replayed, %d refused; %d refusals on record, %d newly allowed", ProofText(s),
			s.Proof.Requests, s.Proof.Refused, s.Proof.Refusals, s.Proof.NewlyAllowed)
		for _, k := range s.Keeps {
			if len(k.Undoes) > 0 {
				comment(w, "kept: %s", KeptText(&k))
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
		command, err := RemoveCommand(&plan.Remove[i])
		if err != nil {
			return err
		}
		comment(w, "  %s", command)
	}
	return nil
}

// RecordingText says how long was recorded, and how much of it was judged.
func RecordingText(r *Recording) string {
	return fmt.Sprintf("%s to %s (%s); %d requests, %.1f %% of them judged", r.From.Format(time.RFC3339), r.To.Format(time.RFC3339),
		r.To.Sub(r.From).Round(time.Second), r.Requests, 100*r.Coverage)
}

// ProofText says whether the proof of a suggestion holds.
func ProofText(s *Suggestion) string {
	switch p := &s.Proof; {
	case !p.Holds:
		return fmt.Sprintf("fails: %d refused, %d newly allowed", p.Refused, p.NewlyAllowed)
	case !s.Seen:
		return "holds: never seen" + pointless(s)
	}
	return "holds" + pointless(s)
}

// pointless names the first group that still gives some of what a change takes away.
func pointless(s *Suggestion) string {
	for _, k := range s.Keeps {
		if len(k.Undoes) > 0 {
			return "; group " + k.Group + " undoes part of it"
		}
	}
	return ""
}

// KeptText says what a group goes on giving.
func KeptText(k *KeptBinding) string {
	text := fmt.Sprintf("%s of %s to group %s: %d requests rely on it, excess %d", k.Binding, k.Role, k.Group, k.Relied, k.Excess)
	if len(k.Undoes) > 0 {
		text += "; it still gives what this takes away: " + strings.Join(k.Undoes, ", ")
	}
	return text
}

// RemoveCommand returns the command that removes a binding. Anybody may choose names: they are quoted for a shell, and comment escapes what
// does not print, so such a command has to be read first.
func RemoveCommand(r *RemovedBinding) (string, error) {
	where := ""
	if r.Namespace != "" {
		where = " -n " + phrase.ShellWord(r.Namespace)
	}
	object := phrase.ShellWord(strings.ToLower(r.Kind) + "/" + r.Name)
	if r.Action == RemoveWhole {
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

// comment writes one line of a YAML comment; nothing in it can end the line.
func comment(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, strings.TrimRight("# "+safe.Text(fmt.Sprintf(format, args...)), " "))
}

// yamlObjects writes each object as a document of its own. One with control characters is written as JSON, which is YAML too and can escape
// them.
func yamlObjects(w io.Writer, objects []RBACObject) error {
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
