package codec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/verdict"
)

// longestPath is how many bytes of a non-resource path tell accesses apart; the rest folds to "*".
const longestPath = 128

// FoldName returns the name an access is counted under: the object's name with its generated part replaced by "*". Folding looks at the
// name alone, never at how many names there are, so that a row and the row that takes it back always fold alike and a rebuild from scratch
// gives the same rollups.
//
// Generated are: a random suffix of five characters from Kubernetes' own alphabet (pods, generateName), with the pod template hash before
// it; and an identifier of 32 or more hexadecimal digits, dashes allowed.
func FoldName(name string) string {
	base, suffix, ok := cutLast(name, '-')
	if ok && len(suffix) == 5 && randomSuffix(suffix) {
		if b, hash, ok := cutLast(base, '-'); ok && len(hash) >= 8 && len(hash) <= 10 && randomSuffix(hash) {
			base = b
		}
		return base + "-*"
	}
	if digits := trailingHex(name); digits < len(name) {
		return name[:digits] + "*"
	}
	return name
}

// FoldPath returns the path an access is counted under.
func FoldPath(path string) string {
	if len(path) <= longestPath {
		return path
	}
	return path[:longestPath] + "*"
}

func cutLast(s string, sep byte) (before, after string, ok bool) {
	i := strings.LastIndexByte(s, sep)
	if i <= 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// randomSuffix reports whether s has only characters Kubernetes generates names from. There
// are not vowels among them, so that words are hardly ever taken for generated.
func randomSuffix(s string) bool {
	for i := range len(s) {
		if strings.IndexByte("bcdfghjklmnpqrstvwxz2456789", s[i]) < 0 {
			return false
		}
	}
	return true
}

// trailingHex returns where a trailing run of at least 32 hexadecimal digits (dashes between them allowed) begins, or len(s).
func trailingHex(s string) int {
	digits, start := 0, len(s)
	for i := len(s) - 1; i >= 0; i-- {
		c := s[i]
		switch {
		case c >= '0' && c <= '9', c >= 'a' && c <= 'f':
			digits++
			start = i
		case c == '-' && digits > 0:
		default:
			i = 0 // anything else ends the run
		}
	}
	if digits < 32 {
		return len(s)
	}
	return start
}

// GroupSet returns the key of a set of groups: the same for any order and repetition.
func GroupSet(groups []string) uint64 {
	var sum uint64
	once := func(g string) { sum += xxhash.Sum64String(g)*0x9E3779B97F4A7C15 + 1 }
	if len(groups) > manyGroups {
		seen := make(map[string]bool, len(groups))
		for _, g := range groups {
			if !seen[g] {
				seen[g] = true
				once(g)
			}
		}
		return sum
	}
	for i, g := range groups {
		if !slices.Contains(groups[:i], g) {
			once(g)
		}
	}
	return sum
}

// manyGroups is the number of groups up to which comparing each with each is quicker than a
// map. A client that may impersonate chooses how many there are.
const manyGroups = 64

// hasher hashes fields, each with its length, so that no two field lists run together.
type hasher struct {
	d     xxhash.Digest
	buf   [8]byte
	notes []byte // scratch
}

func (h *hasher) text(s string) {
	h.number(uint64(len(s)))
	_, _ = h.d.WriteString(s) // a hash does not fail
}

func (h *hasher) number(n uint64) {
	for i := range h.buf {
		h.buf[i] = byte(n >> (8 * i))
	}
	_, _ = h.d.Write(h.buf[:])
}

// note hashes a text, marked by its kind.
func (h *hasher) note(kind byte, s string) {
	h.notes = appendNote(h.notes[:0], kind, s)
	_, _ = h.d.Write(h.notes)
}

// appendNote appends a text with its kind and its length, so that no two lists run together.
func appendNote(b []byte, kind byte, s string) []byte {
	b = append(b, kind)
	b = strconv.AppendInt(b, int64(len(s)), 10)
	return append(append(b, ':'), s...)
}

// accessKey returns the key of an access.
func accessKey(h *hasher, subject string, groups uint64, a *verdict.Attributes, name, path string) uint64 {
	h.d.Reset()
	h.text(subject)
	h.number(groups)
	for _, s := range [...]string{a.Verb, a.APIGroup, a.Resource, a.Subresource, a.Namespace, name, path} {
		h.text(s)
	}
	return h.d.Sum64()
}

// encodeGrant writes a grant as the JSON array the grants columns hold. The reason is left
// out when it is the one the apiserver derives from the rest.
func encodeGrant(g *verdict.Grant) (string, error) {
	fields := []any{g.BindingKind, g.BindingNamespace, g.Binding, g.RoleKind, g.Role, g.SubjectKind, g.SubjectNamespace, g.Subject, g.Rule}
	if g.Reason != grantReason(g) {
		fields = append(fields, g.Reason)
	}
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(fields); err != nil {
		return "", fmt.Errorf("encode grant %s: %w", g.Binding, err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// plainGrant reads what encodeGrant wrote of a grant without a reason of its own and without
// anything that is escaped, which is nearly every one.
func plainGrant(s string) (g verdict.Grant, ok bool) {
	rest, ok := strings.CutPrefix(s, "[")
	if !ok || strings.IndexByte(s, '\\') >= 0 {
		return g, false
	}
	for _, to := range [...]*string{&g.BindingKind, &g.BindingNamespace, &g.Binding, &g.RoleKind, &g.Role, &g.SubjectKind,
		&g.SubjectNamespace, &g.Subject} {
		if rest, ok = strings.CutPrefix(rest, `"`); !ok {
			return g, false
		}
		if *to, rest, ok = strings.Cut(rest, `",`); !ok || strings.IndexByte(*to, '"') >= 0 {
			return g, false
		}
	}
	if rest, ok = strings.CutSuffix(rest, "]"); !ok {
		return g, false
	}
	n, err := strconv.Atoi(rest)
	g.Rule = n
	g.Reason = grantReason(&g)
	return g, err == nil
}

// DecodeGrant reads what encodeGrant wrote.
func DecodeGrant(s string) (verdict.Grant, error) {
	if g, ok := plainGrant(s); ok {
		return g, nil
	}
	var g verdict.Grant
	to := []any{&g.BindingKind, &g.BindingNamespace, &g.Binding, &g.RoleKind, &g.Role, &g.SubjectKind, &g.SubjectNamespace, &g.Subject,
		&g.Rule, &g.Reason}
	whole, err := decodeMembers("grant", s, to)
	if !whole {
		g.Reason = grantReason(&g)
	}
	return g, err
}

// decodeMembers reads a JSON array, of which the last member may be left out; whole tells whether it is there.
func decodeMembers(what, text string, to []any) (whole bool, err error) {
	var members []json.RawMessage
	if err := json.Unmarshal([]byte(text), &members); err != nil {
		return false, fmt.Errorf("decode %s %q: %w", what, text, err)
	}
	if len(members) < len(to)-1 || len(members) > len(to) {
		return false, fmt.Errorf("decode %s %q: %d members", what, text, len(members))
	}
	for i := range members {
		if err := json.Unmarshal(members[i], to[i]); err != nil {
			return false, fmt.Errorf("decode %s %q: member %d: %w", what, text, i+1, err)
		}
	}
	return len(members) == len(to), nil
}

// grantReason is what the RBAC authorizer of the apiserver prints for a grant (k8s.io/kubernetes plugin/pkg/auth/authorizer/rbac,
// clusterRoleBindingDescriber and roleBindingDescriber).
func grantReason(g *verdict.Grant) string {
	binding := g.Binding
	if g.BindingKind == "RoleBinding" {
		binding += "/" + g.BindingNamespace
	}
	subject := g.Subject
	if g.SubjectKind == "ServiceAccount" {
		subject += "/" + g.SubjectNamespace
	}
	return fmt.Sprintf("RBAC: allowed by %s %q of %s %q to %s %q", g.BindingKind, binding, g.RoleKind, g.Role, g.SubjectKind, subject)
}

// Day returns the days since 1970 of t, clamped to what a Date column holds.
func Day(t time.Time) uint16 {
	return uint16(min(max(t.Unix()/86400, 0), 1<<16-1))
}

// Minute returns the start of t's minute in seconds since 1970, clamped to what a DateTime column holds.
func Minute(t time.Time) uint32 {
	return uint32(min(max(t.Unix(), 0), 1<<32-60) / 60 * 60)
}
