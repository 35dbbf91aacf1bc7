package query

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/analysis/revert"
	"github.com/retrial-io/retrial/query/past"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage/queries"
)

// revertOf says how to take writes back, all of which carry one audit ID.
func (a *Service) revertOf(ctx context.Context, cluster string, st *state.State, list []PolicyChange) (*PolicyRevert, error) {
	if noPolicy(st) {
		return &PolicyRevert{Objects: []revert.RevertedObject{},
			Warnings: []string{"no policy of the cluster is known: what the objects were before is not known either"}}, nil
	}
	var warnings []string
	asks := revert.Asks{Cluster: cluster,
		Later: func(k rbacindex.Key, after time.Time) ([]revert.LaterWrite, error) {
			return a.later(ctx, cluster, st, k, after)
		},
		Metadata: func(k rbacindex.Key, at time.Time) (metav1.ObjectMeta, bool, error) {
			return a.metadataOf(ctx, cluster, st, k, at)
		}}
	changes := map[rbacindex.Key]revert.Change{}
	for i := range list {
		w := &list[i]
		asks.Written = append(asks.Written, fmt.Sprintf("%s %s by %s at %s", w.Verb, w.Object, cmp.Or(w.User, "(no stored request)"),
			w.Time.UTC().Format(time.RFC3339Nano)))
		if len(w.done) == 0 && w.Effect == EffectUnknown {
			warnings = append(warnings, fmt.Sprintf("what %s was before is not known, or whether it was written", w.Object))
		}
		for _, c := range w.done {
			x, ok := changes[c.key]
			if !ok {
				x = revert.Change{Key: c.key, First: c.v.NotAfter, Last: c.v.NotAfter}
			}
			if c.v.NotAfter.Before(x.First) {
				x.First = c.v.NotAfter
			} else if c.v.NotAfter.After(x.Last) {
				x.Last = c.v.NotAfter
			}
			changes[c.key] = x
		}
	}
	sorted := slices.SortedFunc(maps.Values(changes), func(x, y revert.Change) int { return x.Key.Compare(y.Key) })
	return revert.Of(st, sorted, asks, warnings...)
}

// later returns the writes to an object after a moment, and who made them.
func (a *Service) later(ctx context.Context, cluster string, st *state.State, k rbacindex.Key,
	after time.Time) ([]revert.LaterWrite, error) {
	var writes []PolicyWrite
	traced := map[int]queries.Written{}
	changes := st.Changes(after, Latest)
	for _, v := range changes.Versions(k) {
		if of, ok := writtenOf(&v); ok && len(traced) < mostTraced {
			traced[len(writes)] = of
		}
		writes = append(writes, writeOf(k, &v))
	}
	err := a.trace(ctx, cluster, writes, traced)
	out := []revert.LaterWrite{}
	for _, w := range writes {
		out = append(out, revert.LaterWrite{Time: w.NotAfter, Verb: w.Verb, User: w.User, AuditID: w.AuditID})
	}
	return out, err
}

// metadataOf returns the labels and annotations of the version of an object at a moment.
func (a *Service) metadataOf(ctx context.Context, cluster string, st *state.State, k rbacindex.Key,
	at time.Time) (meta metav1.ObjectMeta, known bool, err error) {
	resource := kept.ResourceOfRBAC(k.Kind).String()
	text, err := a.Store.NewestObject(ctx, cluster, resource, k.Namespace, k.Name)
	if err != nil || text == nil {
		return meta, false, err
	}
	o, err := observe.Decode(text)
	if err != nil {
		return meta, false, nil //nolint:nilerr // as in the replay: what cannot be read is not known
	}
	if v, _ := st.Version(resource, k.Namespace, k.Name, at); v.UID != o.UID {
		return meta, false, nil
	}
	all := past.Metadata{}
	all.Add(&o)
	return all[k], true, nil
}
