package query

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/internal/near"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
)

const (
	// mostNear bounds the names that an answer suggests.
	mostNear = 3
	// nearCandidates bounds what a store is asked for, of which the nearest are chosen.
	nearCandidates = 20
)

// near returns the subjects that somebody may have meant by a name: of those who made requests, and of those that bindings name.
func (a *Service) near(ctx context.Context, cluster, name string, policy *rbacindex.Snapshot) ([]string, error) {
	known, err := a.Store.NearSubjects(ctx, cluster, name, nearCandidates)
	if err != nil {
		return nil, err
	}
	if policy != nil {
		known = append(known, boundUsers(policy)...)
	}
	return NearSubjects(name, known, mostNear), nil
}

// unbound tells of a group that no binding of some policies names: a text, "" if one of them does, and whether it is to be taken for a
// mistake. It is if groups are called much like it, or if nothing could be answered of it, as being in it gives nothing; but not if
// Kubernetes has the group.
func unbound(group string, nothing bool, policies ...*rbacindex.Snapshot) (text string, mistaken bool) {
	var known []string
	for _, policy := range policies {
		if policy.Names(group, true) {
			return "", false
		}
		known = append(known, boundGroups(policy)...)
	}
	if group == groupMasters {
		return "", false
	}
	text = fmt.Sprintf("no binding names the group %q", group)
	if slices.Contains(ownGroups, group) || strings.HasPrefix(group, kubenames.ServiceAccountsOf("")) {
		return text, false
	}
	names := NearSubjects(group, append(known, ownGroups...), mostNear)
	return text + didYouMean(quoted(names)), len(names) > 0 || nothing && !kubenames.Own(group)
}

// ownGroups are groups that Kubernetes gives users without a binding that names them.
var ownGroups = []string{kubenames.Authenticated, kubenames.Masters, kubenames.Nodes, kubenames.ServiceAccounts,
	kubenames.Unauthenticated, "system:bootstrappers", "system:monitoring"}

// boundGroups returns the groups that bindings name.
func boundGroups(policy *rbacindex.Snapshot) (groups []string) {
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

// noNamespace tells of a namespace that certainly was not there at a moment, "" if it may have been. One that is called much like another
// is taken for misspelt.
func (a *Service) noNamespace(ctx context.Context, cluster, name string, policy *rbacindex.Snapshot, at time.Time) (string, error) {
	if name == "" {
		return "", nil
	}
	st, err := a.Replay.State(ctx, cluster, orLatest(at))
	if err != nil || st == nil {
		return "", err
	}
	if _, there := st.Version(kept.Namespaces, "", name, orLatest(at)); there != state.Absent {
		return "", nil
	}
	known := []string{"default", "kube-node-lease", "kube-public", "kube-system"}
	policy.All(func(k rbacindex.Key, _ any) bool {
		known = append(known, k.Namespace)
		return true
	})
	accounts, _ := st.ServiceAccounts(orLatest(at))
	for _, account := range accounts {
		known = append(known, account.Namespace)
	}
	slices.Sort(known)
	known = slices.DeleteFunc(slices.Compact(known), func(known string) bool { return known == "" })
	if slices.Contains(known, name) {
		return "", nil
	}
	text := fmt.Sprintf("namespace %s does not exist", name)
	if names := Nearest(name, known, mostNear); len(names) > 0 {
		return "", none("%s%s", text, didYouMean(names))
	}
	return text, nil
}

// didYouMean words what may have been meant, as the end of a sentence; it is empty without any.
func didYouMean(near []string) string { return phrase.DidYouMean("; ", near) }

// quoted returns names that anybody may have chosen as words of a sentence.
func quoted(names []string) []string {
	out := make([]string, len(names))
	for i, n := range names {
		out[i] = strconv.Quote(n)
	}
	return out
}

// boundUsers returns the users and service accounts that bindings name.
func boundUsers(policy *rbacindex.Snapshot) (users []string) {
	policy.All(func(k rbacindex.Key, object any) bool {
		subjects, _, _ := rbacindex.BindingOf(object)
		for _, s := range subjects {
			switch s.Kind {
			case rbacv1.UserKind:
				users = append(users, s.Name)
			case rbacv1.ServiceAccountKind:
				users = append(users, authn.PrefixServiceAccount+cmp.Or(s.Namespace, k.Namespace)+":"+s.Name)
			}
		}
		return true
	})
	return users
}

// NearSubjects returns up to most of the subjects whose names resemble a name.
func NearSubjects(name string, subjects []string, most int) []string {
	return near.Subjects(name, subjects, most)
}

// Nearest returns up to most of the words that resemble one, the closest first.
func Nearest(word string, words []string, most int) []string { return near.Words(word, words, most) }
