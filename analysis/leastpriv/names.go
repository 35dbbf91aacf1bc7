package leastpriv

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/verdict"
)

const (
	// maxNames is how many names of one verb and resource a rule lists; beyond it, names are left
	// open.
	maxNames = 8
	// mostNames bounds lists that are kept whatever their length, so that etcd accepts the object.
	mostNames = 256
)

// keepNames decides whether a grant is limited to the names asked for. If open names would grant
// something different in kind (secrets, tokens, namespaces, impersonation, what the hidden checks
// guard) they are always kept; otherwise if they are few and none looks generated, because a
// generated name differs next time.
func (g *generator) keepNames(k *pair, set map[string]bool) bool {
	if len(set) == 0 || len(set) > mostNames {
		return false
	}
	for name := range set {
		if verdict.Folded(name) {
			return false // it stands for several
		}
	}
	if g.exact || alwaysNamed(k) {
		return true
	}
	if len(set) > maxNames {
		return false
	}
	for name := range set {
		if generated(name) {
			return false
		}
	}
	return true
}

func alwaysNamed(k *pair) bool {
	if slices.Contains([]string{"bind", "escalate", "approve", "sign", "attest", "impersonate"}, k.verb) || strings.HasPrefix(k.verb,
		"impersonate:") {
		return true
	}
	return k.group == "" && slices.Contains([]string{"secrets", "serviceaccounts/token", "namespaces", "namespaces/status",
		"namespaces/finalize"}, k.resource)
}

// generated reports whether a name looks made by a machine: its last part, after a dash or a dot,
// is a suffix in the form of generateName or of a ReplicaSet's hash, a stretch of hexadecimal
// digits, or a number of six digits or more (a time).
func generated(name string) bool {
	last := name[strings.LastIndexAny(name, "-.")+1:]
	if len(last) == len(name) && len(name) < 16 {
		return false // one word is a name
	}
	digits := strings.Count(strings.Map(func(r rune) rune {
		if r >= '0' && r <= '9' {
			return '0'
		}
		return r
	}, last), "0")
	only := func(alphabet string) bool { return strings.Trim(last, alphabet) == "" }
	switch {
	case len(last) >= 6 && digits == len(last):
		return true
	case len(last) >= 8 && digits > 0 && only("0123456789abcdef"):
		return true
	case len(last) == 5 && only("bcdfghjklmnpqrstvwxz2456789"):
		return true
	case len(last) > 5 && len(last) <= 10 && digits > 0 && only("bcdfghjklmnpqrstvwxz2456789"):
		return true
	}
	return false
}

// objectName names a subject's objects: readable, valid as a DNS label, deterministic, and made
// unique by a hash of what was cut or replaced. salt avoids a name that is already in use.
func objectName(user string, salt int) string {
	text := strings.TrimPrefix(user, kubenames.ServiceAccountPrefix)
	var b strings.Builder
	for _, r := range strings.ToLower(text) {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			b.WriteRune(r)
		} else if s := b.String(); s != "" && s[len(s)-1] != '-' {
			b.WriteByte('-')
		}
	}
	short := b.String()
	short = strings.Trim(short[:min(len(short), 40)], "-")
	short = cmp.Or(short, "subject")
	sum := sha256.Sum256([]byte(user + strings.Repeat("\x00", salt)))
	return "retrial-" + short + "-" + hex.EncodeToString(sum[:4])
}

// subjectOf returns the subject that names a user in a binding.
func subjectOf(user string) rbacv1.Subject {
	if namespace, name, ok := authn.ServiceAccountUsername(user); ok {
		return rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: name}
	}
	return rbacv1.Subject{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: user}
}
