package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/client-go/util/jsonpath"

	"github.com/retrial-io/retrial/internal/safe"
)

// APIVersion is the version of everything that commands print as JSON or YAML. Members are added to it; those there are keep their
// meaning. docs/output.schema.json has the kinds.
const APIVersion = "retrial.io/v1"

// Kinded is an answer whose kind is not what its type is called.
type Kinded struct {
	Kind   string
	Answer any
}

// KindOf returns the kind of an answer: the name of its type without Answer, of a list that of its items with List.
func KindOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() == reflect.Slice {
		return KindOf(t.Elem()) + "List"
	}
	return strings.ToUpper(t.Name()[:1]) + strings.TrimSuffix(t.Name(), "Answer")[1:]
}

// Envelope returns an answer as JSON, an object that begins with its version and kind, as Kubernetes' objects do. A list is its items.
func Envelope(answer any) ([]byte, error) {
	of, is := answer.(Kinded)
	if !is {
		of = Kinded{KindOf(reflect.TypeOf(answer)), answer}
	}
	text, err := marshal(of.Answer)
	if err != nil {
		return nil, fmt.Errorf("print as JSON: %w", err)
	}
	head := fmt.Sprintf(`{"apiVersion":%q,"kind":%q`, APIVersion, of.Kind)
	text = bytes.TrimSpace(text)
	members, object := bytes.CutPrefix(text, []byte("{"))
	switch {
	case !object:
		return fmt.Appendf(nil, `%s,"items":%s}`, head, text), nil
	case len(members) > 1:
		head += ","
	}
	return append([]byte(head), members...), nil
}

func marshal(v any) ([]byte, error) {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return text.Bytes(), err
}

// jsonPathForm is how help names the form.
const jsonPathForm = "jsonpath=EXPRESSION"

// parseJSONPath reads an expression as kubectl does. One without braces is that within them.
func parseJSONPath(expression string) (*jsonpath.JSONPath, error) {
	path := jsonpath.New("output").AllowMissingKeys(true)
	text := expression
	if !strings.Contains(text, "{") {
		text = "{." + strings.TrimPrefix(text, ".") + "}"
	}
	if err := path.Parse(text); err != nil || expression == "" {
		return nil, ExitWith(ExitUsage, fmt.Errorf("invalid --output jsonpath=%s: want an expression such as '{.items[*].name}'%s",
			expression, because(err)))
	}
	return path, nil
}

func because(err error) string {
	if err == nil {
		return ""
	}
	return ": " + err.Error()
}

// printJSONPath prints what an expression names of a JSON text. Strings in it may be hostile; line breaks are the expression's own.
func printJSONPath(w io.Writer, expression string, text []byte) error {
	path, err := parseJSONPath(expression)
	if err != nil {
		return err
	}
	var v any
	if err := utiljson.Unmarshal(text, &v); err != nil {
		return fmt.Errorf("read what is printed: %w", err)
	}
	var out bytes.Buffer
	if err := path.Execute(&out, safeValue(v)); err != nil {
		return ExitWith(ExitUsage, fmt.Errorf("--output jsonpath=%s: %w", expression, err))
	}
	if out.Len() > 0 && !bytes.HasSuffix(out.Bytes(), []byte("\n")) {
		out.WriteByte('\n')
	}
	_, err = out.WriteTo(w)
	return err
}

// safeValue makes the strings of a JSON value safe for a terminal.
func safeValue(v any) any {
	switch v := v.(type) {
	case string:
		return safe.Text(v)
	case []any:
		for i := range v {
			v[i] = safeValue(v[i])
		}
	case map[string]any:
		for name, member := range v {
			v[name] = safeValue(member)
		}
	}
	return v
}
