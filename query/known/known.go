// Package known says which users and groups a policy names, and whether a name is likely a mistake.
package known

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/internal/near"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/rbacindex"
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
