package api_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/invopop/jsonschema"
	"go.uber.org/zap"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/analysis/detect"
	"github.com/retrial-io/retrial/doctor"
	"github.com/retrial-io/retrial/internal/params"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/query/api"
)

var update = flag.Bool("update", false, "rewrite generated files")

const module = "github.com/retrial-io/retrial"

// document is the OpenAPI document, ready to be written.
type document = map[string]any

// describe returns the OpenAPI document of questions. Descriptions come from the help of parameters and
// from the comments of answers and of requests.
func describe(t *testing.T, questions []query.Question) document {
	t.Helper()
	r := &jsonschema.Reflector{Anonymous: true, AllowAdditionalProperties: true, Namer: typeName, Mapper: plainTypes}
	t.Chdir(filepath.Join("..", ".."))
	for _, folder := range []string{"query", "doctor", "verdict", "analysis", "replay", "ingest/event"} {
		if err := r.AddGoComments(module, "./"+folder, jsonschema.WithFullComment()); err != nil {
			t.Fatal(err)
		}
	}
	schemas, paths := document{}, document{}
	for i := range questions {
		q := &questions[i]
		path, _ := paths["/api/v1/"+q.Name].(document)
		if path == nil {
			path = document{}
			paths["/api/v1/"+q.Name] = path
		}
		operation := document{
			"operationId": operationID(q), "summary": q.Summary, "description": requestText(r, q),
			"responses": responses(schemaOf(t, r, q.Answer, schemas)),
		}
		if q.Action || q.Posted {
			operation["requestBody"] = document{"required": true,
				"content": document{"application/json": document{"schema": bodySchema(q)}}}
			path["post"] = operation
			continue
		}
		operation["parameters"] = parameters(q)
		path["get"] = operation
	}
	found := schemas["FindingsAnswer"].(document)["properties"].(document)["findings"].(document)
	found["items"] = schemaOf(t, r, reflect.TypeFor[detect.Finding](), schemas) // as stored: passed on unread
	refused := document{}
	for code, text := range statuses {
		refused[code] = document{"description": text, "content": document{"text/plain": document{"schema": document{"type": "string"}}}}
	}
	return document{
		"openapi": "3.1.0",
		"info": document{"title": "Retrial", "version": "1",
			"description": "Names of members and parameters are stable: new ones are added, old ones keep their meaning. " +
				"Readers pass over members they do not know."},
		"paths": paths, "components": document{"schemas": schemas, "responses": refused, "securitySchemes": document{
			"token": document{"type": "http", "scheme": "bearer", "description": "the page's listener alone; the socket asks for none"}}},
	}
}

// statuses are the answers that are none.
var statuses = map[string]string{
	"400": "the question is wrong; the text says what",
	"401": "a token is needed: Authorization: Bearer TOKEN, or as the password of any user",
	"403": "the request comes from another site (Origin, Sec-Fetch-Site), or is an action and did not come by the socket",
	"404": "nothing is stored under that name, or there is no such path",
	"421": "the listener is not known under that Host; add it with --ui-hosts",
	"500": "the store failed; the server's log says why",
	"429": "the caller has as many questions waiting as one may; ask again when one is answered (Retry-After)",
	"503": "too many questions wait, or this one's turn did not come within 30 s; try again (Retry-After)",
	"504": "the store took longer than 30 s; ask for a shorter range",
}

func responses(answer any) document {
	out := document{"200": document{"description": "the answer", "content": document{"application/json": document{"schema": answer}}}}
	for code := range statuses {
		out[code] = document{"$ref": "#/components/responses/" + code}
	}
	return out
}

func operationID(q *query.Question) string {
	return strings.TrimSuffix(strings.TrimSuffix(q.Request.String(), "Request"), ".")
}

// parameters describes those of a URL.
func parameters(q *query.Question) []any {
	out := []any{}
	for _, f := range q.Parameters() {
		out = append(out, document{
			"name": f.Name, "in": "query", "required": f.Required, "description": parameterText(&f), "schema": parameterSchema(&f),
		})
	}
	return out
}

// parameterText is a parameter's help, with how a list is written.
func parameterText(f *params.Field) string {
	text := f.Help
	if len(f.Old) > 0 {
		text += " (called " + strings.Join(f.Old, " and ") + " before)"
	}
	return text
}

