package compare

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apiserver/pkg/authentication/user"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/retrial-io/retrial/rbacindex"
)

// Collect runs n comparisons and returns cases that differ in what decides, one for each
// label that labels finds, shrunk as far as the label stays, as JSON lines ordered by label.
func Collect(n, seed uint64) ([][]byte, error) {
	var mu sync.Mutex
	found := map[string]*Case{}
	res := Run(Config{Comparisons: n, Seed: seed, Workers: 1, Observe: func(p *Policy, writes []rbacindex.Change, q *Question) {
		mu.Lock()
		defer mu.Unlock()
		for _, label := range labels(p, q) {
			if found[label] == nil {
				found[label] = &Case{Writes: writes, Question: *q}
			}
		}
	}})
	if res.Disagreement != nil {
		return nil, res.Disagreement
	}
	names := make([]string, 0, len(found))
	for label := range found {
		names = append(names, label)
	}
	slices.Sort(names)
	var out [][]byte
	seen := map[string]bool{}
	for _, label := range names {
		small := shrink(*found[label], false, func(c *Case) bool {
			return slices.Contains(labels(NewPolicy(c.Writes...), &c.Question), label) && c.Disagreement(Index()) == ""
		})
		raw, err := small.line(label)
		if err != nil {
			return nil, err
		}
		_, body, _ := bytes.Cut(raw, []byte(`"asked"`))
		limit := 800 // bytes; cases out of proportion are not for reading
		if small.Question.Asked == AskRules {
			limit += 500
		}
		// JSON has no place for bytes that are not UTF-8.
		if seen[string(body)] || bytes.Contains(raw, []byte(`\ufffd`)) || len(raw) > limit {
			continue
		}
		seen[string(body)] = true
		out = append(out, raw)
	}
	return out, nil
}

// labels name what about a question decides, as far as it is worth a case of its own.
func labels(p *Policy, q *Question) []string {
	switch q.Asked {
	case AskDecision:
		if a := &q.Request; utf8.ValidString(a.User) {
			return append(decisionLabels(p, a), oddLabels(p, a)...)
		}
	case AskRules:
		return rulesLabels(p, &q.Request)
	case AskCovers:
		return coversLabels(q)
	case AskBind, AskWrite:
		return escalationLabels(p, q)
	}
	return nil
}

// decisionLabels go through the bindings of the request's scopes: how what matches matches,
// and what alone is missing where one thing is.
func decisionLabels(p *Policy, a *rbacindex.Attributes) []string {
	var out []string
	add := func(format string, args ...any) { out = appendNew(out, fmt.Sprintf(format, args...)) }
	r := NewReal(p)
	answer := r.answer(&Question{Asked: AskDecision, Request: *a})
	result, grants := "deny", 0
	if answer.Allowed {
		result, grants = "allow", max(1, min(3, len(answer.Grants)))
	}
	add("decision %s grants=%d errors=%d", result, grants, min(3, len(answer.Errors)))
	for _, k := range p.keys {
		ref, ns, subjects, ok := bindingOf(p.objects[k])
		if !ok {
			continue
		}
		here := ns == "" || ns == a.Namespace
		who, matches := matchingSubject(a, subjects, ns)
		rules := p.rulesOf(ref, ns)
		if rules == nil {
			if here && matches {
				add("decision %s %s to %s without rules", result, k.Kind, kindWord(ref.Kind))
			}
			continue
		}
		for i := range rules {
			how, lacks := fits(a, &rules[i])
			switch {
			case lacks == "" && here && matches:
				add("decision allow by %s of %s to %s", k.Kind, ref.Kind, who)
				add("decision allow rule %s", how)
			case answer.Allowed:
			case lacks == "" && !here && matches:
				add("decision deny for the namespace, %s", who)
			case lacks == "" && here:
				for _, s := range subjects {
					if near := nearSubject(a, s, ns); near != "" {
						add("decision deny for the subject, %s by %s", near, k.Kind)
					}
				}
			case lacks != "" && lacks != "anything" && here && matches && !strings.Contains(lacks, "+"):
				add("decision deny for %s, rule %s", lacks, strings.NewReplacer("verb=star ", "", "verb=same ", "", "group=star ", "",
					"group=same ", "").Replace(how))
			}
		}
	}
	return out
}

func kindWord(kind string) string {
	if kind == "Role" || kind == "ClusterRole" {
		return kind
	}
	return "another kind"
}

func matchingSubject(a *rbacindex.Attributes, subjects []rbacv1.Subject, ns string) (string, bool) {
	for i, s := range subjects {
		word := s.Kind
		in := s.Namespace
		switch s.Kind {
		case rbacv1.UserKind:
			if s.Name != a.User {
				continue
			}
		case rbacv1.GroupKind:
			if !slices.Contains(a.Groups, s.Name) {
				continue
			}
		case rbacv1.ServiceAccountKind:
			if in == "" {
				in = ns
				word += " of the binding's namespace"
			}
			if in == "" || a.User != "system:serviceaccount:"+in+":"+s.Name {
				continue
			}
		default:
			continue
		}
		if i > 0 {
			word += ", not first"
		}
		return word, true
	}
	return "", false
}

