// Package known says which users and groups a policy names, and whether a name is likely a mistake.
package known

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/internal/near"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authn"
)

// mostNear bounds the names that a text suggests.
const mostNear = 3

// Unbound tells of a group that no binding of some policies names: a text, "" if one of them does, and whether it is to be taken for a
// mistake. It is if groups are called much like it, or if nothing could be answered of it, as being in it gives nothing; but not if
// Kubernetes has the group.
func Unbound(group string, nothing bool, policies ...*rbacindex.Snapshot) (text string, mistaken bool) {
	var bound []string
	for _, policy := range policies {
		if policy.Names(group, true) {
			return "", false
		}
		bound = append(bound, Groups(policy)...)
	}
	if group == kubenames.Masters {
		return "", false
	}
	text = fmt.Sprintf("no binding names the group %q", group)
	if slices.Contains(ownGroups, group) || strings.HasPrefix(group, kubenames.ServiceAccountsOf("")) {
		return text, false
	}
	var names []string
	for _, name := range near.Subjects(group, append(bound, ownGroups...), mostNear) {
		names = append(names, strconv.Quote(name))
	}
	return text + phrase.DidYouMean("; ", names), len(names) > 0 || nothing && !kubenames.Own(group)
}

// ownGroups are groups that Kubernetes gives users without a binding that names them.
var ownGroups = []string{kubenames.Authenticated, kubenames.Masters, kubenames.Nodes, kubenames.ServiceAccounts,
	kubenames.Unauthenticated, "system:bootstrappers", "system:monitoring"}

// Groups returns the groups that bindings name.
func Groups(policy *rbacindex.Snapshot) (groups []string) {
	policy.All(func(_ rbacindex.Key, object any) bool {
		subjects, _, _ := rbacindex.BindingOf(object)
		for _, s := range subjects {
			if s.Kind == rbacv1.GroupKind && !slices.Contains(groups, s.Name) {
				groups = append(groups, s.Name)
			}
		}
		return true
	})
	return groups
}

// Users returns the users and service accounts that bindings name, as requests carry them.
func Users(policy *rbacindex.Snapshot) (users []string) {
	policy.All(func(k rbacindex.Key, object any) bool {
		subjects, _, _ := rbacindex.BindingOf(object)
		for i := range subjects {
			if name := rbacindex.UserOf(&subjects[i], k.Namespace); name != "" {
				users = append(users, name)
			}
		}
		return true
	})
	return users
}

// Named returns the roles, or the bindings, of a policy that a text names: KIND/NAME, KIND/NAMESPACE/NAME, or a name alone. Without any it
// returns those that may have been meant.
func Named(policy *rbacindex.Snapshot, text string, bindings bool) (found []rbacindex.Key, meant []string) {
	kind, rest, whole := strings.Cut(text, "/")
	var names []string
	policy.All(func(k rbacindex.Key, object any) bool {
		if _, _, binding := rbacindex.BindingOf(object); binding != bindings {
			return true
		}
		full := k.String()
		_, place, _ := strings.Cut(full, "/")
		if whole && strings.EqualFold(kind, k.Kind.String()) && rest == place || !whole && text == k.Name {
			found = append(found, k)
		}
		if !whole {
			full = k.Name
		}
		names = append(names, full)
		return true
	})
	slices.SortFunc(found, rbacindex.Key.Compare)
	if len(found) == 0 {
		slices.Sort(names)
		meant = near.Words(text, slices.Compact(names), mostNear)
	}
	return found, meant
}

// Few names some objects, as a list of words.
func Few(keys []rbacindex.Key) string {
	var names []string
	for _, k := range keys[:min(len(keys), mostNear)] {
		names = append(names, k.String())
	}
	text := strings.Join(names, ", ")
	if more := len(keys) - len(names); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// IsPattern reports whether a text stands for several names.
func IsPattern(text string) bool { return strings.ContainsAny(text, "*?") }

// Matching returns what matches a name with * for any letters and ? for one.
func Matching(pattern string) func(string) bool {
	text := strings.NewReplacer(`\*`, ".*", `\?`, ".").Replace(regexp.QuoteMeta(pattern))
	return regexp.MustCompile(`^(?s:` + text + `)$`).MatchString
}

// Namespaces returns the namespaces of those users that are service accounts, each once.
func Namespaces(users []string) (out []string) {
	for _, u := range users {
		if namespace, _, account := authn.ServiceAccountUsername(u); account {
			out = append(out, namespace)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
