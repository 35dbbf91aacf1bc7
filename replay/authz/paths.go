package authz

import (
	"slices"
	"strings"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

// paths are those that a delegating server lets through without asking.
type paths struct{ list *pathList }

func newPaths(list []string) registered {
	return registered{paths{newPathList(list)}, traits{local: true, safe: true}}
}

func (p paths) ask(_ *Answer, _ *event.User, a *verdict.Attributes, _ *Moment) stepState {
	if !a.ResourceRequest && p.list.contains(a.Path) {
		return allowed
	}
	return noOpinion
}

func (paths) silence(Answer) string { return "" }

func (paths) missing(Answer) string { return "" }

func (paths) explain(s *Shortfall, _ Answer, _ *event.User, _ *verdict.Attributes, _ *Moment, _ int) {
	s.Text = "it is none of the paths let through without asking"
}

// pathList is the paths a delegating server lets through: exact ones, and prefixes written
// with a trailing star.
type pathList struct {
	exact    map[string]struct{}
	prefixes []string
}

func newPathList(paths []string) *pathList {
	p := &pathList{exact: map[string]struct{}{}}
	for _, path := range paths {
		path = strings.TrimPrefix(path, "/")
		if prefix, ok := strings.CutSuffix(path, "*"); ok {
			p.prefixes = append(p.prefixes, prefix)
		} else {
			p.exact[path] = struct{}{}
		}
	}
	return p
}

func (p *pathList) contains(path string) bool {
	path = strings.TrimPrefix(path, "/")
	if _, ok := p.exact[path]; ok {
		return true
	}
	return slices.ContainsFunc(p.prefixes, func(prefix string) bool { return strings.HasPrefix(path, prefix) })
}
