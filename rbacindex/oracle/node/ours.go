package node

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	certsv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/retrial-io/retrial/replay/authz/node"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/replay/state/kept"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/verdict"
)

// Ours is what is held against the real authorizer. Tests put faults in; the zero value is
// the replica.
type Ours struct {
	// Content reads an object; nil is graph.ContentOf.
	Content func(graph.Kind, []byte) (graph.Content, error)
	// Life may change what an object's life is taken to be; nil leaves it.
	Life func(graph.Object, []graph.Step) []graph.Step
	// Authorize answers; nil is the authorizer for Config.
	Authorize func(user string, a *verdict.Attributes, g node.Graph, at time.Time) node.Answer
	// Config is the configuration the real one runs with; nil is the default one.
	Config *config.APIServer
	// State puts a state.State between the facts and the graph: they go in as they would be
	// read of a log. Content and Life are not called then.
	State bool
}

// replica is our side of one cluster.
type replica struct {
	ours  Ours
	rules node.Rules
	g     *graph.Graph
	lives map[graph.Object][]graph.Step
	state *state.State // nil without Ours.State
}

// related returns the graph to ask.
func (r *replica) related() node.Graph {
	if r.state != nil {
		return r.state
	}
	return r.g
}

func newReplica(ours Ours) *replica {
	if ours.Content == nil {
		ours.Content = graph.ContentOf
	}
	r := &replica{ours: ours, rules: node.RulesOf(ours.Config), g: emptyGraph(), lives: map[graph.Object][]graph.Step{}}
	if ours.Authorize == nil {
		r.ours.Authorize = r.rules.Authorize
	}
	if ours.State {
		r.state = newState()
	}
	return r
}

// emptyGraph returns a graph of a cluster known from its beginning.
func emptyGraph() *graph.Graph {
	g := graph.New()
	for _, k := range []graph.Kind{graph.Pod, graph.Volume, graph.Attachment, graph.Slice, graph.CertificateRequest} {
		g.SetScope(k, "", []graph.Step{{NotBefore: graph.Always, NotAfter: graph.Always, Known: graph.Absent}})
	}
	return g
}

// objectOf names an object of Kubernetes in the graph.
func objectOf(o any) (graph.Object, string) {
	switch o := o.(type) {
	case *corev1.Pod:
		return graph.Object{Kind: graph.Pod, Namespace: o.Namespace, Name: o.Name}, string(o.UID)
	case *corev1.PersistentVolume:
		return graph.Object{Kind: graph.Volume, Name: o.Name}, string(o.UID)
	case *storagev1.VolumeAttachment:
		return graph.Object{Kind: graph.Attachment, Name: o.Name}, string(o.UID)
	case *resourcev1.ResourceSlice:
		return graph.Object{Kind: graph.Slice, Name: o.Name}, string(o.UID)
	case *certsv1beta1.PodCertificateRequest:
		return graph.Object{Kind: graph.CertificateRequest, Namespace: o.Namespace, Name: o.Name}, string(o.UID)
	}
	panic(fmt.Sprintf("no kind for %T", o))
}

// write notes what became of an object at a moment.
func (r *replica) write(at int64, before, after any) error {
	t := momentOf(at).UnixNano()
	st := graph.Step{NotBefore: t, NotAfter: t, Known: graph.Absent}
	shown := before
	if after != nil {
		shown = after
	}
	o, uid := objectOf(shown)
	if r.state != nil {
		return r.observe(at, o, uid, after)
	}
	if after != nil {
		raw, err := json.Marshal(after)
		if err != nil {
			return fmt.Errorf("write %s: %w", o.Name, err)
		}
		c, err := r.ours.Content(o.Kind, raw)
		if err != nil {
			return err
		}
		st.Known, st.UID, st.Content = graph.Present, uid, &c
	}
	life := append(r.lives[o], st)
	if r.ours.Life != nil {
		life = r.ours.Life(o, life)
	}
	r.lives[o] = life
	r.g.Set(o, life)
	return nil
}

// authorize answers as of a moment. Users the authorizer does not feel addressed by get no
// opinion.
func (r *replica) authorize(at int64, username string, groups []string, a *verdict.Attributes) (allowed bool, reason string, err error) {
	if !node.Is(username, groups) {
		return false, "", nil
	}
	ans := r.ours.Authorize(username, a, r.related(), momentOf(at))
	if ans.Allowed == graph.Unknown {
		return false, "", fmt.Errorf("not known: %s", ans.Missing)
	}
	return ans.Allowed == graph.Present, ans.Reason, nil
}

// momentOf returns the time of the n-th write: some seconds apart, as creation times are cut to
// seconds.
func momentOf(n int64) time.Time {
	return time.Date(2026, 5, 4, 10, 0, 0, 0, time.UTC).Add(time.Duration(n) * 10 * time.Second)
}

// newState returns the state of a cluster that was listed before anything was in it.
func newState() *state.State {
	s := state.New("oracle")
	var obs []observe.Observation
	for _, kind := range kept.Resources() {
		obs = append(obs, observe.Observation{
			Source: observe.SourceSnapshot, Resource: kind, AllOf: true, Complete: true, NotBefore: momentOf(-1), NotAfter: momentOf(-1),
		})
	}
	s.Apply(obs...)
	return s
}

// observe tells the state what became of an object.
func (r *replica) observe(at int64, o graph.Object, uid string, after any) error {
	obs := observe.Observation{
		Source: observe.SourceAudit, Namespace: o.Namespace, Name: o.Name, UID: uid, Deleted: after == nil, NotBefore: momentOf(at),
		NotAfter: momentOf(at),
	}
	switch o.Kind {
	case graph.Pod:
		obs.Resource = kept.Pods
	case graph.Volume:
		obs.Resource = kept.PersistentVolumes
	case graph.Attachment:
		obs.Resource = kept.VolumeAttachments
	case graph.Slice:
		obs.Resource = kept.ResourceSlices
	case graph.CertificateRequest:
		obs.Resource = kept.PodCertificates
	}
	if after != nil {
		raw, err := json.Marshal(after)
		if err != nil {
			return fmt.Errorf("write %s: %w", o.Name, err)
		}
		obs.Object, obs.ResourceVersion = raw, strconv.FormatInt(1000+at, 10)
	}
	r.state.Apply(obs)
	return nil
}
