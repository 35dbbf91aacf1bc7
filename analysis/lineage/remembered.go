package lineage

import (
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"
)

// remembered is a map that forgets: it keeps between half of its limit and its limit, the most
// recently used.
type remembered[V any] struct {
	young, old map[string]V
	half       int
	forgotten  int64
}

func remember[V any](limit int) remembered[V] {
	return remembered[V]{young: map[string]V{}, half: max(limit/2, 1)}
}

func (r *remembered[V]) get(key string) (V, bool) {
	if v, ok := r.young[key]; ok {
		return v, true
	}
	v, ok := r.old[key]
	if ok {
		delete(r.old, key)
		r.put(strings.Clone(key), v)
	}
	return v, ok
}

func (r *remembered[V]) put(key string, v V) {
	if len(r.young) >= r.half {
		r.forgotten += int64(len(r.old))
		r.old, r.young = r.young, make(map[string]V, r.half)
	}
	r.young[key] = v
}

// peek is get without counting as a use; safe for concurrent use.
func (r *remembered[V]) peek(key string) (V, bool) {
	if v, ok := r.young[key]; ok {
		return v, true
	}
	v, ok := r.old[key]
	return v, ok
}

// visit calls f for everything remembered, in no order.
func (r *remembered[V]) visit(f func(key string, v V)) {
	for k, v := range r.young {
		f(k, v)
	}
	for k, v := range r.old {
		f(k, v)
	}
}

func digestText(s string) uint64 { return xxhash.Sum64String(s) }

// digestTarget hashes a request URI to compare it with others; the order of parameters does not
// count, since it changes on the way through an aggregator.
func digestTarget(uri string) uint64 {
	path, query, has := strings.Cut(uri, "?")
	if !has || !strings.Contains(query, "&") {
		return xxhash.Sum64String(uri)
	}
	parts := strings.Split(query, "&")
	slices.Sort(parts)
	return xxhash.Sum64String(path + "?" + strings.Join(parts, "&"))
}

// SameTarget reports whether two request URIs belong to one request on its two servers.
func SameTarget(a, b string) bool { return digestTarget(a) == digestTarget(b) }

func withoutQuery(uri string) string {
	path, _, _ := strings.Cut(uri, "?")
	return path
}

func joined(groups []string) string {
	if slices.IsSorted(groups) {
		return strings.Join(groups, ",")
	}
	sorted := slices.Clone(groups)
	slices.Sort(sorted)
	return strings.Join(sorted, ",")
}

func widen(first, last *time.Time, at time.Time) {
	*first, *last = earlier(*first, at), later(*last, at)
}

func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
