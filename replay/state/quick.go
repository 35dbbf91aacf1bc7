package state

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// quick reads JSON as nearly every apiserver writes it, several times as fast as
// encoding/json. It never decides what odd input means: at anything out of the ordinary (a
// member twice, in other letters or of another type, null, an escape or a byte beyond ASCII
// in a string that counts, damage) it gives up, and the caller asks encoding/json.
type quick struct {
	b  []byte
	i  int
	in *interner // of the strings returned

	spaced bool // white space was passed
}

// maxQuickDepth is how deep values that are passed over may nest.
const maxQuickDepth = 64

func (q *quick) space() {
	for q.i < len(q.b) {
		switch q.b[q.i] {
		case ' ', '\n', '\t', '\r':
			q.i++
			q.spaced = true
		default:
			return
		}
	}
}

// eat passes one byte, with white space before it.
func (q *quick) eat(c byte) bool {
	q.space()
	if q.i < len(q.b) && q.b[q.i] == c {
		q.i++
		return true
	}
	return false
}

// plain reads a string without escapes, of ASCII only. The result is part of the input.
func (q *quick) plain() ([]byte, bool) {
	if !q.eat('"') {
		return nil, false
	}
	begin := q.i
	for ; q.i < len(q.b); q.i++ {
		switch c := q.b[q.i]; {
		case c == '"':
			q.i++
			return q.b[begin : q.i-1], true
		case c == '\\' || c < 0x20 || c >= 0x7f:
			return nil, false
		}
	}
	return nil, false
}

func (q *quick) str(into *string) bool {
	s, ok := q.plain()
	if ok {
		*into = q.in.bytes(s)
	}
	return ok
}

// object visits the members of an object. member reads the value of a name it knows, and says
// which by a bit that no other name has; known are all of them, so that other spellings, which
// encoding/json takes for the same, are told.
func (q *quick) object(known []string, member func(i int) bool) bool {
	if !q.eat('{') {
		return false
	}
	if q.eat('}') {
		return true
	}
	seen := 0
	for {
		name, ok := q.plain()
		if !ok || !q.eat(':') {
			return false
		}
		at := -1
		for i, k := range known {
			if string(name) == k {
				at = i
				break
			}
			if len(name) == len(k) && strings.EqualFold(string(name), k) {
				return false
			}
		}
		if at < 0 {
			ok = q.skip(0)
		} else {
			ok = seen>>at&1 == 0 && member(at)
			seen |= 1 << at
		}
		switch {
		case !ok:
			return false
		case q.eat(','):
		default:
			return q.eat('}')
		}
	}
}

// array visits the elements of an array.
func (q *quick) array(element func() bool) bool {
	if !q.eat('[') {
		return false
	}
	if q.eat(']') {
		return true
	}
	for {
		switch {
		case !element():
			return false
		case q.eat(','):
		default:
			return q.eat(']')
		}
	}
}

func (q *quick) strs(into *[]string) bool {
	list := []string{}
	if !q.array(func() bool {
		var s string
		ok := q.str(&s)
		list = append(list, s)
		return ok
	}) {
		return false
	}
	*into = list[:len(list):len(list)]
	return true
}

// skip passes over a value, making sure that it is one.
func (q *quick) skip(depth int) bool {
	q.space()
	if q.i == len(q.b) || depth == maxQuickDepth {
		return false
	}
	switch c := q.b[q.i]; {
	case c == '"':
		return q.skipString()
	case c == '{':
		q.i++
		if q.eat('}') {
			return true
		}
		for {
			q.space()
			if !q.skipString() || !q.eat(':') || !q.skip(depth+1) {
				return false
			}
			if !q.eat(',') {
				return q.eat('}')
			}
		}
	case c == '[':
		return q.array(func() bool { return q.skip(depth + 1) })
	case c == '-' || '0' <= c && c <= '9':
		return q.skipInteger()
	}
	for _, word := range []string{"true", "false", "null"} {
		if bytes.HasPrefix(q.b[q.i:], []byte(word)) {
			q.i += len(word)
			return true
		}
	}
	return false
}

