package config

import (
	"cmp"
	"fmt"
	"reflect"
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/internal/params"
)

// Field is one leaf of the configuration.
type Field struct {
	Flag string // "kafka-brokers"
	Env  string // "RETRIAL_KAFKA_BROKERS"
	Path string // "kafka.brokers"
	Doc  string
	file bool // names a file to read
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
		p := strings.TrimPrefix(path+"."+name, ".")
		f := cmp.Or(own, strings.TrimPrefix(flag+"-"+params.Kebab(name), "-"))
		if v.Field(i).Kind() == reflect.Struct {
			out = append(out, fields(v.Field(i), p, f)...)
			continue
		}
		out = append(out, Field{
			Flag: f, Path: p, Doc: sf.Tag.Get("doc"), file: sf.Tag.Get("file") == "read", v: v.Field(i),
			Env: "RETRIAL_" + strings.ToUpper(strings.ReplaceAll(f, "-", "_")),
		})
	}
	return out
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
func (f Field) Set(s string) (err error) {
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
		if *x, err = strconv.ParseBool(s); err != nil {
			return fmt.Errorf("invalid value %q: want true or false", s)
		}
	case *int64:
		if *x, err = strconv.ParseInt(s, 10, 64); err != nil {
			return fmt.Errorf("invalid number %q: want a whole number", s)
		}
	case *Switch:
		*x, err = ParseSwitch(s)
	case *Duration:
		*x, err = ParseDuration(s)
	case *Bytes:
		*x, err = ParseBytes(s)
	default:
		return fmt.Errorf("field %s cannot be set from text", f.Path)
	}
	return err
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
