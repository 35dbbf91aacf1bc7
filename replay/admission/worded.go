package admission

import "strings"

// worded is a plugin that is known by its words alone: what it decides by is not recorded.
type worded struct {
	plugin string
	texts  []text
}

func (w worded) name() string { return w.plugin }

func (w worded) refused(r *refusal) (string, bool) {
	for i := range w.texts {
		if t := &w.texts[i]; t.fits(r) {
			return t.named(r), true
		}
	}
	return "", false
}

// text is how a plugin words one of its refusals.
type text struct {
	code int32 // 0 = any
	// whole matches the message from its beginning, inner what follows
	// `<resource> "<name>" is forbidden: ` (behind an opening "[" of a list, too).
	whole, inner string
	contains     string // additionally required anywhere, "" = nothing
	// ends is what stands behind the name of the policy, webhook or quota, which whole or inner
	// leads to; "" = none is named.
	ends string
}

func (t *text) fits(r *refusal) bool {
	return (t.code == 0 || t.code == r.code) &&
		strings.HasPrefix(r.message, t.whole) &&
		(t.inner == "" || r.forbidden && strings.HasPrefix(r.inner, t.inner)) &&
		strings.Contains(r.message, t.contains)
}

// named returns the policy, webhook or quota that a refusal which fits names.
func (t *text) named(r *refusal) string {
	if t.ends == "" {
		return ""
	}
	rest := r.message[len(t.whole):]
	if t.inner != "" {
		rest = r.inner[len(t.inner):]
	}
	if name, _, ok := strings.Cut(rest, t.ends); ok {
		return name
	}
	return ""
}
