package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"github.com/retrial-io/retrial/internal/safe"
)

// answerForms are the forms of -o in which every list and every object can be printed, the first by default.
var answerForms = []string{"table", "wide", "name", "json", "yaml", "csv", jsonPathForm} //nolint:gochecknoglobals // constant table

// AnswerForms returns the forms in which every list and every object can be printed.
func AnswerForms() []string { return slices.Clone(answerForms) }

// AddOutput adds -o with the formats a command can print, the first as the default; without any, those of every answer. Any other format
// is refused before the command starts. A form that takes a value is written as NAME=VALUE.
func AddOutput(c *cobra.Command, into *string, forms ...string) {
	if len(forms) == 0 {
		forms = answerForms
	}
	c.Flags().StringVarP(into, "output", "o", forms[0], strings.Join(forms[:len(forms)-1], ", ")+" or "+forms[len(forms)-1])
	// The only error is that there is no such flag.
	_ = c.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(slices.DeleteFunc(slices.Clone(forms), func(form string) bool {
		return strings.Contains(form, "=")
	}), cobra.ShellCompDirectiveNoFileComp))
	Before(c, func([]string) error {
		name, value, is := strings.Cut(*into, "=")
		switch taking := slices.ContainsFunc(forms, func(form string) bool { return strings.HasPrefix(form, name+"=") }); {
		case is && taking && name == "jsonpath":
			_, err := parseJSONPath(value)
			return err
		case is && taking && value != "", !is && slices.Contains(forms, *into):
			return nil
		case len(forms) == 2:
			return ExitWith(ExitUsage, fmt.Errorf("invalid --output %q: want %s or %s", *into, forms[0], forms[1]))
		}
		return ExitWith(ExitUsage, fmt.Errorf("invalid --output %q: want one of %s", *into, strings.Join(forms, ", ")))
	})
}

// Show prints an answer in the form asked for: for people, and as the names or the CSV of what it lists, by the function; else in an
// Envelope.
func Show(s Streams, form string, answer any, table func(*Page)) error {
	expression, path := strings.CutPrefix(form, "jsonpath=")
	if path || form == "json" || form == "yaml" {
		return s.showEnveloped(form, expression, path, answer)
	}
	p := Page{form: form}
	table(&p)
	var out bytes.Buffer
	switch form {
	case "name":
		for _, name := range p.names {
			out.WriteString(name + "\n")
		}
	case "csv":
		more, err := p.csv(&out)
		if err != nil {
			return err
		}
		if more {
			p.Hint("hint: CSV has the first table alone; -o json has everything")
		}
	default:
		out.WriteString(p.render(s.style(p.Wide())))
	}
	err := s.write(out.Bytes())
	hints := p.hints.String()
	if s.coloured(s.Err) {
		lines := strings.Split(hints, "\n")
		for i := range lines {
			lines[i] = paintHint(lines[i])
		}
		hints = strings.Join(lines, "\n")
	}
	_, hinting := io.WriteString(s.Err, hints)
	return errors.Join(err, hinting)
}

func (s Streams) showEnveloped(form, expression string, path bool, answer any) error {
	text, err := Envelope(answer)
	if err != nil {
		return err
	}
	var out bytes.Buffer
	if path {
		err = printJSONPath(&out, expression, text)
	} else {
		err = PrintAs(&out, form, json.RawMessage(text))
	}
	if err != nil {
		return err
	}
	return s.write(out.Bytes())
}

// PrintAs prints v as json or yaml. Strings in it may be hostile: characters that control a
// terminal are escaped.
func PrintAs(w io.Writer, form string, v any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return fmt.Errorf("print as %s: %w", form, err)
	}
	out := safe.JSON(text.Bytes())
	if form == "yaml" {
		var err error
		if out, err = asYAML(text.Bytes()); err != nil {
			return fmt.Errorf("print as yaml: %w", err)
		}
	}
	if _, err := w.Write(out); err != nil {
		return fmt.Errorf("write the result: %w", err)
	}
	return nil
}

// asYAML turns JSON into YAML. A string with a character to escape is quoted, so that the
// escape can be written: YAML prints literally most of what JSON is made to escape.
func asYAML(text []byte) ([]byte, error) {
	var doc yaml.Node
	// The parser accepts neither control characters nor JSON's surrogate pairs.
	if err := yaml.Unmarshal(safe.YAML(text), &doc); err != nil {
		return nil, err
	}
	restyle(&doc)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := errors.Join(enc.Encode(&doc), enc.Close()); err != nil {
		return nil, err
	}
	return safe.YAML(out.Bytes()), nil
}

// restyle lets the encoder choose the style of nodes that were JSON.
func restyle(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && !safe.Printable(n.Value) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, c := range n.Content {
		restyle(c)
	}
}

// SafeJSON returns a writer that passes JSON text on to w in a form that is safe on a terminal.
// Each Write must hold whole characters, as encoders write them.
func SafeJSON(w io.Writer) io.Writer { return safeJSON{w} }

type safeJSON struct{ w io.Writer }

func (s safeJSON) Write(p []byte) (int, error) {
	if _, err := s.w.Write(safe.JSON(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}

// SafeLines makes a message safe for a terminal and keeps its line breaks.
func SafeLines(message string) string {
	lines := strings.Split(message, "\n")
	for i, l := range lines {
		lines[i] = safe.Text(l)
	}
	return strings.Join(lines, "\n")
}
