package life

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/retrial-io/retrial/test/apiserver/product"
)

// Verdict is what Retrial says of one request.
type Verdict struct {
	AuditID, User, Verb, RequestURI         string
	Verdict, Class, Recorded, Replayed      string
	RecordedReason, Cause, ImpersonatedUser string
	Missing                                 []string
}

// Outcome returns a verdict's name and, behind a slash, its class.
func (v *Verdict) Outcome() string {
	if v.Class == "" {
		return v.Verdict
	}
	return v.Verdict + "/" + v.Class
}

// Judge returns what `retrial evaluate` says of a recording, by audit ID.
func Judge(t testing.TB, in *product.Install, dir string) map[string]*Verdict {
	t.Helper()
	out := in.Offline(t, "evaluate", "--from-empty", "--events", filepath.Join(dir, "audit.jsonl"), "--apiserver-config",
		filepath.Join(dir, "config"), "-o", "jsonl")
	all := map[string]*Verdict{}
	for line := range strings.Lines(out.Out) {
		v := &Verdict{}
		if err := json.Unmarshal([]byte(line), v); err != nil {
			t.Fatal(err)
		}
		if all[v.AuditID] != nil {
			t.Errorf("%s was judged twice", v.AuditID)
		}
		all[v.AuditID] = v
	}
	return all
}

// Accusations counts the findings that say somebody tampered, by rule: on a recording nobody
// tampered with there are none.
func Accusations(t testing.TB, in *product.Install, dir string) map[string]int {
	t.Helper()
	out := in.Offline(t, "findings", "--from-empty", "--events", filepath.Join(dir, "audit.jsonl"), "--apiserver-config",
		filepath.Join(dir, "config"), "-o", "json")
	found := product.Items[struct{ Rule string }](t, out.Out)
	n := map[string]int{}
	for _, f := range found {
		if slices.Contains(accusing, f.Rule) {
			n[f.Rule]++
		}
	}
	return n
}

// accusing are the rules that say a record or a credential is not what it seems.
var accusing = []string{"decision-drift", "credential-forged", "credential-two-identities", "audit-id-reuse", "identity-contradiction",
	"token-two-places"}

// names are what tells a cause from others of its kind: objects, nodes and times.
var names = regexp.MustCompile(`[a-z]+/life-[^ ;,)]+|\b[a-z-]*life-[\w./-]+|node-\d|\d{4}-\d\d-\d\dT\S+|\b[\d.]+(µs|ms|s)\b`)

// Report returns a table of what is not a match, the most frequent first: how often, what, who, where,
// why, and the audit ID of one of them.
func Report(verdicts map[string]*Verdict) string {
	type group struct {
		n       int
		example *Verdict
	}
	groups, outcomes := map[string]*group{}, map[string]int{}
	for _, id := range slices.Sorted(maps.Keys(verdicts)) {
		v := verdicts[id]
		outcomes[v.Verdict]++
		if v.Verdict == "match" || v.Verdict == "not_judged" {
			continue
		}
		key := strings.Join([]string{v.Outcome(), v.Recorded + "→" + v.Replayed, subject(v.User), v.Verb, about(v.RequestURI),
			names.ReplaceAllString(v.Cause, "…")}, " | ")
		if groups[key] == nil {
			groups[key] = &group{example: v}
		}
		groups[key].n++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d requests: %v\n", len(verdicts), outcomes)
	for _, key := range slices.SortedFunc(maps.Keys(groups), func(a, b string) int {
		return cmp.Or(cmp.Compare(groups[b].n, groups[a].n), strings.Compare(a, b))
	}) {
		fmt.Fprintf(&b, "%6d | %s | %s | %s %s\n", groups[key].n, key, groups[key].example.RecordedReason, groups[key].example.AuditID,
			groups[key].example.RequestURI)
	}
	return b.String()
}

// subject returns a user without what tells it from others of its kind.
func subject(user string) string {
	if rest, found := strings.CutPrefix(user, "system:serviceaccount:"); found {
		if namespace, name, _ := strings.Cut(rest, ":"); strings.HasPrefix(namespace, "life-") {
			return "system:serviceaccount:*:" + name
		}
	}
	name, _, _ := strings.Cut(user, "-life-")
	return name
}

// about returns what a path is about, without names.
func about(uri string) string {
	path, _, _ := strings.Cut(uri, "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if parts[0] == "api" && len(parts) > 2 {
		parts = parts[2:]
	} else if parts[0] == "apis" && len(parts) > 3 {
		parts = parts[3:]
	}
	if parts[0] == "namespaces" && len(parts) > 2 {
		parts = parts[2:]
	}
	if len(parts) > 2 {
		return parts[0] + "/" + parts[2]
	}
	return parts[0]
}
