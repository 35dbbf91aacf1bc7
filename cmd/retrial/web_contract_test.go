package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/retrial-io/retrial/query"
)

// contract is the OpenAPI document: what may be asked, and how it is answered.
type contract struct {
	Paths      map[string]map[string]operation
	Components struct{ Schemas map[string]*schema }
}

type operation struct {
	Parameters []struct {
		Name     string
		Required bool
		Schema   *schema
	}
	RequestBody struct {
		Content map[string]struct{ Schema *schema }
	}
	Responses map[string]struct {
		Content map[string]struct{ Schema *schema }
	}
}

// schema is a JSON schema as far as the document makes use of it. An empty one takes everything.
type schema struct {
	Ref                  string `json:"$ref"`
	Type, Format         string
	Enum, Required       []string
	Minimum, Maximum     float64
	Properties           map[string]*schema
	Items                *schema
	AdditionalProperties *schema
}

func (s *schema) UnmarshalJSON(text []byte) error {
	switch string(text) {
	case "true":
		return nil
	case "false":
		s.Type = "nothing"
		return nil
	}
	type plain schema
	return json.Unmarshal(text, (*plain)(s))
}

const apiRoot = "/api/v1/"

// theContract reads the document once.
var theContract = sync.OnceValues(func() (*contract, error) {
	text, err := os.ReadFile(filepath.Join("..", "..", "query", "api", "openapi.json"))
	if err != nil {
		return nil, err
	}
	c := &contract{}
	return c, json.Unmarshal(text, c)
})

func needContract(t *testing.T) *contract {
	t.Helper()
	c, err := theContract()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (c *contract) resolve(s *schema) *schema {
	for s.Ref != "" {
		s = c.Components.Schemas[strings.TrimPrefix(s.Ref, "#/components/schemas/")]
	}
	return s
}

// askedByPost are the questions that are asked by POST and change nothing.
var askedByPost = []string{apiRoot + "whatif"} //nolint:gochecknoglobals // constant table

// answerOf is the schema of what a question is answered with.
func (c *contract) answerOf(path string) *schema {
	method := "get"
	if slices.Contains(askedByPost, path) {
		method = "post"
	}
	return c.Paths[path][method].Responses["200"].Content["application/json"].Schema
}

// against says what of a question is not in the document; "" if all is.
func (c *contract) against(method string, u *url.URL) string {
	op, ok := c.Paths[u.Path][strings.ToLower(method)]
	if !ok {
		return "no such path"
	}
	asked := u.Query()
	for _, p := range op.Parameters {
		values, given := asked[p.Name]
		delete(asked, p.Name)
		switch {
		case !given && p.Required:
			return p.Name + " is required"
		case given && len(values) != 1:
			return p.Name + " is given more than once"
		case given && !p.Schema.takes(values[0]):
			return fmt.Sprintf("%s is not %q", p.Name, values[0])
		}
	}
	for name := range asked {
		return "unknown parameter " + name
	}
	return ""
}

// againstBody says what of the body of a question is not in the document.
func (c *contract) againstBody(method string, u *url.URL, body []byte) []string {
	of := c.Paths[u.Path][strings.ToLower(method)].RequestBody.Content["application/json"].Schema
	var v any
	if err := json.Unmarshal(body, &v); err != nil || of == nil {
		return []string{fmt.Sprintf("a body that is not JSON, or that nothing takes: %v", err)}
	}
	return c.differs("the body", of, v)
}

// takes reports whether a parameter may have a value.
func (s *schema) takes(value string) bool {
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, value) {
		return false
	}
	switch {
	case s.Type == "boolean":
		return value == "true" || value == "false"
	case s.Type == "integer":
		n, err := strconv.ParseFloat(value, 64)
		return err == nil && (s.Maximum == 0 || n >= s.Minimum && n <= s.Maximum)
	case s.Format == "date-time":
		_, err := time.Parse(time.RFC3339, value)
		return err == nil
	}
	return true
}

