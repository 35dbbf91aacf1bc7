package params

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// MaxValue is how many bytes a parameter may have, unless its field says otherwise.
const MaxValue = 16 << 10

// Read fills a request, to which it is given a pointer, from the parameters of a URL. It is strict:
// a misspelt filter that is passed over would answer another question than the one asked. An
// empty parameter is one that is not given. It returns the old names that were used, each with
// the name it has now.
func Read(request any, q url.Values) (old map[string]string, err error) {
	fields := FieldsOf(request)
	into := reflect.ValueOf(request)
	given := map[string]string{} // by field: the name it was given by
	for _, name := range slices.Sorted(maps.Keys(q)) {
		values := q[name]
		i, was := find(fields, name)
		switch {
		case i < 0:
			return nil, fmt.Errorf("there is no parameter %q; known are: %s", name, strings.Join(names(fields), ", "))
		case len(values) > 1:
			return nil, fmt.Errorf("%s is given %d times", name, len(values))
		case len(values[0]) > fields[i].Bytes:
			return nil, fmt.Errorf("%s has %d bytes; at most %d are taken", name, len(values[0]), fields[i].Bytes)
		case !utf8.ValidString(values[0]):
			return nil, fmt.Errorf("%s is not UTF-8", name)
		case values[0] == "":
			continue
		}
		f := &fields[i]
		if before := given[f.Name]; before != "" {
			return nil, fmt.Errorf("%s and %s are one parameter: give %s alone", before, name, f.Name)
		}
		given[f.Name] = name
		if was {
			if old == nil {
				old = map[string]string{}
			}
			old[name] = f.Name
		}
		if err := f.set(f.value(into), values[0]); err != nil {
			return nil, err
		}
	}
	return old, nil
}

