package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"unicode"
)

// Field is one leaf of the configuration.
type Field struct {
	Flag string // "kafka-brokers"
	Env  string // "RETRIAL_KAFKA_BROKERS"
	Path string // "kafka.brokers"
	Doc  string
	v    reflect.Value
}

// Fields returns the leaves of c in the order of the struct; setting one changes c.
func (c *Config) Fields() []Field {
	return fields(reflect.ValueOf(c).Elem(), "", "")
}

func fields(v reflect.Value, path, flag string) []Field {
	var out []Field
	for i := range v.NumField() {
		sf := v.Type().Field(i)
		name, _, _ := strings.Cut(sf.Tag.Get("json"), ",")
		own := sf.Tag.Get("flag")
		if own == "-" {
			continue
		}
		p := join(path, ".", name)
		f := cmp.Or(own, join(flag, "-", kebab(name)))
		if v.Field(i).Kind() == reflect.Struct {
			out = append(out, fields(v.Field(i), p, f)...)
			continue
		}
		out = append(out, Field{
			Flag: f, Path: p, Doc: sf.Tag.Get("doc"), v: v.Field(i),
			Env: "RETRIAL_" + strings.ToUpper(strings.ReplaceAll(f, "-", "_")),
		})
	}
	return out
}

func join(a, sep, b string) string {
	if a == "" {
		return b
	}
	return a + sep + b
}

func kebab(s string) string {
	var b strings.Builder
	for i, r := range s {
		if unicode.IsUpper(r) && i > 0 {
			b.WriteByte('-')
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}

// String returns the field's value as its flag accepts it.
func (f Field) String() string {
	if !f.v.IsValid() {
		return "" // pflag calls it on the zero Field
	}
	switch x := f.v.Interface().(type) {
	case []string:
		return strings.Join(x, ",")
	case fmt.Stringer:
		return x.String()
	default:
		return fmt.Sprint(x)
	}
}

// Set parses s into the field.
func (f Field) Set(s string) error {
	switch x := f.v.Addr().Interface().(type) {
	case *string:
		*x = s
	case *[]string:
		*x = nil
		for part := range strings.SplitSeq(s, ",") {
			if part = strings.TrimSpace(part); part != "" {
				*x = append(*x, part)
			}
		}
	case *bool:
		b, err := strconv.ParseBool(s)
		if err != nil {
			return fmt.Errorf("invalid value %q: want true or false", s)
		}
		*x = b
	case *int64:
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			return fmt.Errorf("invalid number %q: want a whole number", s)
		}
		*x = n
	case *Switch:
		v, err := ParseSwitch(s)
		if err != nil {
			return err
		}
		*x = v
	case *Duration:
		d, err := ParseDuration(s)
		if err != nil {
			return err
		}
		*x = d
	case *Bytes:
		b, err := ParseBytes(s)
		if err != nil {
			return err
		}
		*x = b
	default:
		return fmt.Errorf("field %s cannot be set from text", f.Path)
	}
	return nil
}

// Type returns the name of the value's type for help texts and docs/config.md.
func (f Field) Type() string {
	switch f.v.Interface().(type) {
	case []string:
		return "list"
	case bool:
		return "bool"
	case int64:
		return "int"
	case Switch:
		return "on/off"
	case Duration:
		return "duration"
	case Bytes:
		return "size"
	}
	return "string"
}

// IsBoolFlag reports whether the flag may be given without a value.
func (f Field) IsBoolFlag() bool { return f.Type() == "bool" }

func firstSentence(s string) string {
	if before, _, ok := strings.Cut(s, ". "); ok {
		return before
	}
	return strings.TrimSuffix(s, ".")
}