// nearSubject says how a subject nearly matches.
func nearSubject(a *rbacindex.Attributes, s rbacv1.Subject, ns string) string {
	account := strings.HasPrefix(a.User, "system:serviceaccount:") && strings.HasSuffix(a.User, ":"+s.Name)
	switch {
	case s.Kind == rbacv1.ServiceAccountKind && account && s.Namespace == "" && ns == "":
		return "account without namespace"
	case s.Kind == rbacv1.ServiceAccountKind && account:
		return "account of another namespace"
	case s.Kind == rbacv1.ServiceAccountKind && s.Name == a.User:
		return "account named as user"
	case s.Kind == rbacv1.UserKind && s.Name == "*", s.Kind == rbacv1.GroupKind && s.Name == "*":
		return "star as " + s.Kind
	case s.Kind == rbacv1.UserKind && strings.EqualFold(s.Name, a.User):
		return "user of another case"
	case s.Kind == rbacv1.UserKind && slices.Contains(a.Groups, s.Name):
		return "group named as user"
	case s.Kind == rbacv1.GroupKind && s.Name == a.User:
		return "user named as group"
	case s.Kind == rbacv1.GroupKind && slices.ContainsFunc(a.Groups, func(g string) bool {
		return strings.EqualFold(g, s.Name) || strings.TrimSpace(g) == strings.TrimSpace(s.Name)
	}):
		return "group of nearly that name"
	case s.Name == a.User:
		return "subject of another kind"
	}
	return ""
}

// fits says how a rule meets a request, part by part, and which parts do not; what lacks is
// joined by "+".
func fits(a *rbacindex.Attributes, r *rbacv1.PolicyRule) (how, lacks string) {
	var words, missing []string
	part := func(name, word string) {
		if words = append(words, name+"="+word); word == "no" {
			missing = append(missing, name)
		}
	}
	list := func(list []string, v string) string {
		switch {
		case slices.Contains(list, v) && v != "*":
			return "same"
		case slices.Contains(list, "*"):
			return "star"
		case len(list) == 0:
			missing = append(missing, "anything")
			return "none"
		}
		return "no"
	}
	part("verb", list(r.Verbs, a.Verb))
	if !a.ResourceRequest {
		word := "no"
		for _, u := range r.NonResourceURLs {
			switch {
			case u == a.Path && u != "*":
				word = "same"
			case u == "*" && word == "no":
				word = "star"
			case strings.HasSuffix(u, "*") && word == "no" && strings.HasPrefix(a.Path, strings.TrimRight(u, "*")):
				word = "prefix"
			}
		}
		if len(r.NonResourceURLs) == 0 {
			return "", "paths+"
		}
		part("path", word)
		return strings.Join(words, " "), strings.Join(missing, "+")
	}
	part("group", list(r.APIGroups, a.APIGroup))
	want := a.Resource
	if a.Subresource != "" {
		want += "/" + a.Subresource
	}
	word := list(r.Resources, want)
	if word == "no" && a.Subresource != "" {
		switch {
		case slices.Contains(r.Resources, "*/"+a.Subresource):
			word = "starsub"
		case slices.Contains(r.Resources, a.Resource):
			words = append(words, "resource alone")
		}
	}
	if a.Subresource != "" {
		words = append(words, "sub")
	}
	part("resource", word)
	switch {
	case len(r.ResourceNames) == 0:
		part("name", "any")
	case slices.Contains(r.ResourceNames, a.Name):
		if a.Name == "" {
			part("name", "empty")
		} else {
			part("name", "same")
		}
	default:
		if a.Name == "" {
			words = append(words, "nameless")
		}
		part("name", "no")
	}
	return strings.Join(words, " "), strings.Join(missing, "+")
}

// oddLabels give every odd string in every place a case that is allowed.
func oddLabels(p *Policy, a *rbacindex.Attributes) []string {
	if !NewReal(p).Allows(a) {
		return nil
	}
	var out []string
	odd := func(place, v string) {
		plain := v != ""
		for _, c := range v {
			plain = plain && (c >= 'a' && c <= 'z' || c >= '0' && c <= '9')
		}
		if !plain && len(v) < 40 {
			out = append(out, fmt.Sprintf("odd %s %q", place, v))
		}
	}
	odd("user", a.User)
	odd("verb", a.Verb)
	if len(a.Groups) == 1 {
		odd("group", a.Groups[0])
	}
	if a.ResourceRequest {
		odd("apigroup", a.APIGroup)
		odd("resource", a.Resource)
		odd("subresource", a.Subresource)
		odd("name", a.Name)
		odd("namespace", a.Namespace)
	} else {
		odd("path", a.Path)
	}
	return out
}

func rulesLabels(p *Policy, a *rbacindex.Attributes) []string {
	r := NewReal(p)
	answer := r.answer(&Question{Asked: AskRules, Request: *a})
	var from []string
	for _, s := range answer.Rules {
		from = appendNew(from, s.From)
	}
	return []string{fmt.Sprintf("rules of %d bindings, more=%t, errors=%d, namespace=%t", min(3, len(from)), len(answer.Rules) > len(from),
		min(2, len(answer.Errors)), a.Namespace != "")}
}

