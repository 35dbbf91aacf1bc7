package state

import (
	"strings"

	"github.com/retrial-io/retrial/internal/kubenames"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/replay/state/kept"
)

// groupNodes is the group of every node's user.
const groupNodes = kubenames.Nodes

// nodeUser returns the user name of a node.
func nodeUser(node string) string { return kubenames.Node(node) }

// credentialEffect returns the effect of news about a credential.
func credentialEffect(id string) Effect {
	return Effect{Resource: kept.Credentials, Name: id, Credential: id}
}

// wholes has the answers about unknown objects at any time: whether there ever was such a pod, token or other credential.
type wholes struct{ pods, tokens, credentials Known }

func (s *State) whole() wholes {
	return wholes{s.never(kept.ResPod), s.neverToken(), s.never(kept.ResCredential)}
}

// since returns the effects of changes of these answers: anything ever done with a credential may have to be judged again.
func (w wholes) since(before wholes) (effects []Effect) {
	everything := Subjects{All: true, AllNamespaces: true}
	if w.pods != before.pods {
		effects = append(effects, Effect{Resource: kept.Pods, subjects: everything})
	}
	if w.tokens != before.tokens || w.credentials != before.credentials {
		effects = append(effects, Effect{Resource: kept.Credentials, subjects: everything})
	}
	return effects
}

// concerned adds the subjects of a change of an object of the reduced kinds: those whose identity or relations it affects.
func (s *State) concerned(g *gather, k kept.Key, was, is []step) {
	if k.Resource == kept.ResSigning || k.Resource == kept.ResCredential {
		return // what is learnt of credentials has effects of its own
	}
	g.s.AllNamespaces = true
	if k.Name == "" {
		// Pods, nodes and volumes matter to nodes; Secrets matter to whoever uses a token of one, which is rare and always looked up by
		// name.
		if k.Resource != kept.ResSecret {
			g.s.Groups = []string{groupNodes}
		}
		return
	}
	switch k.Resource {
	case kept.ResNode:
		g.s.Users = []string{nodeUser(k.Name)}
		return
	case kept.ResSecret:
		if id, ok := strings.CutPrefix(k.Name, kept.PrefixToken); ok && k.Namespace == "kube-system" {
			g.s.Users = []string{"system:bootstrap:" + id}
		}
	}
	for _, line := range [][]step{was, is} {
		for i := range line {
			if line[i].content == nil {
				continue
			}
			switch v := line[i].content.Object.(type) {
			case *kept.Secret:
				if v.ServiceAccount != "" {
					g.s.Users = append(g.s.Users, kubenames.ServiceAccount(k.Namespace, v.ServiceAccount))
				}
			case *graph.Content:
				if v.Node != "" {
					g.s.Users = append(g.s.Users, nodeUser(v.Node))
				} else {
					g.s.Groups = []string{groupNodes} // a volume: of whichever nodes its claim is on
				}
			}
		}
	}
}

// sameDoubt reports whether two lines of a scope give the same answers: writes without a recorded name repeat while their kind is unknown
// anyway.
func sameDoubt(a, b []step) bool {
	for len(a) > 0 && len(b) > 0 {
		if a[0].phase != b[0].phase || a[0].na != b[0].na {
			return false
		}
		a, b = otherPhase(a), otherPhase(b)
	}
	return len(a) == len(b)
}

// otherPhase returns what follows the steps that say what the first one says.
func otherPhase(line []step) []step {
	i := 1
	for i < len(line) && line[i].phase == line[0].phase {
		i++
	}
	return line[i:]
}

// graphKind returns the graph's kind of a resource.
func graphKind(r kept.Resource) (graph.Kind, bool) {
	switch r {
	case kept.ResPod:
		return graph.Pod, true
	case kept.ResVolume:
		return graph.Volume, true
	case kept.ResAttachment:
		return graph.Attachment, true
	case kept.ResSlice:
		return graph.Slice, true
	case kept.ResPodCertificate:
		return graph.CertificateRequest, true
	}
	return 0, false
}

// appendStep appends a step of an object's life unless it says the same as the one before: labels change, what the graph asks does not.
func appendStep(life []graph.Step, st graph.Step) []graph.Step {
	if n := len(life); n > 0 {
		if last := &life[n-1]; last.Known == st.Known && last.UID == st.UID &&
			(last.Content == st.Content || last.Content != nil && st.Content != nil && *last.Content == *st.Content) {
			return life
		}
	}
	return append(life, st)
}

// relate brings the graph up to date with an object or scope.
func (s *State) relate(obj *object) {
	kind, ok := graphKind(obj.key.Resource)
	if !ok {
		return
	}
	life := make([]graph.Step, 0, len(obj.line))
	for i := range obj.line {
		st := &obj.line[i]
		g := graph.Step{NotBefore: st.nb, NotAfter: st.na, Known: graph.Absent, UID: st.uid}
		switch st.phase {
		case phaseUnknown:
			g.Known = graph.Unknown
		case phasePresent:
			g.Known = graph.Present
			g.Content, _ = st.content.Object.(*graph.Content)
		}
		life = appendStep(life, g)
	}
	if obj.key.Name == "" {
		s.graph.SetScope(kind, obj.key.Namespace, life)
		return
	}
	s.graph.Set(graph.Object{Kind: kind, Namespace: obj.key.Namespace, Name: obj.key.Name}, life)
}
