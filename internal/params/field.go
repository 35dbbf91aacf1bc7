// Package params reads and writes the parameters of a request: a struct whose fields say by their
// tags how they are called, what they default to and what may stand in them. The same tags make
// the parameters of a URL, the members of a JSON object, and the flags of a command.
//
//	json:"allNamespaces"        name of the parameter, and of the JSON member
//	help:"…"                    what it is, for documents
//	flag:"…"                    the flag's help, where a command says more than help
//	name:"since" short:"n"      the flag's name, where it is not the parameter's, and its letter
//	default:"50"                value when none is given
//	required:"true"
//	enum:"a,b,c"                the values there are
//	min:"1" max:"500"           bounds of a number, or of a duration
//	list:"csv"                  how a list is written in one value: csv, lines or json
//	most:"4194304"              how many bytes it may have (16384 where it does not say)
//	old:"user"                  names that are still taken
package params

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/retrial-io/retrial/internal/moment"
)

// Field describes one parameter.
type Field struct {
	Name, Help  string
	Old         []string // names it had
	Flag, Short string   // of a command
	FlagHelp    string
	Default     string
	Required    bool
	Enum        []string
	Min, Max    string // "" for none
	List        string // "csv", "lines", "json"; "" for what is not a list
	Bytes       int    // it may have at most
	Type        reflect.Type
	index       []int
	least, most int64
}

var (
	timeType     = reflect.TypeFor[time.Time]()
	durationType = reflect.TypeFor[time.Duration]()
	stringsType  = reflect.TypeFor[[]string]()
	mapType      = reflect.TypeFor[map[string]string]()
	known        sync.Map // []Field by reflect.Type
)

// Fields returns the parameters of a request's type in their order. It panics when a tag or a
// type is not one it knows: requests are part of the program.
func Fields(t reflect.Type) []Field {
	if list, ok := known.Load(t); ok {
		return list.([]Field)
	}
	list := fieldsOf(t, nil)
	known.Store(t, list)
	return list
}

// FieldsOf returns the parameters of a request, or of a pointer to one.
func FieldsOf(request any) []Field {
	t := reflect.TypeOf(request)
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return Fields(t)
}

func fieldsOf(t reflect.Type, above []int) (list []Field) {
	for i := range t.NumField() {
		sf := t.Field(i)
		index := append(slices.Clone(above), i)
		if sf.Anonymous {
			list = append(list, fieldsOf(sf.Type, index)...)
			continue
		}
		list = append(list, fieldOf(t, sf, index))
	}
	return list
}

func fieldOf(t reflect.Type, sf reflect.StructField, index []int) Field {
	tag := sf.Tag.Get
	f := Field{
		Name: tag("json"), Help: tag("help"), Old: list(tag("old")), Flag: tag("name"), Short: tag("short"), FlagHelp: tag("flag"),
		Default: tag("default"), Required: tag("required") == "true", Enum: list(tag("enum")),
		Min: tag("min"), Max: tag("max"), List: tag("list"), Bytes: MaxValue, Type: sf.Type, index: index,
	}
	f.Name, _, _ = strings.Cut(f.Name, ",")
	bad := func(what string) { panic(fmt.Sprintf("%s.%s: %s", t, sf.Name, what)) }
	if f.Name == "" || f.Help == "" {
		bad("a parameter needs the tags json and help")
	}
	if text := tag("most"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			bad(err.Error())
		}
		f.Bytes = n
	}
	f.Flag = cmp.Or(f.Flag, Kebab(f.Name))
	f.FlagHelp = cmp.Or(f.FlagHelp, f.Help)
	switch kind := sf.Type.Kind(); {
	case sf.Type == timeType, kind == reflect.String, kind == reflect.Bool:
	case sf.Type == durationType, kind == reflect.Int:
		f.least, f.most = math.MinInt64, math.MaxInt64
		for bound, text := range map[*int64]string{&f.least: f.Min, &f.most: f.Max} {
			if n, err := f.number(text); err == nil {
				*bound = n
			} else if text != "" {
				bad(err.Error())
			}
		}
	case sf.Type == stringsType && slices.Contains([]string{"csv", "lines", "json"}, f.List), sf.Type == mapType:
	default:
		bad("a parameter cannot be of type " + sf.Type.String())
	}
	if f.Default != "" {
		if err := f.set(reflect.New(sf.Type).Elem(), f.Default); err != nil {
			bad(err.Error())
		}
	}
	return f
}

// number reads a number or a duration.
func (f *Field) number(text string) (int64, error) {
	if f.Type == durationType {
		d, err := moment.Duration(text)
		return int64(d), err
	}
	n, err := strconv.Atoi(text)
	return int64(n), err
}

func list(text string) []string {
	if text == "" {
		return nil
	}
	return strings.Split(text, ",")
}

// Kebab writes allNamespaces as all-namespaces.
func Kebab(name string) string {
	var b strings.Builder
	for _, r := range name {
		if r >= 'A' && r <= 'Z' {
			b.WriteByte('-')
			r += 'a' - 'A'
		}
		b.WriteRune(r)
	}
	return b.String()
}

// IsTime reports whether a parameter is a time.
func (f *Field) IsTime() bool { return f.Type == timeType }

func (f *Field) value(request reflect.Value) reflect.Value {
	return reflect.Indirect(request).FieldByIndex(f.index)
}