// ReadJSON fills a request from a JSON object, as strictly as Read.
func ReadJSON(request any, body []byte) (old map[string]string, err error) {
	members := map[string]json.RawMessage{}
	d := json.NewDecoder(bytes.NewReader(body))
	if err := d.Decode(&members); err != nil {
		return nil, fmt.Errorf("invalid request: want a JSON object: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("invalid request: want one JSON object")
	}
	fields, q := FieldsOf(request), url.Values{}
	for name, raw := range members {
		i, _ := find(fields, name)
		if i < 0 {
			return nil, fmt.Errorf("there is no parameter %q; known are: %s", name, strings.Join(names(fields), ", "))
		}
		text, err := fields[i].fromJSON(raw)
		if err != nil {
			return nil, fmt.Errorf("invalid %s %s: %w", name, raw, err)
		}
		q.Set(name, text)
	}
	return Read(request, q)
}

// fromJSON writes a member as a parameter.
func (f *Field) fromJSON(raw json.RawMessage) (string, error) {
	if string(raw) == "null" {
		return "", nil
	}
	into := reflect.New(f.Type)
	if f.Type == timeType || f.Type == durationType { // their own texts are stricter, or other, than JSON's
		into = reflect.ValueOf(new(string))
	}
	if err := json.Unmarshal(raw, into.Interface()); err != nil {
		return "", fmt.Errorf("want %s", words[f.Type])
	}
	if text, ok := into.Interface().(*string); ok {
		return *text, nil
	}
	return f.text(into.Elem()), nil
}

// words say what the values of a parameter are.
var words = map[reflect.Type]string{timeType: "a time (RFC 3339)", durationType: "a duration, such as 150s",
	mapType: "a JSON object of texts", stringsType: "a list of texts", reflect.TypeFor[bool](): "true or false",
	reflect.TypeFor[int](): "a number", reflect.TypeFor[string](): "a text"}

// Flag is a parameter of one request as a command's flag; it is a pflag.Value.
type Flag struct {
	Field   *Field
	request reflect.Value
}

// FlagOf returns the parameter of a request, to which it is given a pointer, that has a name.
func FlagOf(request any, name string) Flag {
	fields := FieldsOf(request)
	i, _ := find(fields, name)
	if i < 0 {
		panic(fmt.Sprintf("%T has no parameter %s", request, name))
	}
	f := Flag{&fields[i], reflect.ValueOf(request)}
	if f.Field.Default != "" {
		_ = f.Field.set(f.Field.value(f.request), f.Field.Default) // read before, by fieldOf
	}
	return f
}

// String returns the value, "" for none.
func (f Flag) String() string {
	if f.Field == nil || f.Field.value(f.request).IsZero() {
		return ""
	}
	return f.Field.text(f.Field.value(f.request))
}

// Set reads a value; of a list it adds one.
func (f Flag) Set(text string) error {
	v := f.Field.value(f.request)
	if f.Field.Type == stringsType {
		if strings.TrimSpace(text) == "" {
			return errors.New("there is an empty name")
		}
		v.Set(reflect.Append(v, reflect.ValueOf(text)))
		return nil
	}
	if text == "" {
		v.SetZero()
		return nil
	}
	err := f.Field.set(v, text)
	var wrong valueError
	if errors.As(err, &wrong) { // a command names flag and value itself
		return errors.New("want " + wrong.want)
	}
	return err
}

// valueError says what a value has to be.
type valueError struct{ name, value, want string }

func (e valueError) Error() string { return "invalid " + e.name + " " + e.value + ": want " + e.want }

func (f *Field) wrong(text, want string) error { return valueError{f.Name, strconv.Quote(text), want} }

// Type returns what help calls the value.
func (f Flag) Type() string {
	switch {
	case f.Field.Type == stringsType:
		return "stringArray"
	case f.Field.Type == timeType:
		return "time"
	case f.Field.Type == durationType:
		return "duration"
	}
	return f.Field.Type.Kind().String()
}

// set reads a value into a field.
func (f *Field) set(into reflect.Value, text string) error {
	switch {
	case f.Type == timeType:
		t, err := f.time(text)
		into.Set(reflect.ValueOf(t))
		return err
	case f.Type == mapType:
		m := map[string]string{}
		if err := json.Unmarshal([]byte(text), &m); err != nil {
			return fmt.Errorf("invalid %s: want a JSON object of texts: %w", f.Name, err)
		}
		into.Set(reflect.ValueOf(m))
		return nil
	case f.Type == stringsType:
		l, err := f.list(text)
		into.Set(reflect.ValueOf(l))
		return err
	case f.Type.Kind() == reflect.Bool:
		if text != "true" && text != "false" {
			return f.wrong(text, "true or false")
		}
		into.SetBool(text == "true")
		return nil
	case f.Type.Kind() == reflect.String:
		into.SetString(text)
		return f.oneOf(text)
	}
	n, err := f.number(text)
	if err == nil {
		into.SetInt(n)
	}
	if err != nil || !f.within(n) {
		return f.wrong(text, f.bounds())
	}
	return nil
}

// time reads a time; those the store's columns do not hold are refused.
func (f *Field) time(text string) (time.Time, error) {
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return t, f.wrong(text, "RFC 3339, such as 2026-11-20T11:36:00Z")
	}
	if t.Unix() < 0 || t.Unix() > 1<<32-1 {
		return t, f.wrong(text, "a time between 1970 and 2106")
	}
	return t.UTC(), nil
}

func (f *Field) oneOf(text string) error {
	if len(f.Enum) > 0 && !slices.Contains(f.Enum, text) {
		return f.wrong(text, "one of "+strings.Join(f.Enum, ", "))
	}
	return nil
}

func (f *Field) within(n int64) bool { return f.least <= n && n <= f.most }

