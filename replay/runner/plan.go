package runner

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// maxFilters bounds the lookups one correction makes per cluster; beyond it they are merged
// into one that covers them all. Judging a row again that was right costs time, never truth.
const maxFilters = 8

// maxNames and maxNameBytes bound each list of users, groups and namespaces of one lookup,
// which travel in a URL; beyond them the lookup does not ask for names. A binding may have
// thousands of subjects, and a role thousands of bindings.
const (
	maxNames     = 256
	maxNameBytes = 32 << 10
)

// bounded returns the filter without the restrictions that are too long to be asked for.
func bounded(f verdict.AffectedFilter) verdict.AffectedFilter {
	long := func(list []string) bool {
		bytes := 0
		for _, s := range list {
			bytes += len(s)
		}
		return len(list) > maxNames || bytes > maxNameBytes
	}
	if long(f.Users) || long(f.Groups) {
		f.Users, f.Groups = nil, nil
	}
	if long(f.Namespaces) {
		f.Namespaces = nil
	}
	if long(f.Credentials) {
		f.Credentials = nil
	}
	return f
}

// plan merges the changes into few lookups, by cluster.
func plan(found []change) []verdict.AffectedFilter {
	byCluster := map[string][]verdict.AffectedFilter{}
	for _, c := range found {
		byCluster[c.cluster] = append(byCluster[c.cluster], c.filters...)
	}
	var out []verdict.AffectedFilter
	for _, cluster := range slices.Sorted(maps.Keys(byCluster)) {
		out = append(out, mergeFilters(byCluster[cluster])...)
	}
	return out
}

// mergeFilters reduces the filters of one cluster to at most maxFilters that cover them, and
// as many for credentials: those are many at times, each of one name, and never worth a look
// at what others did.
func mergeFilters(filters []verdict.AffectedFilter) []verdict.AffectedFilter {
	byCredential := func(f verdict.AffectedFilter) bool { return len(f.Credentials) > 0 }
	merged := mergeCredentials(slices.DeleteFunc(slices.Clone(filters), func(f verdict.AffectedFilter) bool { return !byCredential(f) }))
	return append(mergeSubjects(slices.DeleteFunc(slices.Clone(filters), byCredential)), merged...)
}

// mergeCredentials puts the names of filters by credential together, as many as one lookup
// may have.
func mergeCredentials(filters []verdict.AffectedFilter) (merged []verdict.AffectedFilter) {
	for _, f := range filters {
		if n := len(merged); n > 0 {
			if h := hull(merged[n-1], f); len(h.Credentials) > 0 {
				merged[n-1] = h
				continue
			}
		}
		merged = append(merged, f)
	}
	return atMost(merged)
}

func mergeSubjects(filters []verdict.AffectedFilter) []verdict.AffectedFilter {
	bySubject := map[string]verdict.AffectedFilter{}
	for _, f := range filters {
		k := subjectKey(f)
		if g, ok := bySubject[k]; ok {
			f = hull(g, f)
		}
		bySubject[k] = f
	}
	merged := make([]verdict.AffectedFilter, 0, len(bySubject))
	for _, k := range slices.Sorted(maps.Keys(bySubject)) {
		merged = append(merged, bySubject[k])
	}
	if len(merged) <= maxFilters {
		slices.SortStableFunc(merged, func(a, b verdict.AffectedFilter) int { return a.From.Compare(b.From) })
	}
	return atMost(merged)
}

// atMost merges the filters into one if they are too many.
func atMost(merged []verdict.AffectedFilter) []verdict.AffectedFilter {
	if len(merged) <= maxFilters {
		return merged
	}
	all := merged[0]
	for _, f := range merged[1:] {
		all = hull(all, f)
	}
	return []verdict.AffectedFilter{all}
}

// subjectKey is equal for filters that differ in their times only.
func subjectKey(f verdict.AffectedFilter) string {
	return strings.Join([]string{
		strings.Join(f.Users, "\x00"), strings.Join(f.Groups, "\x00"), strings.Join(f.Namespaces, "\x00"),
	}, "\x01")
}

// hull returns a filter that selects whatever a or b selects.
func hull(a, b verdict.AffectedFilter) verdict.AffectedFilter {
	h := verdict.AffectedFilter{Cluster: a.Cluster, From: a.From, To: a.To, Ended: a.Ended}
	if b.From.Before(h.From) {
		h.From = b.From
	}
	if b.Ended.Before(a.Ended) { // the zero time is before all others
		h.Ended = b.Ended
	}
	if h.To.IsZero() || b.To.IsZero() {
		h.To = time.Time{}
	} else if b.To.After(h.To) {
		h.To = b.To
	}
	limited := func(f verdict.AffectedFilter) bool { return len(f.Users)+len(f.Groups) > 0 }
	if limited(a) && limited(b) {
		h.Users = union(a.Users, b.Users)
		h.Groups = union(a.Groups, b.Groups)
	}
	if len(a.Namespaces) > 0 && len(b.Namespaces) > 0 {
		h.Namespaces = union(a.Namespaces, b.Namespaces)
	}
	if len(a.Credentials) > 0 && len(b.Credentials) > 0 {
		h.Credentials = union(a.Credentials, b.Credentials)
	}
	return bounded(h)
}

// union returns the sorted union of two lists.
func union[T cmp.Ordered](a, b []T) []T {
	u := slices.Concat(a, b)
	slices.Sort(u)
	return slices.Compact(u)
}

// issued returns since when credentials that observations tell of can have been used, the zero
// time when that is not known.
func issued(obs []observe.Observation) (since time.Time) {
	for i := range obs {
		switch at := obs[i].NotBefore; {
		case at.IsZero():
			return at
		case since.IsZero() || at.Before(since):
			since = at
		}
	}
	return since
}

// changeOf turns what a policy record changed into a change to correct for; false if it
// changed nothing. Credentials it tells of were issued at the given time or later: that one
// was issued says nothing about what others did before.
func (r *Runner) changeOf(cluster string, partition int32, offset int64, issued time.Time, effects []state.Effect) (change, bool) {
	if len(effects) == 0 {
		return change{}, false
	}
	filters := make([]verdict.AffectedFilter, 0, len(effects))
	for _, e := range effects {
		s := e.Subjects()
		f := verdict.AffectedFilter{Cluster: cluster, From: e.From, To: e.To, Users: s.Users, Groups: s.Groups, Namespaces: s.Namespaces}
		switch {
		case e.Credential != "":
			f.Users, f.Groups, f.Namespaces, f.Credentials = nil, nil, nil, []string{e.Credential}
			if f.From.IsZero() {
				f.From = issued
			}
		case !s.All && len(s.Users)+len(s.Groups) == 0:
			continue // a binding without subjects, a role nobody was bound to
		case !s.AllNamespaces && len(s.Namespaces) == 0:
			continue
		}
		if !f.From.IsZero() {
			f.Ended = f.From.Add(-r.cfg.Lag)
			f.From = f.Ended.Add(-r.cfg.LongestRequest)
		}
		if !f.To.IsZero() {
			f.To = f.To.Add(r.cfg.Lag)
		}
		filters = append(filters, bounded(f))
	}
	if len(filters) == 0 {
		return change{}, false
	}
	return change{partition: partition, offset: offset, cluster: cluster, filters: mergeFilters(filters)}, true
}
