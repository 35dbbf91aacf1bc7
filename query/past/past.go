// Package past reads what subjects of a cluster did, for suggestions, and keeps it for a while.
//
//	Rows (a store, or a log in memory) ──▶ Past: what was recorded, distinct requests, metadata of the policy
//	                                         └──▶ Keeper: one a cluster, of everything that is stored
//
// What is kept was read at a moment, which answers say. The policy is never kept: what is suggested of an older past is right for today's
// roles, and lacks only what was used since.
package past

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/queries"
)

// Rows are read for a Past; query.Rows has what they mean.
type Rows interface {
	Recording(ctx context.Context, cluster string, from, to time.Time) (queries.Recording, error)
	History(ctx context.Context, cluster string, from, to time.Time, subjects []string, visit func(codec.Alike) error) error
	NewestPolicy(ctx context.Context, cluster string, resources []string, visit func(observation []byte) error) error
}

// Past is what was recorded of a cluster in a range. It may be used by several goroutines, and is not changed.
type Past struct {
	Recorded  queries.Recording
	Collector *leastpriv.Collector // what subjects did; empty if nothing was recorded
	Read      time.Time            // when it was read, by the clock of a Keeper
	metas     Metadata

	mu      sync.Mutex
	answers map[string]answer
}

// answer is one that holds while the policy is the same.
type answer struct {
	policy *rbacindex.Snapshot
	value  any
}

// Answer returns what a key stands for by a policy, made once: it is shared, and must not be changed. Errors are not kept.
func (p *Past) Answer(key string, policy *rbacindex.Snapshot, make func() (any, error)) (any, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if have, ok := p.answers[key]; ok && have.policy == policy {
		return have.value, nil
	}
	value, err := make()
	if err == nil {
		p.answers[key] = answer{policy, value}
	}
	return value, err
}

// Read reads the past of subjects, or of all if none is named; zero bounds leave the range open.
func Read(ctx context.Context, rows Rows, cluster string, from, to time.Time, subjects []string) (*Past, error) {
	recorded, err := rows.Recording(ctx, cluster, from, to)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what failed
	}
	p := &Past{Recorded: recorded, answers: map[string]answer{}, Collector: leastpriv.NewCollector()}
	if recorded.Requests == 0 {
		return p, nil
	}
	if p.Collector, err = Collect(ctx, rows, cluster, from, to, subjects); err != nil {
		return nil, err
	}
	p.metas, err = ReadMetadata(ctx, rows, cluster)
	return p, err
}

// ReadMetadata reads the metadata of every object of the newest policy.
func ReadMetadata(ctx context.Context, rows Rows, cluster string) (Metadata, error) {
	m := Metadata{}
	return m, rows.NewestPolicy(ctx, cluster, policyResources, func(text []byte) error { //nolint:wrapcheck // it says what failed
		if o, err := observe.Decode(text); err == nil { // as in the replay: what cannot be read stays unknown
			m.Add(&o)
		}
		return nil
	})
}

// Collect reads what subjects, or all if none is named, did in a range.
func Collect(ctx context.Context, rows Rows, cluster string, from, to time.Time, subjects []string) (*leastpriv.Collector, error) {
	c := leastpriv.NewCollector()
	return c, rows.History(ctx, cluster, from, to, subjects, func(r codec.Alike) error { //nolint:wrapcheck // it says what failed
		c.ObserveMany(r.Event, r.Verdict, leastpriv.Count{Requests: r.Requests, First: r.First, Last: r.Last})
		return nil
	})
}

// policyResources are the resources of the objects of a policy.
var policyResources = []string{ //nolint:gochecknoglobals // constant table
	kept.ClusterRoleBindings, kept.ClusterRoles, kept.RoleBindings, kept.Roles,
}

// Metadata has labels, annotations and owners of RBAC objects, which the state does not keep: for the rollback, and to name who writes
// them.
type Metadata map[rbacindex.Key]metav1.ObjectMeta

