package rbacindex

import (
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
)

// RuleAllows reports whether a rule by itself allows a request, exactly as RuleAllows of
// Kubernetes' plugin/pkg/auth/authorizer/rbac does. The index gives the same answers without
// visiting rules; this is the definition it is tested against.
func RuleAllows(a *Attributes, rule *rbacv1.PolicyRule) bool {
	if !verbMatches(rule.Verbs, a.Verb) {
		return false
	}
	if !a.ResourceRequest {
		return pathMatches(rule.NonResourceURLs, a.Path)
	}
	return groupMatches(rule.APIGroups, a.APIGroup) &&
		resourceMatches(rule.Resources, a.Resource, a.Subresource) &&
		nameMatches(rule.ResourceNames, a.Name)
}

func verbMatches(verbs []string, verb string) bool {
	for _, v := range verbs {
		if v == rbacv1.VerbAll || v == verb {
			return true
		}
	}
	return false
}

func groupMatches(groups []string, group string) bool {
	for _, g := range groups {
		if g == rbacv1.APIGroupAll || g == group {
			return true
		}
	}
	return false
}

func resourceMatches(resources []string, resource, sub string) bool {
	for _, r := range resources {
		if r == rbacv1.ResourceAll || isResource(r, resource, sub) || sub != "" && isResource(r, "*", sub) {
			return true
		}
	}
	return false
}

// isResource reports whether r is resource, or resource/sub when there is a subresource.
func isResource(r, resource, sub string) bool {
	if sub == "" {
		return r == resource
	}
	n := len(resource)
	return len(r) == n+1+len(sub) && r[:n] == resource && r[n] == '/' && r[n+1:] == sub
}

// nameMatches: no list means every name. A request without a name is matched by a list only
// if that holds the empty string.
func nameMatches(names []string, name string) bool {
	return len(names) == 0 || slices.Contains(names, name)
}

func pathMatches(urls []string, path string) bool {
	for _, u := range urls {
		if u == path || strings.HasSuffix(u, "*") && strings.HasPrefix(path, strings.TrimRight(u, "*")) {
			return true
		}
	}
	return false
}

// verbSet is a rule's verbs as bits. Verbs without their own bit share verbOther, and need to be
// compared in the rule.
type verbSet uint16

const (
	verbGet verbSet = 1 << iota
	verbList
	verbWatch
	verbCreate
	verbUpdate
	verbPatch
	verbDelete
	verbDeleteCollection
	verbPost
	verbImpersonate
	verbOther
	verbStar // the rule has "*": all other bits are set as well

	verbAny = verbStar<<1 - 1
)

// verbBit returns the bit of a verb in a request. "*" as a request's verb is an ordinary
// string that only a rule with "*" holds.
func verbBit(verb string) verbSet {
	switch verb {
	case "get":
		return verbGet
	case "list":
		return verbList
	case "watch":
		return verbWatch
	case "create":
		return verbCreate
	case "update":
		return verbUpdate
	case "patch":
		return verbPatch
	case "delete":
		return verbDelete
	case "deletecollection":
		return verbDeleteCollection
	case "post":
		return verbPost
	case "impersonate":
		return verbImpersonate
	}
	return verbOther
}

func verbsOf(verbs []string) verbSet {
	var s verbSet
	for _, v := range verbs {
		if v == rbacv1.VerbAll {
			return verbAny
		}
		s |= verbBit(v)
	}
	return s
}
