package implied

import (
	"encoding/json"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// readRules decodes the rules of a role. Roles may have megabytes of them, and encoding/json looks at each byte
// several times; what is written in another way than an apiserver's clients do is left to it. Strings alias the
// text.
func readRules(raw []byte) (rules []rbacv1.PolicyRule, ok bool) {
	s := jsontext.NewScanner(raw, 512)
	if quickRules(&s, &rules) && s.End() {
		return rules, true
	}
	rules = nil
	return rules, json.Unmarshal(raw, &rules) == nil
}

func quickRules(s *jsontext.Scanner, into *[]rbacv1.PolicyRule) bool {
	if !s.Open('[', "array") {
		return false
	}
	out := []rbacv1.PolicyRule{}
	for first := true; s.Element(first); first = false {
		if !s.Open('{', "object") {
			return false
		}
		var r rbacv1.PolicyRule
		for first := true; ; first = false {
			name, more := s.Member(first)
			if !more {
				break
			}
			list := listOf(&r, name)
			if list == nil || *list != nil || !quickStrings(s, list) { // of another name, or twice
				return false
			}
		}
		out = append(out, r)
	}
	*into = out
	return s.Err == nil
}

func quickStrings(s *jsontext.Scanner, into *[]string) bool {
	if s.Peek() != '[' || !s.Open('[', "array") {
		return false
	}
	list := []string{}
	for first := true; s.Element(first); first = false {
		if s.Peek() != '"' {
			return false
		}
		text, ok := s.Str()
		if !ok {
			return false
		}
		list = append(list, text)
	}
	*into = list
	return s.Err == nil
}

// listOf returns the list of a rule that has a name in JSON, nil for another name.
func listOf(r *rbacv1.PolicyRule, name string) *[]string {
	switch name {
	case "verbs":
		return &r.Verbs
	case "apiGroups":
		return &r.APIGroups
	case "resources":
		return &r.Resources
	case "resourceNames":
		return &r.ResourceNames
	case "nonResourceURLs":
		return &r.NonResourceURLs
	}
	return nil
}

// sameRules reports whether two lists of rules are deeply equal, where no list and an empty one are the same: as
// equality.Semantic.DeepEqual does, without reflection.
func sameRules(a, b []rbacv1.PolicyRule) bool {
	return slices.EqualFunc(a, b, func(x, y rbacv1.PolicyRule) bool {
		return slices.Equal(x.Verbs, y.Verbs) && slices.Equal(x.APIGroups, y.APIGroups) && slices.Equal(x.Resources, y.Resources) &&
			slices.Equal(x.ResourceNames, y.ResourceNames) && slices.Equal(x.NonResourceURLs, y.NonResourceURLs)
	})
}
