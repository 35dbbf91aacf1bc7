package authz

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

// abacIndex is an ABAC policy file, indexed by whom its lines are for and then by what, so
// that the first line that allows a request is found without reading the others. It mirrors
// pkg/auth/authorizer/abac.
type abacIndex struct {
	policy   *config.Policy
	minor    int // of Kubernetes, as configured
	subjects map[abacSubject]*abacLines
	pairs    bool // lines that name a user and a group
}

// abacSubject is whom a line is for: the user, the group, or both. Neither is everybody, which
// only lines of earliest versions mean.
type abacSubject struct{ user, group string }

// abacLines are the lines of one subject, by what they allow.
type abacLines struct {
	resources map[abacResource]abacFirst
	shapes    uint8 // which wildcards occur: a bit for each combination, see wild*
	paths     map[string]abacFirst
	prefixes  map[string]abacFirst
	lengths   []int // of prefixes, each once
}

type abacResource struct{ namespace, resource, group string }

const (
	wildNamespace = 1 << iota
	wildResource
	wildGroup
)

// abacFirst is the first line for reading alone and the first for every verb, from 1; 0 is
// none.
type abacFirst struct{ reading, all int32 }

const abacAny = "*"

// newABAC returns nil for a policy that is not known.
func newABAC(p *config.Policy, minor int) *abacIndex {
	if p == nil {
		return nil
	}
	x := &abacIndex{policy: p, minor: minor, subjects: map[abacSubject]*abacLines{}}
	for i := range p.Lines {
		line := p.Lines[i]
		subject, ok := subjectOf(&line, minor)
		if !ok {
			continue
		}
		lines := x.subjects[subject]
		if lines == nil {
			lines = newLines()
			x.subjects[subject] = lines
		}
		x.pairs = x.pairs || subject.user != "" && subject.group != ""
		lines.add(&line, int32(cmp.Or(line.Line, i+1)))
	}
	return x
}

// subjectOf says whom a line is for. A star has meant all authenticated users since 1.6, and
// then overrides the other field; before, it meant everybody.
func subjectOf(line *config.PolicyLine, minor int) (abacSubject, bool) {
	s := abacSubject{line.User, line.Group}
	if s == (abacSubject{}) {
		return s, false
	}
	if s.user != abacAny && s.group != abacAny {
		return s, true
	}
	if minor == 0 || minor >= 6 {
		return abacSubject{group: authn.GroupAuthenticated}, true
	}
	if s.user == abacAny {
		s.user = ""
	}
	if s.group == abacAny {
		s.group = ""
	}
	return s, true
}

func newLines() *abacLines {
	return &abacLines{resources: map[abacResource]abacFirst{}, paths: map[string]abacFirst{}, prefixes: map[string]abacFirst{}}
}

// reads reports whether a verb only reads, as ABAC sees it.
func reads(verb string) bool {
	return verb == request.VerbGet || verb == request.VerbList || verb == request.VerbWatch
}

func (l *abacLines) add(line *config.PolicyLine, number int32) {
	key := abacResource{line.Namespace, line.Resource, line.APIGroup}
	shape := 0
	if key.namespace == abacAny {
		shape |= wildNamespace
	}
	if key.resource == abacAny {
		shape |= wildResource
	}
	if key.group == abacAny {
		shape |= wildGroup
	}
	l.shapes |= 1 << shape
	l.resources[key] = l.resources[key].with(line.Readonly, number)

	path := line.NonResourcePath
	l.paths[path] = l.paths[path].with(line.Readonly, number)
	if !strings.HasSuffix(path, abacAny) {
		return
	}
	path = strings.TrimRight(path, abacAny)
	if !slices.Contains(l.lengths, len(path)) {
		l.lengths = append(l.lengths, len(path))
	}
	l.prefixes[path] = l.prefixes[path].with(line.Readonly, number)
}

