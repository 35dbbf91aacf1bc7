package node

import (
	"encoding/json"
	"fmt"
	"time"

	certsv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	storagev1 "k8s.io/api/storage/v1"

	"github.com/retrial-io/retrial/replay/authz/node"
	"github.com/retrial-io/retrial/replay/config"
	"github.com/retrial-io/retrial/replay/request"
	"github.com/retrial-io/retrial/replay/state/graph"
)

// Ours is what is held against the real authorizer. Tests put faults in; the zero value is
// the replica.
type Ours struct {
	// Content reads an object; nil is graph.ContentOf.
	Content func(graph.Kind, []byte) (graph.Content, error)
	// Life may change what an object's life is taken to be; nil leaves it.
	Life func(graph.Object, []graph.Step) []graph.Step
	// Authorize answers; nil is the authorizer for Config.
	Authorize func(user string, a *request.Attributes, g node.Graph, at time.Time) node.Answer
	// Config is the configuration the real one runs with; nil is the default one.
	Config *config.APIServer
}

// replica is our side of one cluster.
type replica struct {
	ours  Ours
	rules node.Rules
	g     *graph.Graph
	lives map[graph.Object][]graph.Step
}

func newReplica(ours Ours) *replica {
	if ours.Content == nil {
		ours.Content = graph.ContentOf
	}
	r := &replica{ours: ours, rules: node.RulesOf(ours.Config), g: emptyGraph(), lives: map[graph.Object][]graph.Step{}}
	if ours.Authorize == nil {
		r.ours.Authorize = r.rules.Authorize
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
	st := graph.Step{NotBefore: at, NotAfter: at, Known: graph.Absent}
	shown := before
	if after != nil {
		shown = after
	}
	o, uid := objectOf(shown)
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
func (r *replica) authorize(at int64, username string, groups []string, a *request.Attributes, g *graph.Graph) (allowed bool, reason string, err error) {
	if !node.Is(username, groups) {
		return false, "", nil
	}
	ans := r.ours.Authorize(username, a, g, time.Unix(0, at))
	if ans.Allowed == graph.Unknown {
		return false, "", fmt.Errorf("not known: %s", ans.Missing)
	}
	return ans.Allowed == graph.Present, ans.Reason, nil
}