// bounds says what a number or a duration has to be.
func (f *Field) bounds() string {
	what := "a number"
	if f.Type == durationType {
		what = "a duration such as 150s,"
	}
	switch {
	case f.Min != "" && f.Max != "":
		return fmt.Sprintf("%s from %s to %s", what, f.Min, f.Max)
	case f.Min != "":
		return what + " of at least " + f.Min
	case f.Max != "":
		return what + " of at most " + f.Max
	}
	return strings.TrimSuffix(what, ",")
}

func (f *Field) list(text string) ([]string, error) {
	var out []string
	switch f.List {
	case "lines":
		out = strings.Split(text, "\n")
	case "json":
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			return nil, fmt.Errorf("invalid %s: want a JSON list of texts", f.Name)
		}
	default:
		r := csv.NewReader(strings.NewReader(text))
		r.TrimLeadingSpace, r.LazyQuotes = true, true
		var err error
		if out, err = r.Read(); err != nil {
			return nil, fmt.Errorf("%s: %w", f.Name, err)
		}
		if _, err := r.Read(); !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("%s: there is more than one line", f.Name)
		}
		for i := range out {
			out[i] = strings.TrimSpace(out[i])
		}
	}
	if slices.Contains(out, "") {
		return nil, fmt.Errorf("%s: there is an empty name", f.Name)
	}
	return out, nil
}

// Complete fills in defaults and returns an error for what is missing or out of bounds. A request
// that Read filled and one that a program made are then alike.
func Complete(request any) error {
	into := reflect.ValueOf(request)
	for _, f := range FieldsOf(request) {
		v := f.value(into)
		if v.IsZero() && f.Default != "" {
			if err := f.set(v, f.Default); err != nil {
				return err
			}
		}
		if v.IsZero() {
			if f.Required {
				return fmt.Errorf("%s is missing", f.Name)
			}
			continue
		}
		if err := f.check(v); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error for a value that Read would have refused.
func (f *Field) check(v reflect.Value) error {
	switch {
	case v.Kind() == reflect.String:
		return f.oneOf(v.String())
	case v.CanInt():
		if !f.within(v.Int()) {
			return valueError{f.Name, f.text(v), f.bounds()}
		}
	}
	return nil
}

// Write returns a request's parameters as Read takes them, without those that are not given.
func Write(request any) url.Values {
	q, from := url.Values{}, reflect.ValueOf(request)
	for _, f := range FieldsOf(request) {
		if v := f.value(from); !v.IsZero() && (v.Kind() != reflect.Map && v.Kind() != reflect.Slice || v.Len() > 0) {
			q.Set(f.Name, f.text(v))
		}
	}
	return q
}

// text writes a value as set reads it.
func (f *Field) text(v reflect.Value) string {
	switch x := v.Interface().(type) {
	case time.Time:
		return x.Format(time.RFC3339Nano)
	case time.Duration:
		return x.String()
	case map[string]string:
		return toJSON(x)
	case []string:
		switch f.List {
		case "lines":
			return strings.Join(x, "\n")
		case "json":
			return toJSON(x)
		}
		var b bytes.Buffer
		w := csv.NewWriter(&b)
		_ = w.Write(x) // to memory, with the usual comma
		w.Flush()
		return strings.TrimSuffix(b.String(), "\n")
	}
	switch {
	case v.Kind() == reflect.Bool:
		return strconv.FormatBool(v.Bool())
	case v.CanInt():
		return strconv.FormatInt(v.Int(), 10)
	}
	return v.String()
}

// toJSON writes what always can be.
func toJSON(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// find returns the field of a name, -1 for none, and whether the name is an old one.
func find(fields []Field, name string) (i int, old bool) {
	if i = slices.IndexFunc(fields, func(f Field) bool { return f.Name == name }); i >= 0 {
		return i, false
	}
	return slices.IndexFunc(fields, func(f Field) bool { return slices.Contains(f.Old, name) }), true
}

func names(fields []Field) []string {
	out := make([]string, len(fields))
	for i := range fields {
		out[i] = fields[i].Name
	}
	return out
}