func parameterSchema(f *params.Field) document {
	s := document{"type": "string"}
	switch {
	case f.Type == reflect.TypeFor[time.Time]():
		s["format"] = "date-time"
	case f.Type.Kind() == reflect.Bool:
		s["type"] = "boolean"
	case f.Type.Kind() == reflect.Int:
		s["type"] = "integer"
		s["minimum"], s["maximum"] = json.Number(f.Min), json.Number(f.Max)
	}
	if len(f.Enum) > 0 {
		s["enum"] = f.Enum
	}
	if f.Default != "" {
		s["default"] = f.Default
		if s["type"] == "integer" {
			s["default"] = json.Number(f.Default)
		}
	}
	return s
}

// bodySchema describes the body of an action, or of a question that is posted.
func bodySchema(q *query.Question) document {
	properties, required := document{}, []string{}
	for _, f := range q.Parameters() {
		s := parameterSchema(&f)
		if f.List != "" {
			s = document{"type": "array", "items": document{"type": "string"}}
		}
		if f.Type.Kind() == reflect.Map {
			s = document{"type": "object", "additionalProperties": document{"type": "string"}}
		}
		s["description"] = parameterText(&f)
		properties[f.Name] = s
		if f.Required {
			required = append(required, f.Name)
		}
	}
	return document{"type": "object", "properties": properties, "required": required, "additionalProperties": false}
}

// typeName names a schema: types of package query by their own names, others with their package's.
func typeName(t reflect.Type) string {
	if t.Name() == "" || t.PkgPath() == "" {
		return ""
	}
	pkg := t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:]
	name := strings.ToUpper(t.Name()[:1]) + t.Name()[1:]
	if pkg == "query" {
		return name
	}
	return strings.ToUpper(pkg[:1]) + pkg[1:] + name
}

// plainTypes are those whose JSON is not that of their fields.
func plainTypes(t reflect.Type) *jsonschema.Schema {
	switch t {
	case reflect.TypeFor[json.RawMessage](), reflect.TypeFor[any]():
		return &jsonschema.Schema{Type: "object"}
	case reflect.TypeFor[metav1.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}
	case reflect.TypeFor[metav1.ObjectMeta]():
		return &jsonschema.Schema{Type: "object", Description: "metadata of a Kubernetes object"}
	}
	return nil
}

// schemaOf returns the schema of an answer and adds those it consists of to the others.
func schemaOf(t *testing.T, r *jsonschema.Reflector, of reflect.Type, schemas document) document {
	t.Helper()
	text, err := json.Marshal(r.ReflectFromType(of))
	if err != nil {
		t.Fatal(err)
	}
	var s document
	d := json.NewDecoder(bytes.NewReader(bytes.ReplaceAll(text, []byte("#/$defs/"), []byte("#/components/schemas/"))))
	d.UseNumber()
	if err := d.Decode(&s); err != nil {
		t.Fatal(err)
	}
	defs, _ := s["$defs"].(document)
	for name, def := range defs {
		tidy(def)
		plainNames(def)
		if had, ok := schemas[name]; ok && name != "FindingsAnswer" && !reflect.DeepEqual(had, def) {
			t.Errorf("two types are called %s", name)
			continue
		}
		schemas[name] = def
	}
	delete(s, "$defs")
	delete(s, "$schema")
	return s
}

// tidy makes one line of every description.
func tidy(v any) {
	switch v := v.(type) {
	case document:
		if text, ok := v["description"].(string); ok {
			v["description"] = strings.Join(strings.Fields(text), " ")
		}
		for _, sub := range v {
			tidy(sub)
		}
	case []any:
		for _, sub := range v {
			tidy(sub)
		}
	}
}

// plainNames calls the members that descriptions begin with by their names in JSON, and leaves out the type's.
func plainNames(def any) {
	s := def.(document)
	if text, ok := s["description"].(string); ok {
		s["description"] = ofType.ReplaceAllString(text, "")
	}
	properties, _ := s["properties"].(document)
	for name, p := range properties {
		if p, ok := p.(document); ok {
			if p["description"] == nil && usual[name] != "" {
				p["description"] = usual[name]
			}
			if text, ok := p["description"].(string); ok {
				p["description"] = ofField.ReplaceAllStringFunc(text, func(first string) string {
					if strings.EqualFold(strings.TrimSpace(first), name) {
						return "`" + name + "` "
					}
					return first
				})
			}
		}
	}
}

