// Package manifest writes Kubernetes objects as text that is kept and applied: YAML and comments, in which nothing that a client chose can
// end a line or a document.
//
// The package is pure.
package manifest

import (
	"bytes"
	"encoding/json"
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