func (q *quick) skipString() bool {
	if q.i == len(q.b) || q.b[q.i] != '"' {
		return false
	}
	for q.i++; q.i < len(q.b); q.i++ {
		switch c := q.b[q.i]; {
		case c == '"':
			q.i++
			return true
		case c < 0x20:
			return false
		case c == '\\':
			q.i++
			if q.i == len(q.b) || bytes.IndexByte([]byte(`"\/bfnrt`), q.b[q.i]) < 0 {
				return false // \u as well: rare
			}
		}
	}
	return false
}

// skipInteger passes over an integer; other numbers are rare.
func (q *quick) skipInteger() bool {
	if q.b[q.i] == '-' {
		q.i++
	}
	begin := q.i
	for q.i < len(q.b) && '0' <= q.b[q.i] && q.b[q.i] <= '9' {
		q.i++
	}
	n := q.i - begin
	if n == 0 || n > 1 && q.b[begin] == '0' {
		return false
	}
	return q.i == len(q.b) || q.b[q.i] != '.' && q.b[q.i] != 'e' && q.b[q.i] != 'E'
}

// end tells whether only white space is left.
func (q *quick) end() bool {
	q.space()
	return q.i == len(q.b)
}

var (
	quickObject  = []string{"metadata", "rules", "subjects", "roleRef", "aggregationRule", "cut"}
	quickHead    = []string{"metadata", "spec", "kind", "apiVersion"}
	quickSpec    = []string{"finalizers"}
	quickMeta    = []string{"creationTimestamp", "deletionTimestamp", "name", "namespace", "uid", "resourceVersion", "generateName", "finalizers", "deletionGracePeriodSeconds"}
	quickRule    = []string{"verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"}
	quickSubject = []string{"kind", "apiGroup", "name", "namespace"}
	quickRef     = []string{"apiGroup", "kind", "name"}
)

// rbac reads an object of a kept resource into what parse needs of it.
func (q *quick) rbac(o *kept) bool {
	return q.object(quickObject, func(i int) bool {
		switch i {
		case 0:
			return q.meta(&o.Metadata)
		case 1:
			o.Rules = []rbacv1.PolicyRule{}
			return q.array(func() bool { return q.rule(&o.Rules) })
		case 2:
			o.Subjects = []rbacv1.Subject{}
			return q.array(func() bool { return q.subject(&o.Subjects) })
		case 4, 5:
			return false // few have one
		}
		return q.object(quickRef, func(i int) bool {
			return q.str([]*string{&o.RoleRef.APIGroup, &o.RoleRef.Kind, &o.RoleRef.Name}[i])
		})
	}) && q.end()
}

// plainHead reads an object of which only the metadata counts.
func (q *quick) plainHead(m *meta) bool {
	var ignored []string
	return q.object(quickHead, func(i int) bool {
		switch i {
		case 0:
			return q.meta(m)
		case 1:
			return q.object(quickSpec, func(int) bool { return q.strs(&ignored) })
		}
		_, ok := q.plain()
		return ok
	}) && q.end()
}

// text reads a string into memory of its own.
func (q *quick) text(into *string) bool {
	s, ok := q.plain()
	if ok {
		*into = string(s)
	}
	return ok
}

// head reads an object as far as every kind has the same.
func (q *quick) head(h *head) bool {
	return q.object(quickHead, func(i int) bool {
		switch i {
		case 0:
			return q.fullMeta(&h.Metadata)
		case 1:
			return q.object(quickSpec, func(int) bool { return q.texts(&h.Spec.Finalizers) })
		case 2:
			return q.text(&h.Kind)
		}
		return q.text(&h.APIVersion)
	}) && q.end()
}