// usual are members that mean the same wherever they stand, and that no comment says more about.
var usual = map[string]string{
	"cluster": "name of the cluster", "clusters": "those there are events of", "apiserver": "name of the apiserver",
	"auditID": "audit ID of the request", "verb": "verb of the request", "requestURI": "path and query of the request",
	"user": "user name", "userAgent": "client, by its own word", "groups": "groups of the subject",
	"groupsFrom": "where they come from: asked, requests, name", "groupsSeen": "when its requests carried them",
	"subject": "who it is about", "namespace": "\"\" is the whole cluster, or none", "name": "name of the object",
	"kind": "kind of the object", "resource": "plural name", "group": "API group; \"\" is the core group",
	"subresource": "\"\" for none", "path": "of a request about no resource", "verbs": "as RBAC has them",
	"apiGroups": "as RBAC has them", "resources": "as RBAC has them", "resourceNames": "as RBAC has them",
	"nonResourceURLs": "as RBAC has them; RoleBindings never give any", "rule": "index of the rule in the role",
	"binding": "Kind/name or Kind/namespace/name", "role": "Kind/name or Kind/namespace/name", "by": "grants it comes from",
	"grants": "all that allow it", "allNamespaces": "in any namespace", "id": "identity, the same every time", "title": "in a few words",
	"text": "in one line", "state": "how it is", "todo": "what to do, several lines, commands among them", "first": "earliest request",
	"last": "latest request", "from": "begin, inclusive", "to": "end, exclusive", "at": "moment", "time": "moment",
	"received": "when the request arrived", "count": "how many", "requests": "how many", "events": "how many",
	"forbidden": "requests of those that the apiserver refused", "drift": "requests of this outcome",
	"match": "requests of this outcome", "ambiguous": "requests of this outcome", "indeterminate": "requests of this outcome",
	"not_judged": "requests of this outcome", "forbid": "requests by recorded decision", "none": "requests without a recorded decision",
	"outcome": "match, drift, ambiguous, indeterminate, not_judged", "verdict": "match, drift, ambiguous, indeterminate, not_judged",
	"class": "class of the verdict, as of classes", "cause": "what lies behind it", "recorded": "decision of the apiserver",
	"replayed": "decision of the replica", "recordedReason": "the apiserver's reason", "authorizer": "the one that decided",
	"missing": "what is not known, or not held", "errors": "roles that do not exist", "hints": "what may be wrong with the question",
	"code": "of the response", "stage": "stage of the event", "severity": "how grave it is", "pod": "name of the pod",
	"node": "name of the node", "version": "of the server", "engine": "version of the replica",
	"config": "configuration it was judged with", "truncated": "there is more than one answer holds", "examples": "the earliest",
	"refused": "those that were refused", "accesses": "how many", "podUID": "uid of the pod", "secret": "name of the Secret",
	"signer": "name of the signer", "commonName": "subject's common name", "detail": "what was said",
	"arrivedBy": "when the last of them had arrived", "attack": "MITRE ATT&CK techniques",
	"evidence": "the earliest requests, at most five", "tooCostly": "comparing takes more work than is allowed",
	"covered": "what it hands out is held: it is not needed", "perhaps": "why it may not have been asked",
	"check": "name of the check, as in docs/implied.md", "checks": "of the installation, then of each cluster",
	"notAfter": "when it was in force at the latest", "uid": "of the object", "resourceVersion": "of the object",
	"judged": "requests that were compared with the replica", "posts": "how many", "lastPost": "when it posted last",
	"atMost": "how many at most", "after": "what came after, or was so after", "before": "what came before, or was so before",
	"kept": "what stays", "apiservers": "each by its name", "problems": "the gravest first", "plugin": "name of the admission plugin",
	"namespaceLifecycle": "what NamespaceLifecycle says", "reason": "in the apiserver's words", "mode": "how it was checked",
	"identity": "what the identity contradicts", "credential": "its id, as of lineage",
	"implied": "checks behind the filter, as in docs/implied.md", "impersonatedUser": "as whom it was done",
	"tooLargeCount": "how many there are in all", "reachCount": "how many there are in all", "asked": "what was asked about",
	"restarts": "how often it began anew", "gaps": "stretches in which something is missing", "more": "how many are left out",
	"excess": "weight of what is held and not used", "missingAfter": "what was not known at the second moment",
	"missingBefore": "what was not known at the first moment", "moreWrites": "how many are left out",
	"findings": "what contradicts itself in its use", "certain": "nothing unknown could change that",
	"changed": "verdicts that are other than before",
}

