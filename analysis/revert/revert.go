// Package revert works out how to take writes of the policy back: how each object that they changed becomes again what it was before,
// and what that undoes besides.
//
//	State, the changes of some writes ─▶ Of ─▶ PolicyRevert: commands for a shell
//
// The package is pure.
package revert

import (
	"cmp"
	"fmt"
	"reflect"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/internal/manifest"
	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/content"
)

// What a revert does to an object. The set is closed.
const (
	Delete   = "delete"   // it was not there before
	Create   = "create"   // it is gone, and is made again as it was
	Update   = "update"   // its rules or subjects are made what they were
	Recreate = "recreate" // it names another role by now, which no update changes: it is deleted and made again
	None     = "none"     // it is as it was before
	Unknown  = "unknown"  // what it was before is not known
	// Aggregated: its rules are filled in by the cluster from other roles.
	Aggregated = "aggregated"
)

// PolicyRevert is how to take a write back: how each object that it changed becomes again what it was before.
type PolicyRevert struct {
	// Text are commands for a shell, with the objects in YAML; empty when nothing can or need be done.
	Text string `json:"text"`
	// Warnings say what would be undone besides, and what cannot be undone.
	Warnings []string         `json:"warnings"`
	Objects  []RevertedObject `json:"objects"` // those that it changed, 100 at most
	More     int              `json:"more"`    // objects beyond those, which Text does not have either
}

// RevertedObject is what a revert does to one object.
type RevertedObject struct {
	Object string `json:"object"` // Kind/name or Kind/namespace/name
	Action string `json:"action"` // delete, create, update, recreate, none, unknown, aggregated
	// Later are writes to the object since, oldest first: reverting undoes them as well.
	Later []LaterWrite `json:"later"`
}

// LaterWrite is a write to an object after those that are taken back.
type LaterWrite struct {
	Time    time.Time `json:"time"`              // by when it was in force
	Verb    string    `json:"verb,omitempty"`    // of the stored request that did it, where there is one
	User    string    `json:"user,omitempty"`    // who made that
	AuditID string    `json:"auditID,omitempty"` // of that
}

// Change is what writes did to one object.
type Change struct {
	Key         rbacindex.Key
	First, Last time.Time // when the first and the last of them were in force
}

// Asks is what has to be looked up, and what is said of the writes.
type Asks struct {
	Cluster string
	Written []string // the writes, in words
	// Later returns the writes to an object after a moment, oldest first.
	Later func(k rbacindex.Key, after time.Time) ([]LaterWrite, error)
	// Metadata returns the labels and annotations that an object had at a moment; known is false where nothing tells.
	Metadata func(k rbacindex.Key, at time.Time) (meta metav1.ObjectMeta, known bool, err error)
}

// mostReverted bounds the objects of a revert.
const mostReverted = 100

// reverting works out how to take writes back.
type reverting struct {
	asks Asks
	st   *state.State
	now  state.View
	out  PolicyRevert

	deletes    []rbacindex.Key
	unfold     []rbacindex.Key // aggregated by now, and not before
	writes     []any
	aggregated bool
	stays      bool // labels and annotations of an object
}

// Of says how to take back what writes did to objects, each of which is named once. Warnings are what is to be said besides.
func Of(st *state.State, changes []Change, asks Asks, warnings ...string) (*PolicyRevert, error) {
	x := reverting{asks: asks, st: st, now: st.RBAC(latest),
		out: PolicyRevert{Warnings: append([]string{}, warnings...), Objects: []RevertedObject{}}}
	if x.out.More = max(0, len(changes)-mostReverted); x.out.More > 0 {
		x.warn("these are the first %d of %d objects", mostReverted, len(changes))
	}
	for _, c := range changes[:min(len(changes), mostReverted)] {
		if err := x.object(c.Key, c.First, c.Last); err != nil {
			return nil, err
		}
	}
	if len(changes) == 0 && len(warnings) == 0 {
		x.warn("it changed no rule, no subject and no role: there is nothing to take back")
	}
	return &x.out, x.text()
}

// latest is later than anything recorded.
var latest = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

func (x *reverting) warn(format string, args ...any) {
	x.out.Warnings = append(x.out.Warnings, fmt.Sprintf(format, args...))
}

