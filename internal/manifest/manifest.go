// Package manifest writes Kubernetes objects as text that is kept and applied: YAML and comments, in which nothing that a client chose can
// end a line or a document.
//
// The package is pure.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
)

// Comment writes one line of a YAML comment; nothing in it can end the line.
func Comment(w io.Writer, format string, args ...any) {
	fmt.Fprintln(w, strings.TrimRight("# "+safe.Text(fmt.Sprintf(format, args...)), " "))
}

// Objects writes each object as a document of its own. One with control characters is written as JSON, which is YAML too and can escape
// them.
func Objects[T any](w io.Writer, objects []T) error {
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

// Role writes a role with comments before each of its rules, by their numbers.
func Role(w io.Writer, role any, notes [][]string) error {
	text, err := json.Marshal(role)
	if err != nil {
		return fmt.Errorf("print as yaml: %w", err)
	}
	var fields map[string]json.RawMessage
	var rules struct {
		Rules []json.RawMessage `json:"rules"`
	}
	if err := errors.Join(json.Unmarshal(text, &fields), json.Unmarshal(text, &rules)); err != nil {
		return fmt.Errorf("print as yaml: %w", err)
	}
	delete(fields, "rules")
	var head bytes.Buffer
	if err := Objects(&head, []any{fields}); err != nil {
		return err
	}
	if len(rules.Rules) == 0 || bytes.HasPrefix(head.Bytes(), []byte("{")) {
		for i, lines := range notes {
			for _, line := range lines {
				Comment(w, "rule %d: %s", i, line)
			}
		}
		return Objects(w, []any{role})
	}
	fmt.Fprintf(w, "%srules:\n", head.Bytes()) // which is the last of a role's fields
	return Items(w, "", rules.Rules, notes)
}

// Items writes a list of YAML, each item behind its comments. One with control characters is written as JSON, as of [Objects].
func Items[T any](w io.Writer, indent string, items []T, notes [][]string) error {
	for i, item := range items {
		if i < len(notes) {
			for _, line := range notes[i] {
				fmt.Fprint(w, indent)
				Comment(w, "%s", line)
			}
		}
		var text bytes.Buffer
		if err := Objects(&text, []any{item}); err != nil {
			return err
		}
		begin := indent + "- "
		for line := range strings.Lines(text.String()) {
			if _, err := io.WriteString(w, begin+line); err != nil {
				return fmt.Errorf("write the result: %w", err)
			}
			begin = indent + "  "
		}
	}
	return nil
}

// Deletions writes as comments how to delete the objects that a change made and its way back does not hold.
func Deletions[T any](w io.Writer, made, back []T) error {
	type object struct {
		Kind     string `json:"kind"`
		Metadata struct {
			Name      string `json:"name"`
			Namespace string `json:"namespace"`
		} `json:"metadata"`
	}
	read := func(o T) (out object, err error) {
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
			Comment(w, "When the above is applied, delete what the change made:")
			begun = true
		}
		Comment(w, "  kubectl delete %s", phrase.KubectlObject(k.Kind, k.Metadata.Namespace, k.Metadata.Name))
	}
	return nil
}
