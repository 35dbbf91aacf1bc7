package authz

import (
	"strconv"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/verdict"
)

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
		number := line.Line
		if number == 0 {
			number = i + 1
		}
		out = append(out, "line "+strconv.Itoa(number)+": "+lacks)
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
	if s.user != "" && s.user != u.Username {
		return false
	}
	if s.group == "" {
		return true
	}
	for _, g := range u.Groups {
		if g == s.group {
			return true
		}
	}
	return false
}
