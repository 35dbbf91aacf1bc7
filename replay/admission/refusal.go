package admission

import "github.com/retrial-io/retrial/verdict"

// refusal is the answer to a request that was refused, and who refused it as far as that is told.
type refusal struct {
	code           int32
	message, inner string // inner is what follows "is forbidden: "
	forbidden      bool
	node           bool
	a              *verdict.Attributes
	by, of         string // the plugin, "" for none, and its policy, webhook or quota
}

// words returns what the plugin said.
func (r *refusal) words() string {
	if r.forbidden {
		return verdict.Clip(r.inner)
	}
	return verdict.Clip(r.message)
}