// fullMeta reads all of the metadata.
func (q *quick) fullMeta(m *meta) bool {
	texts := [...]*string{&m.CreationTimestamp, &m.DeletionTimestamp, &m.Name, &m.Namespace, &m.UID, &m.ResourceVersion, &m.GenerateName}
	return q.object(quickMeta, func(i int) bool {
		switch {
		case i < len(texts):
			return q.text(texts[i])
		case i == len(texts):
			return q.texts(&m.Finalizers)
		}
		q.space()
		begin := q.i
		if q.i == len(q.b) || !q.skipInteger() {
			return false
		}
		n, err := strconv.ParseInt(string(q.b[begin:q.i]), 10, 64)
		m.GracePeriod = &n
		return err == nil
	})
}

// texts reads an array of strings into memory of their own.
func (q *quick) texts(into *[]string) bool {
	list := []string{}
	if !q.array(func() bool {
		var s string
		ok := q.text(&s)
		list = append(list, s)
		return ok
	}) {
		return false
	}
	*into = list
	return true
}

// readHead reads the head of an object.
func readHead(raw []byte) (h head, err error) {
	if q := (quick{b: raw}); q.head(&h) {
		return h, nil
	}
	h = head{}
	err = json.Unmarshal(raw, &h)
	return h, err
}

// meta reads the times, and makes sure that the rest is of the right types.
func (q *quick) meta(m *meta) bool {
	return q.object(quickMeta, func(i int) bool {
		switch i {
		case 0, 1:
			s, ok := q.plain()
			if i == 0 {
				m.CreationTimestamp = string(s)
			} else {
				m.DeletionTimestamp = string(s)
			}
			return ok
		case 7, 8:
			return false // being deleted: rare
		}
		_, ok := q.plain()
		return ok
	})
}

func (q *quick) rule(list *[]rbacv1.PolicyRule) bool {
	var r rbacv1.PolicyRule
	ok := q.object(quickRule, func(i int) bool {
		return q.strs([]*[]string{&r.Verbs, &r.APIGroups, &r.Resources, &r.ResourceNames, &r.NonResourceURLs}[i])
	})
	*list = append(*list, r)
	return ok
}

func (q *quick) subject(list *[]rbacv1.Subject) bool {
	var s rbacv1.Subject
	ok := q.object(quickSubject, func(i int) bool {
		return q.str([]*string{&s.Kind, &s.APIGroup, &s.Name, &s.Namespace}[i])
	})
	*list = append(*list, s)
	return ok
}

var quickObservation = []string{"v", "source", "resource", "namespace", "name", "uid", "resourceVersion",
	"deleted", "unknown", "allOf", "complete", "unchanged", "created", "update", "patch", "notBefore", "notAfter", "since", "object"}

// observation reads what Observation.Append wrote. Object is part of the input.
func (q *quick) observation(j *observationJSON) bool {
	text := []*string{&j.Source, &j.Resource, &j.Namespace, &j.Name, &j.UID, &j.ResourceVersion}
	flags := []*bool{&j.Deleted, &j.Unknown, &j.AllOf, &j.Complete, &j.Unchanged, &j.Created, &j.Update, &j.Patch}
	return q.object(quickObservation, func(i int) bool {
		q.space()
		begin := q.i
		switch {
		case i == 0:
			q.i = min(q.i+1, len(q.b))
			if q.i == begin || q.b[begin] < '0'+observationFirst || q.b[begin] > '0'+observationVersion {
				return false
			}
			j.Version = int(q.b[begin] - '0')
			return q.i == len(q.b) || q.b[q.i] == ',' || q.b[q.i] == '}'
		case i <= 6:
			s, ok := q.plain()
			*text[i-1] = string(s)
			return ok
		case i <= 14:
			if !q.skip(0) {
				return false
			}
			*flags[i-7] = string(q.b[begin:q.i]) == "true"
			return *flags[i-7] || string(q.b[begin:q.i]) == "false"
		case i <= 17:
			if _, ok := q.plain(); !ok {
				return false
			}
			return j.at(i-15).UnmarshalJSON(q.b[begin:q.i]) == nil
		}
		ok := q.skip(0)
		j.Object = q.b[begin:q.i:q.i]
		return ok && string(j.Object) != "null"
	}) && q.end()
}