var (
	ofType  = regexp.MustCompile(`^[A-Z]\w+ (?:is|are) `)
	ofField = regexp.MustCompile(`^[A-Z]\w+ `)
)

// asks is how the comments of requests begin.
var asks = regexp.MustCompile(`^\w*Request (.)`)

// requestText is the comment of a request, without its name.
func requestText(r *jsonschema.Reflector, q *query.Question) string {
	text := strings.Join(strings.Fields(r.CommentMap[q.Request.PkgPath()+"."+q.Request.Name()]), " ")
	return asks.ReplaceAllStringFunc(text, func(s string) string { return strings.ToUpper(s[len(s)-1:]) })
}

func allQuestions() []query.Question {
	return slices.Concat((&query.Service{}).Questions(), (&doctor.Service{}).Questions())
}

// TestOpenAPIGolden holds the document that is served to the types and comments it is made from.
func TestOpenAPIGolden(t *testing.T) {
	folder, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	doc := describe(t, allQuestions())
	text, err := json.MarshalIndent(doc, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	same(t, filepath.Join(folder, "openapi.json"), append(text, '\n'))
	api := filepath.Join("docs", "api.md")
	old, err := os.ReadFile(api)
	if err != nil {
		t.Fatal(err)
	}
	written, _, _ := bytes.Cut(old, []byte(generatedFrom))
	same(t, api, slices.Concat(written, []byte(generatedFrom+"\n\n"), pages(doc)))
}

// same compares a generated file, or rewrites it.
func same(t *testing.T, file string, want []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what requests and answers say: run make golden (%v)", filepath.Base(file), err)
	}
}

// TestOpenAPIIsServed: the document has every route that is served, and nothing in it leads nowhere.
func TestOpenAPIIsServed(t *testing.T) {
	questions := allQuestions()
	h := api.New(questions, nil, zap.NewNop(), time.Minute)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/openapi.json", nil))
	var doc struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct{ Schemas, Responses map[string]json.RawMessage }
	}
	if err := json.Unmarshal(w.Body.Bytes(), &doc); err != nil || w.Code != http.StatusOK {
		t.Fatalf("%d: %v", w.Code, err)
	}
	operations := 0
	for path, item := range doc.Paths {
		for method := range item {
			operations++
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest(strings.ToUpper(method), path+"?absent=x", nil))
			if w.Code != http.StatusBadRequest && w.Code != http.StatusForbidden {
				t.Errorf("%s %s: %d", method, path, w.Code)
			}
		}
	}
	if operations != len(questions) {
		t.Errorf("%d operations of %d questions", operations, len(questions))
	}
	for _, ref := range regexp.MustCompile(`"#/components/(\w+)/([^"]+)"`).FindAllStringSubmatch(w.Body.String(), -1) {
		in := doc.Components.Schemas
		if ref[1] == "responses" {
			in = doc.Components.Responses
		}
		if in[ref[2]] == nil {
			t.Errorf("%s leads nowhere", ref[0])
		}
	}
}

// TestEverythingIsDescribed: a reader of the document needs no source.
func TestEverythingIsDescribed(t *testing.T) {
	doc := describe(t, allQuestions())
	for path, item := range doc["paths"].(document) {
		for method, op := range item.(document) {
			if op := op.(document); op["description"] == "" || op["summary"] == "" {
				t.Errorf("%s %s has no description: its request's comment begins with its name", method, path)
			}
		}
	}
	for name, s := range doc["components"].(document)["schemas"].(document) {
		s := s.(document)
		if s["description"] == nil && !strings.HasPrefix(name, "V1") {
			t.Errorf("%s has no description", name)
		}
		properties, _ := s["properties"].(document)
		for member, p := range properties {
			if p, ok := p.(document); ok && p["description"] == nil && p["$ref"] == nil && !strings.HasPrefix(name, "V1") {
				t.Errorf("%s.%s has no description: its field has no comment", name, member)
			}
		}
	}
}

// generatedFrom ends what is written by hand.
const generatedFrom = "<!-- What follows is generated from the types of requests and answers, and their comments: make golden. -->"