func (f abacFirst) with(readonly bool, number int32) abacFirst {
	first := &f.all
	if readonly {
		first = &f.reading
	}
	if *first == 0 || number < *first {
		*first = number
	}
	return f
}

// allows returns the number of the first line that allows a request, 0 if none does.
func (x *abacIndex) allows(u *event.User, a *verdict.Attributes) int {
	q := abacQuery{a: a, reading: reads(a.Verb)}
	q.ask(x.subjects[abacSubject{}])
	if u.Username != "" {
		q.ask(x.subjects[abacSubject{user: u.Username}])
	}
	for _, g := range u.Groups {
		if g == "" {
			continue
		}
		q.ask(x.subjects[abacSubject{group: g}])
		if x.pairs {
			q.ask(x.subjects[abacSubject{u.Username, g}])
		}
	}
	return int(q.first)
}

type abacQuery struct {
	a       *verdict.Attributes
	reading bool
	first   int32
}

func (q *abacQuery) take(f abacFirst) {
	if f.all > 0 && (q.first == 0 || f.all < q.first) {
		q.first = f.all
	}
	if q.reading && f.reading > 0 && (q.first == 0 || f.reading < q.first) {
		q.first = f.reading
	}
}

func (q *abacQuery) ask(l *abacLines) {
	if l == nil {
		return
	}
	if !q.a.ResourceRequest {
		q.take(l.paths[q.a.Path])
		for _, n := range l.lengths {
			if n <= len(q.a.Path) {
				q.take(l.prefixes[q.a.Path[:n]])
			}
		}
		return
	}
	for shape := range 8 {
		if l.shapes&(1<<shape) == 0 {
			continue
		}
		key := abacResource{q.a.Namespace, q.a.Resource, q.a.APIGroup}
		if shape&wildNamespace != 0 {
			key.namespace = abacAny
		}
		if shape&wildResource != 0 {
			key.resource = abacAny
		}
		if shape&wildGroup != 0 {
			key.group = abacAny
		}
		q.take(l.resources[key])
	}
}

// almost words the lines that are for a user and differ from what he asks for in one thing.
func (x *abacIndex) almost(u *event.User, a *verdict.Attributes, limit int) (out []string) {
	for i := range x.policy.Lines {
		line := x.policy.Lines[i]
		subject, ok := subjectOf(&line, x.minor)
		if !ok || !subject.is(u) {
			continue
		}
		single := newLines()
		single.add(&line, 1)
		lacks := ""
		try := func(what string, changed verdict.Attributes) {
			q := abacQuery{a: &changed, reading: reads(changed.Verb)}
			if q.ask(single); q.first > 0 && lacks == "" {
				lacks = what
			}
		}
		read, elsewhere, other, grouped, path := *a, *a, *a, *a, *a
		read.Verb = request.VerbGet
		try("it is for reading", read)
		if a.ResourceRequest {
			elsewhere.Namespace, other.Resource, grouped.APIGroup = line.Namespace, line.Resource, line.APIGroup
			try("it is for "+inNamespace(line.Namespace), elsewhere)
			try("it is for the resource "+strconv.Quote(line.Resource), other)
			try("it is for the API group "+strconv.Quote(line.APIGroup), grouped)
		} else if line.NonResourcePath != "" {
			path.Path = line.NonResourcePath
			try("it is for the path "+line.NonResourcePath, path)
		}
		if lacks == "" {
			continue
		}
		out = append(out, "line "+strconv.Itoa(cmp.Or(line.Line, i+1))+": "+lacks)
		if len(out) == limit {
			break
		}
	}
	return out
}

func inNamespace(namespace string) string {
	if namespace == "" {
		return "what is in no namespace"
	}
	return "the namespace " + strconv.Quote(namespace)
}

// is reports whether a line for this subject is for a user.
func (s abacSubject) is(u *event.User) bool {
	return (s.user == "" || s.user == u.Username) && (s.group == "" || slices.Contains(u.Groups, s.group))
}
