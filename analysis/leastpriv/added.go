package leastpriv

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/internal/manifest"
	"github.com/retrial-io/retrial/rbacindex"
)

// KeptTexts says what narrowed roles keep although nobody used it, and why: a line for each role and reason.
func (s *Suggestion) KeptTexts() []string {
	type line struct{ role, verb, reason string }
	var order []line
	resources := map[line][]string{}
	for _, a := range s.Added {
		k := line{a.Role, a.Verb, a.Reason}
		if resources[k] == nil {
			order = append(order, k)
		}
		if !slices.Contains(resources[k], a.Resource) {
			resources[k] = append(resources[k], a.Resource)
		}
	}
	slices.SortStableFunc(order, func(a, b line) int {
		return cmp.Or(strings.Compare(a.role, b.role), strings.Compare(a.reason, b.reason), strings.Compare(a.verb, b.verb))
	})
	out := make([]string, 0, len(order))
	for _, k := range order {
		out = append(out, fmt.Sprintf("%s of %s: %s (%s)", k.verb, k.role, strings.Join(resources[k], ", "), k.reason))
	}
	return out
}

// Notes returns the texts of reasons by role and rule.
func Notes(why []RuleReason) map[string][][]string {
	out := map[string][][]string{}
	for i := range why {
		r := &why[i]
		for len(out[r.Role]) <= r.Rule {
			out[r.Role] = append(out[r.Role], nil)
		}
		out[r.Role][r.Rule] = r.Texts
	}
	return out
}

// WriteNoted writes objects as YAML, each rule of a role behind its notes.
func WriteNoted(w io.Writer, objects []Object, notes map[string][][]string) error {
	for i, o := range objects {
		if i > 0 {
			fmt.Fprintln(w, "---")
		}
		k, err := rbacindex.KeyOf(o)
		if err != nil {
			return fmt.Errorf("print as yaml: %w", err)
		}
		if err := manifest.Role(w, o, notes[k.String()]); err != nil {
			return err //nolint:wrapcheck // it says what failed
		}
	}
	return nil
}
