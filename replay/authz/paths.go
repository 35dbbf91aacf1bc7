package authz

import (
	"slices"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

// paths are those that a delegating server lets through without asking.
type paths struct {
	quiet
	exact    map[string]bool
	prefixes []string // written with a trailing star
}

func newPaths(list []string) registered {
	p := paths{exact: map[string]bool{}}
	for _, path := range list {
		path = strings.TrimPrefix(path, "/")
		if prefix, ok := strings.CutSuffix(path, "*"); ok {
			p.prefixes = append(p.prefixes, prefix)
		} else {
			p.exact[path] = true
		}
	}
	return registered{p, traits{local: true, safe: true}}
}

func (p paths) ask(_ *Answer, _ *event.User, a *verdict.Attributes, _ *Moment) stepState {
	path := strings.TrimPrefix(a.Path, "/")
	if !a.ResourceRequest && (p.exact[path] ||
		slices.ContainsFunc(p.prefixes, func(prefix string) bool { return strings.HasPrefix(path, prefix) })) {
		return allowed
	}
	return noOpinion
}

func (paths) explain(s *Shortfall, _ Answer, _ *event.User, _ *verdict.Attributes, _ *Moment, _ int) {
	s.Text = "it is none of the paths let through without asking"
}