// pages is the generated part of docs/api.md.
func pages(doc document) []byte {
	var b bytes.Buffer
	paths, told := doc["paths"].(document), map[string]bool{}
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		item := paths[path].(document)
		for _, method := range slices.Sorted(maps.Keys(item)) {
			op := item[method].(document)
			fmt.Fprintf(&b, "## `%s %s`\n\n%s\n\n", strings.ToUpper(method), path, op["description"])
			writeParameters(&b, op)
			answer := op["responses"].(document)["200"].(document)["content"].(document)["application/json"].(document)["schema"].(document)
			writeAnswer(&b, doc, answer)
			told[refName(answer)] = strings.HasSuffix(refName(answer), "Answer")
		}
	}
	b.WriteString("## Types\n\n")
	schemas := doc["components"].(document)["schemas"].(document)
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		if told[name] {
			continue // with its question
		}
		s := schemas[name].(document)
		fmt.Fprintf(&b, "### %s\n\n%s\n\n", name, orNothing(s["description"]))
		writeMembers(&b, s)
	}
	return append(bytes.TrimRight(b.Bytes(), "\n"), '\n')
}

func orNothing(v any) string {
	if text, ok := v.(string); ok {
		return text
	}
	return "As Kubernetes has it."
}

func writeParameters(b *bytes.Buffer, op document) {
	list, _ := op["parameters"].([]any)
	if body, ok := op["requestBody"].(document); ok {
		s := body["content"].(document)["application/json"].(document)["schema"].(document)
		required := s["required"].([]string)
		properties := s["properties"].(document)
		for _, name := range slices.Sorted(maps.Keys(properties)) {
			p := properties[name].(document)
			list = append(list, document{
				"name": name, "required": slices.Contains(required, name), "description": p["description"], "schema": p,
			})
		}
	}
	if len(list) == 0 {
		return
	}
	b.WriteString("| parameter | what it says |\n| --- | --- |\n")
	for _, p := range list {
		p, s := p.(document), p.(document)["schema"].(document)
		var more []string
		if p["required"] == true {
			more = append(more, "required")
		}
		if enum, ok := s["enum"].([]string); ok {
			more = append(more, "one of `"+strings.Join(enum, "`, `")+"`")
		}
		if least, ok := s["minimum"].(json.Number); ok && least != "" {
			more = append(more, fmt.Sprintf("%s to %s", least, s["maximum"]))
		}
		if v, ok := s["default"]; ok {
			more = append(more, fmt.Sprintf("default `%v`", v))
		}
		text := p["description"].(string)
		if len(more) > 0 {
			text += "; " + strings.Join(more, ", ")
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", p["name"], cell(text))
	}
	b.WriteString("\n")
}

func writeAnswer(b *bytes.Buffer, doc, answer document) {
	name := refName(answer)
	s, ok := doc["components"].(document)["schemas"].(document)[name].(document)
	if !ok {
		return
	}
	if !strings.HasSuffix(name, "Answer") {
		fmt.Fprintf(b, "The answer is a [%s](#%s).\n\n", name, strings.ToLower(name))
		return
	}
	fmt.Fprintf(b, "%s\n\n", orNothing(s["description"]))
	writeMembers(b, s)
}

func writeMembers(b *bytes.Buffer, s document) {
	properties, _ := s["properties"].(document)
	if len(properties) == 0 {
		return
	}
	b.WriteString("| member | type | content |\n| --- | --- | --- |\n")
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		p, ok := properties[name].(document)
		if !ok {
			p = document{}
		}
		text, _ := p["description"].(string)
		fmt.Fprintf(b, "| `%s` | %s | %s |\n", name, typeWords(p), cell(text))
	}
	b.WriteString("\n")
}

// typeWords says what type a member has.
func typeWords(p document) string {
	if name := refName(p); name != "" {
		return fmt.Sprintf("[%s](#%s)", name, strings.ToLower(name))
	}
	switch p["type"] {
	case "array":
		if items, ok := p["items"].(document); ok {
			return "list of " + typeWords(items)
		}
		return "list"
	case "object":
		if values, ok := p["additionalProperties"].(document); ok {
			return "object of " + typeWords(values)
		}
		return "object"
	case "string":
		if p["format"] == "date-time" {
			return "time"
		}
		return "text"
	case "integer", "number":
		return "number"
	case "boolean":
		return "true or false"
	}
	return "any"
}

func refName(p document) string {
	ref, _ := p["$ref"].(string)
	return strings.TrimPrefix(ref, "#/components/schemas/")
}

// cell is a text as a table takes it.
func cell(text string) string { return strings.ReplaceAll(text, "|", "\\|") }