func coversLabels(q *Question) []string {
	var out []string
	answer := (&Real{}).answer(q)
	for i, w := range q.Wanted {
		if i > 3 {
			break
		}
		if pieces(&w) == 0 || pieces(&w) > 50 || len(w.Resources) > 0 && len(w.NonResourceURLs) > 0 {
			continue
		}
		covered := !slices.ContainsFunc(answer.Uncovered, func(u rbacv1.PolicyRule) bool {
			return slices.ContainsFunc(validation.BreakdownRule(w), func(b rbacv1.PolicyRule) bool { return equalRules(b, u) })
		})
		best := ""
		for _, o := range q.Owner {
			for _, res := range w.Resources {
				_, sub, ok := strings.Cut(res, "/")
				if covered && ok && len(q.Owner) == 1 && !slices.Contains(o.Resources, res) && !slices.Contains(o.Resources, "*") &&
					slices.Contains(o.Resources, "*/"+sub) {
					out = appendNew(out, "covers a subresource of every resource")
				}
			}
			if len(o.Resources) > 0 && len(o.NonResourceURLs) > 0 && len(w.ResourceNames) == 0 {
				continue // a rule of both kinds counts as two
			}
			word := fmt.Sprintf("verb%s path%s name%s", among(o.Verbs, w.Verbs), among(o.NonResourceURLs, w.NonResourceURLs),
				among(o.ResourceNames, w.ResourceNames))
			if len(w.Resources) > 0 {
				word = fmt.Sprintf("verb%s group%s resource%s name%s", among(o.Verbs, w.Verbs), among(o.APIGroups, w.APIGroups),
					among(o.Resources, w.Resources), among(o.ResourceNames, w.ResourceNames))
			}
			if best == "" || strings.Count(word, "!") < strings.Count(best, "!") {
				best = word
			}
		}
		if best != "" && strings.Count(best, "!")+strings.Count(best, "0") <= 1 {
			out = appendNew(out, fmt.Sprintf("covers %t %s", covered, best))
		}
	}
	return out
}

// among says how a rule's list stands to a wanted one, in a sign.
func among(have, want []string) string {
	switch {
	case len(want) == 0 && len(have) == 0:
		return "-"
	case len(have) == 0:
		return "0"
	case len(want) == 0:
		return "+"
	case slices.Contains(have, "*") && !slices.Contains(want, "*"):
		return "*"
	case !slices.ContainsFunc(want, func(v string) bool { return !slices.Contains(have, v) }):
		return "="
	case slices.ContainsFunc(have, func(v string) bool { return strings.Contains(v, "*") && v != "*" }):
		return "~!"
	}
	return "!"
}

func escalationLabels(p *Policy, q *Question) []string {
	r := NewReal(p)
	answer := r.answer(q)
	a := &q.Request
	what := fmt.Sprintf("%s %s", q.Asked, kindWord(q.Ref.Kind))
	verb := rbacindex.Attributes{User: a.User, Groups: a.Groups, Verb: "bind", Namespace: a.Namespace, APIGroup: q.Ref.APIGroup,
		Resource: strings.ToLower(q.Ref.Kind) + "s", Name: q.Ref.Name, ResourceRequest: true}
	aggregated := false
	if q.Asked == AskWrite {
		k, err := rbacindex.KeyOf(q.Object)
		if err != nil {
			return nil
		}
		what = fmt.Sprintf("%s %s update=%t", q.Asked, k.Kind, q.Update)
		verb.Verb, verb.APIGroup, verb.Resource, verb.Namespace, verb.Name = "escalate", rbacv1.GroupName, strings.ToLower(k.Kind.String())+
			"s", k.Namespace, ""
		if q.Update {
			verb.Name = k.Name
		}
		aggregated = strings.HasPrefix(answer.Reason, "must have cluster-admin")
		if old, ok := p.objects[k].(*rbacv1.ClusterRole); ok && old.AggregationRule != nil &&
			len(old.AggregationRule.ClusterRoleSelectors) > 0 && q.Object.(*rbacv1.ClusterRole).AggregationRule == nil {
			what += " was aggregated"
		}
	}
	how := "refused"
	_, errs := r.visit(&user.DefaultInfo{Name: a.User, Groups: a.Groups}, verb.Namespace, nil, func(*rbacv1.PolicyRule) bool {
		return false
	})
	switch {
	case answer.Allowed && slices.Contains(a.Groups, masters):
		how = "superuser"
	case answer.Allowed && r.Allows(&verb):
		how = "by the verb"
	case answer.Allowed && q.Asked == AskWrite && len(rulesIn(q.Object)) == 0:
		how = "nothing"
	case answer.Allowed:
		how = "held"
	case answer.RoleAbsent:
		how = "absent"
	case aggregated:
		how = "aggregated"
	default:
		how += fmt.Sprintf(" errors=%d lines=%d", min(2, len(errs)), min(3, strings.Count(answer.Reason, "\n")))
	}
	return []string{fmt.Sprintf("%s in namespace=%t: %s", what, verb.Namespace != "", how)}
}
