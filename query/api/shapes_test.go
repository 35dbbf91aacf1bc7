package api_test

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/retrial-io/retrial/verdict"
)

// notGrants are members called grants that are none, under a name that will be removed in the next release.
var notGrants = map[string]bool{"query.Event": true, "leastpriv.Unused": true}

// TestOneShapeOfAGrant: a grant has the same members in every answer, whichever type it is of, and members that are
// called grants are grants.
func TestOneShapeOfAGrant(t *testing.T) {
	names := reflect.TypeFor[verdict.GrantNames]()
	isGrant := func(s reflect.Type) bool {
		if s.Kind() == reflect.Slice {
			s = s.Elem()
		}
		if s.Kind() != reflect.Struct {
			return false
		}
		f, ok := s.FieldByName(names.Name())
		return ok && f.Anonymous && f.Type == names
	}
	seen, grants := map[reflect.Type]bool{}, 0
	var visit func(s reflect.Type)
	visit = func(s reflect.Type) {
		switch s.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Array:
			visit(s.Elem())
			return
		case reflect.Struct:
		default:
			return
		}
		if seen[s] || s == reflect.TypeFor[time.Time]() {
			return
		}
		seen[s] = true
		own := map[string]bool{}
		for i := range s.NumField() {
			f := s.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			own[name] = !f.Anonymous
			if (name == "grant" || name == "grants") && !notGrants[s.String()] {
				if grants++; !isGrant(f.Type) {
					t.Errorf("%s.%s is not a grant: it has the type %s", s, name, f.Type)
				}
			}
			visit(f.Type)
		}
		if s != names && own["binding"] && own["role"] && own["subject"] && own["rule"] {
			t.Errorf("%s spells the members of a grant: embed %s", s, names)
		}
	}
	for _, q := range allQuestions() {
		visit(q.Answer)
	}
	if grants < 5 {
		t.Errorf("the answers have %d members called grants", grants)
	}
}

// TestOneMeaningOfIncludeSystem: the parameter says the same wherever it is.
func TestOneMeaningOfIncludeSystem(t *testing.T) {
	told := map[string][]string{}
	for _, q := range allQuestions() {
		for _, f := range q.Parameters() {
			if f.Name == "includeSystem" {
				told[f.Help] = append(told[f.Help], q.Name)
			}
		}
	}
	if len(told) != 1 {
		t.Errorf("includeSystem is explained in different words: %q", told)
	}
}