// differs lists where a value is not what its schema says. Lists, what is described elsewhere, and times may be null.
func (c *contract) differs(at string, s *schema, v any) (out []string) {
	if v == nil && (s.Ref != "" || s.Type == "array" || s.Type == "object" || s.Format == "date-time") {
		return nil
	}
	s = c.resolve(s)
	wrong := func() []string { return []string{fmt.Sprintf("%s is %.80v, want %s", at, v, s.Type)} }
	switch s.Type {
	case "nothing":
		return []string{at + " is not described"}
	case "string":
		text, ok := v.(string)
		if !ok {
			return wrong()
		}
		if _, err := time.Parse(time.RFC3339, text); s.Format == "date-time" && err != nil {
			return []string{fmt.Sprintf("%s: %v", at, err)}
		}
	case "boolean":
		if _, ok := v.(bool); !ok {
			return wrong()
		}
	case "integer", "number":
		n, ok := v.(float64)
		if !ok || s.Type == "integer" && n != float64(int64(n)) {
			return wrong()
		}
	case "array":
		list, ok := v.([]any)
		if !ok {
			return wrong()
		}
		for i, e := range list {
			out = append(out, c.differs(fmt.Sprintf("%s[%d]", at, i), s.Items, e)...)
		}
	case "object":
		if s.Properties == nil && s.AdditionalProperties == nil {
			return nil
		}
		o, ok := v.(object)
		if !ok {
			return wrong()
		}
		for _, name := range s.Required {
			if _, ok := o[name]; !ok {
				out = append(out, at+" has no "+name)
			}
		}
		for name, member := range o {
			of := s.Properties[name]
			if of == nil {
				of = s.AdditionalProperties
			}
			if of == nil {
				out = append(out, at+"."+name+" is not described")
				continue
			}
			out = append(out, c.differs(at+"."+name, of, member)...)
		}
	}
	return out
}

type object = map[string]any

// filled makes a value of a schema whose every string is one of the texts. A list that is in no other has an element for each of them,
// one within an element has one.
func (c *contract) filled(s *schema, texts []string) any {
	s = c.resolve(s)
	switch {
	case s.Type == "array":
		list := []any{}
		for _, text := range texts {
			list = append(list, c.filled(s.Items, []string{text}))
		}
		return list
	case s.Properties != nil:
		o := object{}
		for name, member := range s.Properties {
			o[name] = c.filled(member, texts)
		}
		return o
	case s.AdditionalProperties != nil:
		o := object{}
		for _, text := range texts {
			o[text] = c.filled(s.AdditionalProperties, []string{text})
		}
		return o
	case s.Type == "object":
		return object{texts[0]: texts[0]}
	case s.Format == "date-time":
		return "2026-11-20T11:40:00Z"
	case s.Type == "boolean":
		return true
	case s.Type == "integer" || s.Type == "number":
		return 7
	}
	return texts[0]
}

// bare makes the least value of a schema: nothing is in it that need not be.
func (c *contract) bare(s *schema) any {
	s = c.resolve(s)
	switch {
	case s.Type == "array":
		return []any{}
	case s.Type == "object" || s.Properties != nil:
		o := object{}
		for _, name := range s.Required {
			o[name] = c.bare(s.Properties[name])
		}
		return o
	case s.Format == "date-time":
		return "0001-01-01T00:00:00Z"
	case s.Type == "boolean":
		return false
	case s.Type == "integer" || s.Type == "number":
		return 0
	}
	return ""
}

// contract asks every question of the document with good parameters, and holds the answers to their schemas.
func (w *web) contract(t *testing.T) {
	c := needContract(t)
	span := w.span(t)
	refused := w.s.newest(t, url.Values{"decision": {"forbid"}})
	var writes query.PolicyChangesAnswer
	w.s.get(t, "policy-changes?limit=1&cluster=sample", &writes)
	asked := map[string]url.Values{
		"ask": {"question": {"subjects"}}, "can": {"subject": {"carol"}}, "changes": {"from": span["from"]},
		"complete":     {"kind": {"subject"}},
		"explain-deny": {"auditID": {refused.AuditID}}, "facets": {"keys": {"verb,decision"}}, "first-uses": {"from": span["from"]},
		"histogram": {"split": {"outcome"}}, "lineage": {"subject": {"carol"}}, "overview": span,
		"policy-changes": {"id": {writes.Changes[0].AuditID}}, "subject": {"subject": {"carol"}},
		"suggest": {"subject": {"carol"}}, "who-can": {"verb": {"get"}, "resource": {"secrets"}}, "why": {"auditID": {refused.AuditID}},
	}
	for _, path := range slices.Sorted(maps.Keys(c.Paths)) {
		op, ok := c.Paths[path]["get"]
		if !ok {
			continue
		}
		name := strings.TrimPrefix(path, apiRoot)
		q := asked[name]
		if q == nil {
			q = url.Values{}
		}
		for _, p := range op.Parameters {
			if p.Name == "cluster" {
				q.Set("cluster", "sample")
			}
		}
		u := &url.URL{Path: path, RawQuery: q.Encode()}
		if why := c.against(http.MethodGet, u); why != "" {
			t.Errorf("%s: the test asks for what the document does not have: %s", u, why)
		}
		var answer any
		w.s.get(t, name+"?"+q.Encode(), &answer)
		differs := c.differs(name, c.answerOf(path), answer)
		for _, d := range differs[:min(len(differs), 5)] {
			t.Error(d)
		}
	}
}
