package storage_test

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// filled makes a value in which everything is there and no two texts are alike.
func filled(v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		filled(v.Elem(), path)
	case reflect.Struct:
		for i := range v.NumField() {
			filled(v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		for i := range v.Len() {
			filled(v.Index(i), fmt.Sprint(path, i))
		}
	case reflect.String:
		v.SetString("text of" + path)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Uint8, reflect.Uint64:
		v.SetUint(1)
	case reflect.Int, reflect.Int32:
		v.SetInt(1)
	default:
		panic("a verdict has a " + v.Kind().String() + ": " + path)
	}
}

// leaf is a field without fields of its own: its path, without places in lists, and what
// changes it.
type leaf struct {
	path   string
	change func(*verdict.Verdict)
}

// leaves are those of a filled value, reached from a verdict by a function; of lists those of the
// first element.
func leaves(v reflect.Value, path string, reach func(*verdict.Verdict) reflect.Value) (out []leaf) {
	switch v.Kind() {
	case reflect.Pointer:
		return leaves(v.Elem(), path, func(x *verdict.Verdict) reflect.Value { return reach(x).Elem() })
	case reflect.Struct:
		for i := range v.NumField() {
			out = append(out, leaves(v.Field(i), strings.TrimPrefix(path+"."+v.Type().Field(i).Name, "."),
				func(x *verdict.Verdict) reflect.Value { return reach(x).Field(i) })...)
		}
		return out
	case reflect.Slice:
		return leaves(v.Index(0), path, func(x *verdict.Verdict) reflect.Value { return reach(x).Index(0) })
	}
	return []leaf{{path, func(x *verdict.Verdict) {
		switch f := reach(x); f.Kind() {
		case reflect.String:
			f.SetString(f.String() + ", changed")
		case reflect.Bool:
			f.SetBool(!f.Bool())
		case reflect.Int, reflect.Int32:
			f.SetInt(f.Int() + 1)
		default:
			f.SetUint(f.Uint() + 1)
		}
	}}}
}

func fullVerdict() *verdict.Verdict {
	v := &verdict.Verdict{}
	filled(reflect.ValueOf(v).Elem(), "")
	return v
}

// TestEveryFieldOfAVerdict changes each field of a verdict, however deep, and looks whether it is
// stored, whether the verdict counts as another and whether the row has another version: as
// the table of columns says, and with the reason it gives for what does not.
func TestEveryFieldOfAVerdict(t *testing.T) {
	base := rows(t, "c", 0)[0]
	base.Verdict = fullVerdict()
	base.Verdict.CompleteImpersonation(base.Event.ImpersonatedUser != nil)
	version := func(r verdict.Row) uint64 {
		t.Helper()
		n, err := storage.VersionOf(&r)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	all := leaves(reflect.ValueOf(base.Verdict).Elem(), "", func(v *verdict.Verdict) reflect.Value { return reflect.ValueOf(v).Elem() })
	if len(all) < 90 {
		t.Fatalf("%d fields only", len(all))
	}
	s := storagetest.Open(t)
	var in []verdict.Row
	for i, f := range all {
		r := base
		r.Verdict = fullVerdict()
		f.change(r.Verdict)
		r.Verdict.CompleteImpersonation(r.Event.ImpersonatedUser != nil)
		said := storage.SaidOf(f.path)
		if said.Stored == (said.NotStored != "") || said.Compared == (said.NotCompared != "") || said.Hashed == (said.NotHashed != "") {
			t.Errorf("%s: the table of columns does not say whether it is stored, compared and hashed, or why not: %+v", f.path, said)
			continue
		}
		if !said.Stored {
			continue
		}
		if compared := !codec.SameVerdict(base.Verdict, r.Verdict); compared != said.Compared {
			t.Errorf("%s: compared is %v, the table says %v (%s)", f.path, compared, said.Compared, said.NotCompared)
		}
		if hashed := version(base) != version(r); hashed != said.Hashed {
			t.Errorf("%s: hashed is %v, the table says %v (%s)", f.path, hashed, said.Hashed, said.NotHashed)
		}
		shift(&r, 0)
		e := *r.Event
		e.AuditID = fmt.Sprint("field-", i)
		r.Event = &e
		shift(&r, 0)
		r.Position.Offset += int64(i)
		in = append(in, r)
	}
	insert(t, s, "t", in)
	got := everything(t, s, in)
	for _, r := range in {
		if back := got[r.EventKey]; !reflect.DeepEqual(back.Verdict, r.Verdict) {
			t.Errorf("%s: the verdict changed in the store\n was %+v\n is  %+v", r.Event.AuditID, r.Verdict, back.Verdict)
		}
	}
}

// TestColumnsAreDocumented holds the list in docs/schema.md to the table of columns; -update
// writes it.
func TestColumnsAreDocumented(t *testing.T) {
	const file, begin, end = "../docs/schema.md", "<!-- columns of events -->\n", "<!-- end -->\n"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	is, after, closed := strings.Cut(rest, end)
	if !ok || !closed {
		t.Fatalf("%s has no place for the columns", file)
	}
	if want := storage.ColumnsText(); is != want {
		if *update {
			if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		t.Errorf("%s lists other columns than there are; run the test with -update", file)
	}
}
