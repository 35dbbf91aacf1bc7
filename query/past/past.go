// Package past reads what subjects of a cluster did, for suggestions.
//
//	Rows (a store, or a log in memory) ──▶ Count: what rollups tell, and what they do not from events ──▶ Past
//	                                   ──▶ Read: a range of events ──▶ Past
//	a question of all subjects that pages ask ──▶ Keeper: its answer, for an hour at most, made anew before that is over
package past

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/retrial-io/retrial/analysis/leastpriv"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// Rows are read for a Past; query.Rows has what they mean.
type Rows interface {
	Recording(ctx context.Context, cluster string, from, to time.Time) (queries.Recording, error)
	History(ctx context.Context, cluster string, from, to time.Time, subjects []string, visit func(codec.Alike) error) error
	Counted(ctx context.Context, cluster string) (all queries.Recording, since time.Time, err error)
	Uses(ctx context.Context, cluster string, subjects []string, visit func(verdict.Use) error) error
	Untold(ctx context.Context, cluster string, subjects []string, writes bool, visit func(codec.Alike) error) error
	NewestPolicy(ctx context.Context, cluster string, resources []string, visit func(observation []byte) error) error
}

// Past is what was recorded of a cluster. It may be used by several goroutines, and is not changed.
type Past struct {
	Recorded  queries.Recording
	Since     time.Time            // the first request whose event is stored: what the policy was before does not matter
	Collector *leastpriv.Collector // what subjects did; empty if nothing was recorded
	metas     Metadata
}

// Read reads from events the past of subjects, or of all if none is named; zero bounds leave the range open.
func Read(ctx context.Context, rows Rows, cluster string, from, to time.Time, subjects []string) (*Past, error) {
	recorded, err := rows.Recording(ctx, cluster, from, to)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what failed
	}
	p := &Past{Recorded: recorded, Since: recorded.First, Collector: leastpriv.NewCollector()}
	if recorded.Requests == 0 {
		return p, nil
	}
	if p.Collector, err = Collect(ctx, rows, cluster, from, to, subjects); err != nil {
		return nil, err
	}
	p.metas, err = ReadMetadata(ctx, rows, cluster)
	return p, err
}

// Count reads from rollups the past of subjects, or of all if none is named: everything that is counted. What they do not tell is read from
// events: what leastpriv's Untold takes in, and all of subjects whose roles by a policy list names that rollups fold.
func Count(ctx context.Context, rows Rows, cluster string, subjects []string, policy *rbacindex.Snapshot) (*Past, error) {
	recorded, since, err := rows.Counted(ctx, cluster)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what failed
	}
	c := leastpriv.NewCollector()
	p := &Past{Recorded: recorded, Since: since, Collector: c}
	if recorded.Requests == 0 {
		return p, nil
	}
	writes := false
	err = rows.Uses(ctx, cluster, subjects, func(u verdict.Use) error {
		writes = writes || u.Untold()
		c.Used(&u)
		return nil
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what failed
	}
	err = rows.Untold(ctx, cluster, subjects, writes, func(r codec.Alike) error {
		c.Untold(r.Event, r.Verdict, countOf(&r))
		return nil
	})
	if err != nil {
		return nil, err //nolint:wrapcheck // it says what failed
	}
	if unspelled := c.Unspelled(policy); len(unspelled) > 0 {
		events, err := Collect(ctx, rows, cluster, time.Time{}, time.Time{}, unspelled)
		if err != nil {
			return nil, err
		}
		for _, name := range unspelled {
			c.Take(name, events)
		}
	}
	p.metas, err = ReadMetadata(ctx, rows, cluster)
	return p, err
}

func countOf(r *codec.Alike) leastpriv.Count {
	return leastpriv.Count{Requests: r.Requests, First: r.First, Last: r.Last}
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
		c.ObserveMany(r.Event, r.Verdict, countOf(&r))
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