// Add takes the metadata of an observation in place of an earlier one's.
func (m Metadata) Add(o *observe.Observation) {
	kind := kept.ResourceOf(o.Resource).RBACKind()
	if kind == 0 || len(o.Object) == 0 {
		return
	}
	var object struct {
		Metadata metav1.ObjectMeta `json:"metadata"`
	}
	if json.Unmarshal(o.Object, &object) == nil {
		m[rbacindex.Key{Kind: kind, Namespace: strings.Clone(o.Namespace), Name: strings.Clone(o.Name)}] =
			metav1.ObjectMeta{Labels: object.Metadata.Labels, Annotations: object.Metadata.Annotations,
				OwnerReferences: object.Metadata.OwnerReferences}
	}
}

// Metadata returns that of an object of the newest policy.
func (p *Past) Metadata(k rbacindex.Key) metav1.ObjectMeta { return p.metas[k] }

// Recording returns what was recorded in the form of suggestions.
func (p *Past) Recording() leastpriv.Recording {
	r := &p.Recorded
	out := leastpriv.Recording{From: r.First, To: r.Last, Requests: r.Requests, Unjudged: map[string]int64{}, Truncated: r.Truncated,
		DeadLetters: r.DeadLetters, Dropped: r.Dropped}
	for _, c := range r.Classes {
		switch c.Outcome {
		case "match", "drift", "ambiguous":
			out.Judged += c.Requests
		}
		if c.Outcome != "match" {
			out.Unjudged[strings.TrimSpace(c.Outcome+" "+c.Class)] += c.Requests
		}
	}
	return out
}

// Bounds of what is kept.
const (
	Fresh    = 15 * time.Minute // how old a kept past may be
	mostKept = 8                // clusters
)

// Keeper keeps the past of clusters. The zero value keeps nothing until it is asked.
type Keeper struct {
	mu   sync.Mutex
	kept map[string]*keeping
}

// keeping is the past of one cluster, which one at a time reads.
type keeping struct {
	turn  chan struct{} // has an element while nobody reads
	past  *Past         // nil: it was not read yet
	asked time.Time
}

// Past returns everything that is stored of a cluster, read within Fresh before now. Who comes while it is read waits for that. While
// nothing is kept, only what named subjects did is read for a question about them, and not kept: that of all takes much longer.
func (k *Keeper) Past(ctx context.Context, rows Rows, cluster string, subjects []string, now time.Time) (*Past, error) {
	of := k.of(cluster, now)
	select {
	case <-of.turn:
		defer func() { of.turn <- struct{}{} }()
	case <-ctx.Done():
		return nil, ctx.Err() //nolint:wrapcheck // it says what happened
	}
	if of.past != nil && now.Sub(of.past.Read) < Fresh {
		return of.past, nil
	}
	of.past = nil // two of them need not be in memory at once
	p, err := Read(ctx, rows, cluster, time.Time{}, time.Time{}, subjects)
	if err != nil {
		return nil, err
	}
	if p.Read = now; p.Recorded.Requests > 0 && len(subjects) == 0 {
		of.past = p
	}
	return p, nil
}

// of returns the place of a cluster; the one that was not asked about for longest makes room.
func (k *Keeper) of(cluster string, now time.Time) *keeping {
	k.mu.Lock()
	defer k.mu.Unlock()
	of, ok := k.kept[cluster]
	if !ok {
		if k.kept == nil {
			k.kept = map[string]*keeping{}
		}
		if len(k.kept) >= mostKept {
			oldest := ""
			for name, other := range k.kept {
				if oldest == "" || other.asked.Before(k.kept[oldest].asked) {
					oldest = name
				}
			}
			delete(k.kept, oldest)
		}
		of = &keeping{turn: make(chan struct{}, 1)}
		of.turn <- struct{}{}
		k.kept[cluster] = of
	}
	of.asked = now
	return of
}
