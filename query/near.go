package query

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/retrial-io/retrial/internal/near"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/query/known"
	"github.com/retrial-io/retrial/rbacindex"
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
	names, err := a.Store.NearSubjects(ctx, cluster, name, nearCandidates)
	if err != nil {
		return nil, err
	}
	if policy != nil {
		names = append(names, known.Users(policy)...)
	}
	return NearSubjects(name, names, mostNear), nil
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

// NearSubjects returns up to most of the subjects whose names resemble a name.
func NearSubjects(name string, subjects []string, most int) []string {
	return near.Subjects(name, subjects, most)
}

// Nearest returns up to most of the words that resemble one, the closest first.
func Nearest(word string, words []string, most int) []string { return near.Words(word, words, most) }
