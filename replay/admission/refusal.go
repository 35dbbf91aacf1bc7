package admission

import (
	"strings"

	"github.com/retrial-io/retrial/verdict"
)

// refusal is the answer to a request that was refused, and who refused it as far as that is told.
type refusal struct {
	code           int32
	message, inner string // inner is what follows "is forbidden: "
	forbidden      bool
	node           bool
	a              *verdict.Attributes
	by, of         string // the plugin, "" for none, and its policy, webhook or quota
}

// words are what the plugin said.
func (r *refusal) words() string {
	if r.forbidden {
		return verdict.Clip(r.inner)
	}
	return verdict.Clip(r.message)
}

// refusing attributes a refusal to a plugin, nil when none words it like that: API validation,
// conflicts, secondary authorization checks and handlers refuse too.
func (p *Plugins) refusing(r *refusal) (by plugin, of string) {
	if r.code < 400 || r.message == "" {
		return nil, ""
	}
	_, r.inner, r.forbidden = strings.Cut(r.message, " is forbidden: ")
	r.inner = strings.TrimPrefix(r.inner, "[")
	if r.forbidden && strings.HasPrefix(r.inner, `User "`) {
		return nil, "" // an authorization text: a secondary check
	}
	for _, x := range p.all {
		if of, ok := x.refused(r); ok {
			return x, verdict.Clip(of)
		}
	}
	return nil, ""
}