// object works out what becomes of one object, that writes changed between two moments.
func (x *reverting) object(k rbacindex.Key, first, last time.Time) error {
	out := RevertedObject{Object: k.String(), Action: None}
	moment := first.Add(-time.Nanosecond)
	before := x.st.RBAC(moment)
	var err error
	if out.Later, err = x.asks.Later(k, last); err != nil {
		return err
	}
	was, existed := before.RBAC.Get(k)
	is, exists := x.now.RBAC.Get(k)
	unsure := x.now.IsUnknown(k)
	switch {
	case before.IsUnknown(k):
		out.Action = Unknown
		x.warn("what %s was before is not known: %s", k, cmp.Or(x.st.Reason(k, moment), "it is not recorded"))
	case !existed && (exists || unsure):
		out.Action = Delete
		x.deletes = append(x.deletes, k)
	case !existed:
	case !exists:
		out.Action = Create
		meta, known, err := x.asks.Metadata(k, moment)
		if err != nil {
			return err
		}
		if !known {
			x.warn("the labels and annotations that %s had are not known", k)
		}
		x.write(k, was, meta)
	case otherRole(was, is):
		out.Action = Recreate
		x.deletes = append(x.deletes, k)
		x.write(k, was, metav1.ObjectMeta{})
	case sameAggregation(was, is):
		out.Action = Aggregated
		x.warn("the rules of %s are filled in by the cluster from other roles: what was written to those is to be reverted", k)
	case unsure || !(&content.Content{Object: was}).SameMeaning(&content.Content{Object: is}):
		out.Action = Update
		x.stays = true
		x.write(k, was, metav1.ObjectMeta{})
		if r, ok := is.(*rbacv1.ClusterRole); ok && r.AggregationRule != nil && was.(*rbacv1.ClusterRole).AggregationRule == nil {
			x.unfold = append(x.unfold, k)
		}
	}
	if unsure {
		x.warn("what %s is now is not known: %s", k, cmp.Or(x.st.Reason(k, latest), "it is not recorded"))
	}
	if n := len(out.Later); n > 0 && out.Action != Unknown && out.Action != Aggregated {
		w := &out.Later[n-1]
		by := ""
		if w.User != "" {
			by = " by " + w.User
		}
		x.warn("%s was changed %s after that, last at %s%s: %s", k, phrase.Number(n, "time"), w.Time.UTC().Format(time.RFC3339), by,
			map[bool]string{true: "it is as it was before", false: "reverting undoes that as well"}[out.Action == None])
	}
	x.out.Objects = append(x.out.Objects, out)
	return nil
}

// otherRole reports whether bindings name different roles.
func otherRole(was, is any) bool {
	_, a, binding := rbacindex.BindingOf(was)
	_, b, _ := rbacindex.BindingOf(is)
	return binding && a != b
}

// sameAggregation reports whether objects are roles whose rules come from the same other roles.
func sameAggregation(was, is any) bool {
	a, ok := was.(*rbacv1.ClusterRole)
	b, also := is.(*rbacv1.ClusterRole)
	return ok && also && a.AggregationRule != nil && reflect.DeepEqual(a.AggregationRule, b.AggregationRule)
}

// write adds an object as it was.
func (x *reverting) write(k rbacindex.Key, was any, meta metav1.ObjectMeta) {
	object := bare(k)
	named := object["metadata"].(map[string]any)
	if len(meta.Labels) > 0 {
		named["labels"] = meta.Labels
	}
	delete(meta.Annotations, kubenames.LastApplied)
	if len(meta.Annotations) > 0 {
		named["annotations"] = meta.Annotations
	}
	if subjects, role, ok := rbacindex.BindingOf(was); ok {
		object["roleRef"], object["subjects"] = role, append([]rbacv1.Subject{}, subjects...)
	}
	if rules, ok := rbacindex.RulesOf(was); ok {
		object["rules"] = append([]rbacv1.PolicyRule{}, rules...)
	}
	if r, ok := was.(*rbacv1.ClusterRole); ok && r.AggregationRule != nil {
		object["aggregationRule"] = r.AggregationRule
		delete(object, "rules")
		x.aggregated = true
	}
	x.writes = append(x.writes, object)
}

// text writes the commands down.
func (x *reverting) text() error {
	if len(x.deletes)+len(x.writes) == 0 {
		return nil
	}
	var w strings.Builder
	for _, write := range x.asks.Written {
		manifest.Comment(&w, "reverts: %s", write)
	}
	manifest.Comment(&w, "in cluster %s: look where kubectl points to first", x.asks.Cluster)
	for _, text := range x.out.Warnings {
		manifest.Comment(&w, "warning: %s", text)
	}
	if x.stays {
		manifest.Comment(&w, "labels and annotations of objects that are there stay as they are")
	}
	if x.aggregated {
		manifest.Comment(&w, "the rules of roles with an aggregationRule are filled in by the cluster itself")
	}
	for _, k := range x.deletes {
		if err := deleteCommand(&w, k); err != nil {
			return err
		}
	}
	for _, k := range x.unfold {
		const patch = `kubectl patch --type=json -p '[{"op":"remove","path":"/aggregationRule"}]' -f -`
		if err := here(&w, patch, bare(k)); err != nil {
			return err
		}
	}
	if len(x.writes) > 0 {
		if err := here(&w, "kubectl apply --server-side --force-conflicts -f -", x.writes...); err != nil {
			return err
		}
	}
	x.out.Text = w.String()
	return nil
}

// bare is an object that is named and no more.
func bare(k rbacindex.Key) map[string]any {
	named := map[string]any{"name": k.Name}
	if k.Namespace != "" {
		named["namespace"] = k.Namespace
	}
	return map[string]any{"apiVersion": rbacv1.SchemeGroupVersion.String(), "kind": k.Kind.String(), "metadata": named}
}

// deleteCommand writes the command that deletes an object. A name that does not print stands in a document, which can escape it.
func deleteCommand(w *strings.Builder, k rbacindex.Key) error {
	if !safe.Printable(k.Name) || !safe.Printable(k.Namespace) {
		return here(w, "kubectl delete --ignore-not-found -f -", bare(k))
	}
	fmt.Fprintf(w, "kubectl delete --ignore-not-found %s\n", phrase.KubectlObject(k.Kind.String(), k.Namespace, k.Name))
	return nil
}

// here writes a command that reads objects. None of their lines can end the document: strings of several lines are escaped.
func here(w *strings.Builder, command string, objects ...any) error {
	fmt.Fprintf(w, "%s <<'EOF'\n", command)
	if err := manifest.Objects(w, objects); err != nil {
		return err
	}
	w.WriteString("EOF\n")
	return nil
}
