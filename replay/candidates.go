package replay

import (
	"sort"
	"time"

	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authz"
	"github.com/retrial-io/retrial/replay/reason"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/graph"
	"github.com/retrial-io/retrial/verdict"
)

// candidate is a policy, or a configuration, the apiserver may have decided with instead of
// the one at base.
type candidate struct {
	moment moment
	class  string      // of a verdict that it explains
	text   string      // what tells it apart, behind "the record agrees with the "
	in     *configured // the configuration, nil for the one at base
}

// says returns what tells the candidate apart, once it has been asked.
func (c *candidate) says(received time.Time) string {
	if g, ok := c.moment.Graph.(*someMoment); ok {
		return c.text + g.says(received)
	}
	return c.text
}

// nodeLag is how far the node authorizer may run behind the pods. It follows them by a watch of its
// own, as the kubelet does, which asks as soon as its watch tells of a pod: the two race, and
// where processors are scarce the apiserver loses by more than any cache lag.
const nodeLag = 5 * time.Second

// candidates returns what the apiserver may have decided with inside the window besides what
// the replica used, likeliest first: other policies, other pods on the node, and then each
// under another configuration. nodes says that a node is asked about.
func (t *trial) candidates(nodes bool) []candidate {
	if t.s == nil {
		return nil
	}
	from, to := t.window()
	var out []candidate
	others := t.otherConfigurations(from, to)
	for _, c := range others {
		if c.class != verdict.ClassConfigRaced { // it may have held all the time, and explains more than a race
			out = append(out, c.under(t.base, ""))
		}
	}
	known := len(out)
	out = append(out, t.nearest(t.s.RBACWindow(from, to))...)
	if nodes {
		for _, want := range [...]graph.Known{graph.Present, graph.Absent, graph.Unknown} {
			m := t.base
			m.Graph = &someMoment{s: t.s, from: from, to: to, want: want}
			out = append(out, candidate{m, verdict.ClassRaced, "pods on the node at another moment of the request's window", nil})
		}
		for _, want := range [...]graph.Known{graph.Absent, graph.Present} {
			m := t.base
			m.Graph = &someMoment{s: t.s, from: from.Add(-nodeLag), to: to, want: want}
			out = append(out, candidate{m, verdict.ClassRaced, "pods on the node as they were up to " + nodeLag.String() +
				" before, which the node authorizer had not seen change yet", nil})
		}
	}
	raced := out[known:len(out):len(out)]
	for _, c := range others {
		if c.class == verdict.ClassConfigRaced {
			out = append(out, c.under(t.base, ""))
		}
		for i := range raced {
			out = append(out, c.under(raced[i].moment, " and the "+raced[i].text))
		}
	}
	return out
}

// under returns the candidate of a moment at which the configuration was in force.
func (c *candidateConfig) under(m moment, and string) candidate {
	m.chain = c.chain
	return candidate{m, c.class, c.text + and, c.configured}
}

// someMoment is the graph of the moment of a window in which a relation was as wanted, if
// there is one.
type someMoment struct {
	s        *state.State
	from, to time.Time
	want     graph.Known
	// used is the last relation that was not as wanted when the request arrived.
	used *relation
}

// relation is what [state.State.Related] is asked about.
type relation struct {
	node, group, resource, namespace, name string
}

func (r *relation) within(s *state.State, from, to time.Time, want graph.Known) bool {
	return s.RelatedWithin(from, to, r.node, r.group, r.resource, r.namespace, r.name).Has(want)
}

// Related implements node.Graph.
func (g *someMoment) Related(at time.Time, node, group, resource, namespace, name string) graph.Known {
	r := &relation{node, group, resource, namespace, name}
	is := g.s.Related(at, node, group, resource, namespace, name)
	if is == g.want || !r.within(g.s, g.from, g.to, g.want) {
		return is
	}
	g.used = r
	return g.want
}

// says names the relation and the moment nearest to the request's arrival at which it was as
// wanted.
func (g *someMoment) says(received time.Time) string {
	if g.used == nil || g.want == graph.Unknown {
		return ""
	}
	text := ": there was no path to "
	if g.want == graph.Present {
		text = ": there was a path to "
	}
	text += g.used.resource + "/"
	if g.used.namespace != "" {
		text += g.used.namespace + "/"
	}
	text += g.used.name
	switch by, ok := g.nearest(received, g.from); {
	case ok && by == 0:
		return text + ", if the change that was under way when the request arrived had been made"
	case ok:
		return text + " until " + by.String() + " before the request arrived"
	}
	if by, ok := g.nearest(received, g.to); ok {
		return text + " from " + by.String() + " after the request arrived"
	}
	return text
}

// nearest returns how far from the request's arrival, towards an end of the window, the relation
// was as wanted, to the tenth of a millisecond.
func (g *someMoment) nearest(received, end time.Time) (time.Duration, bool) {
	const unit = 100 * time.Microsecond
	reach, sign := end.Sub(received), time.Duration(1)
	if reach < 0 {
		reach, sign = -reach, -1
	}
	wanted := func(d time.Duration) bool {
		from, to := received, received.Add(sign*d)
		if sign < 0 {
			from, to = to, from
		}
		return g.used.within(g.s, from, to, g.want)
	}
	n := int(reach/unit) + 1
	i := sort.Search(n, func(i int) bool { return wanted(time.Duration(i) * unit) })
	return time.Duration(i) * unit, i < n
}

// nearest returns the policies of a window ordered by their distance from the one at base:
// first those before it, newest first, then those after it, oldest first. Each comes with
// the change that lies between it and its neighbour on the side of base, in words.
func (t *trial) nearest(views []state.View) []candidate {
	received := t.e.RequestReceivedTimestamp
	base := 0 // index of the policy at base
	for i := range views {
		if len(views[i].Changed) > 0 && !views[i].Changed[0].NotAfter.After(received) {
			base = i
		}
	}
	out := make([]candidate, 0, len(views))
	for i := base - 1; i >= 0; i-- {
		out = append(out, candidate{t.with(&views[i]), verdict.ClassRaced, "policy before " + changes(&views[i+1]), nil})
	}
	for i := base + 1; i < len(views); i++ {
		out = append(out, candidate{t.with(&views[i]), verdict.ClassRaced, "policy after " + changes(&views[i]), nil})
	}
	return out
}

// changes names what makes a view in a window differ from the one before it.
func changes(view *state.View) string {
	text := ""
	for i, c := range view.Changed {
		switch {
		case i == 3:
			return text + " and more"
		case i > 0:
			text += ", "
		}
		text += c.String()
	}
	return text
}

// unknownAmong names what is not known of the binding and the role a recorded reason names.
func unknownAmong(view *state.View, g reason.Named) (missing []string) {
	if view.Certain() {
		return nil
	}
	binding, role := g.Keys()
	for _, k := range [...]rbacindex.Key{binding, role} {
		switch {
		case view.IsDoubted(k):
			missing = append(missing, authz.DoubtedName(view, k))
		case view.IsUnknown(k):
			missing = append(missing, authz.UnknownName(k))
		}
	}
	return missing
}
