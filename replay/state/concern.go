package state

import (
	"strings"

	"github.com/retrial-io/retrial/replay/state/graph"
)

// groupNodes is the group of every node's user.
const groupNodes = "system:nodes"

// nodeUser is the user name of a node.
func nodeUser(node string) string { return "system:node:" + node }

// credentialEffect is the effect of what was learnt of a credential.
func credentialEffect(id string) Effect {
	return Effect{Resource: Credentials, Name: id, Credential: id}
}

// wholes are the answers about what no object is known of and that have no time: whether there
// was ever such a pod, token or other credential.
type wholes struct{ pods, tokens, credentials Known }

func (s *State) whole() wholes {
	return wholes{s.never(resPod), s.neverToken(), s.never(resCredential)}
}

// since returns the effects of such answers having changed: what was done with any credential,
// whenever it was, may have to be judged again.
func (w wholes) since(before wholes) (effects []Effect) {
	everything := Subjects{All: true, AllNamespaces: true}
	if w.pods != before.pods {
		effects = append(effects, Effect{Resource: Pods, subjects: everything})
	}
	if w.tokens != before.tokens || w.credentials != before.credentials {
		effects = append(effects, Effect{Resource: Credentials, subjects: everything})
	}
	return effects
}

// concerned adds the subjects of a change of an object of the reduced kinds: those whose
// identity or relation it is about.
func (s *State) concerned(g *gather, k objectKey, was, is []step) {
	if k.res == resSigning || k.res == resCredential {
		return // what is learnt of credentials has effects of its own
	}
	g.s.AllNamespaces = true
	if k.name == "" {
		// What pods, nodes and volumes there are matters to nodes; what Secrets there are, to
		// whoever comes with a token of one, which is rare and always looked up by name.
		if k.res != resSecret {
			g.s.Groups = []string{groupNodes}
		}
		return
	}
	switch k.res {
	case resNode:
		g.s.Users = []string{nodeUser(k.name)}
		return
	case resSecret:
		if id, ok := strings.CutPrefix(k.name, prefixToken); ok && k.namespace == "kube-system" {
			g.s.Users = []string{"system:bootstrap:" + id}
		}
	}
	for _, line := range [][]step{was, is} {
		for i := range line {
			if line[i].content == nil {
				continue
			}
			switch v := line[i].content.object.(type) {
			case *Secret:
				if v.ServiceAccount != "" {
					g.s.Users = append(g.s.Users, serviceAccountUser(k.namespace, v.ServiceAccount))
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

// sameDoubt tells whether two lines of a scope answer alike: writes of names that were not
// recorded follow each other while their kind is unknown anyway.
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
func (r resource) graphKind() (graph.Kind, bool) {
	switch r {
	case resPod:
		return graph.Pod, true
	case resVolume:
		return graph.Volume, true
	case resAttachment:
		return graph.Attachment, true
	case resSlice:
		return graph.Slice, true
	case resPodCertificate:
		return graph.CertificateRequest, true
	}
	return 0, false
}

// appendStep appends a step of an object's life, unless it says what the one before says:
// labels change, what the graph asks does not.
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
	kind, ok := obj.key.res.graphKind()
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
			g.Content, _ = st.content.object.(*graph.Content)
		}
		life = appendStep(life, g)
	}
	if obj.key.name == "" {
		s.graph.SetScope(kind, obj.key.namespace, life)
		return
	}
	s.graph.Set(graph.Object{Kind: kind, Namespace: obj.key.namespace, Name: obj.key.name}, life)
}
