package lineage

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/authn"
	"github.com/retrial-io/retrial/replay/state"
)

// Settle computes what follows from everything observed. s answers for certificates' requests and
// may be nil.
func (t *Trail) Settle(s State) {
	t.credentials.visit(func(id string, c *trace) {
		if f, ok := c.drift(id); ok {
			t.add(id, f)
		}
		if f, ok := t.elsewhere(id, c); ok {
			t.add(id, f)
		}
	})
	if s != nil {
		t.unrequested(s)
	}
	for b, n := range t.bursts {
		if n >= t.cfg.Burst {
			from := time.Unix(0, b.at*int64(BurstWindow)).UTC()
			t.add(burstKey(b.addr, b.at), Found{
				Contradiction: authn.Contradiction{Name: authn.ContradictionFailureBurst,
					Evidence: fmt.Sprintf("%d refused from %s in the %s from %s", n,
						b.addr, BurstWindow, authn.FormatTime(from))},
				Subject: b.addr, First: from, Last: from.Add(BurstWindow), Count: int64(n),
			})
		}
	}
	sortFound(t.found)
}

// sortFound orders contradictions by time.
func sortFound(found []Found) {
	slices.SortFunc(found, func(a, b Found) int {
		return cmp.Or(a.First.Compare(b.First), strings.Compare(a.Name+a.Subject+a.Evidence, b.Name+b.Subject+b.Evidence))
	})
}

func burstKey(addr string, at int64) string { return fmt.Sprintf("burst:%s:%d", addr, at) }

// drift finds credentials that stood for more than one identity.
func (c *trace) drift(id string) (Found, bool) {
	if len(c.identities) < 2 {
		return Found{}, false
	}
	name := authn.ContradictionJTIDrift
	switch {
	case strings.HasPrefix(id, authn.PrefixX509):
		name = authn.ContradictionCertDrift
	case !strings.HasPrefix(id, authn.PrefixJTI):
		return Found{}, false // a Secret of that name may later hold the token of another service account
	}
	if name == authn.ContradictionJTIDrift && c.remapped() {
		return Found{}, false
	}
	a, b := &c.identities[0], &c.identities[1]
	f := Found{
		Contradiction: authn.Contradiction{Name: name, Evidence: fmt.Sprintf("%s stood for %q with uid %q at %s and for %q "+
			"with uid %q at %s", id,
			a.name, a.uid, authn.FormatTime(a.first), b.name, b.uid, authn.FormatTime(b.first))},
		Subject: id, First: earlier(a.first, b.first), Last: later(a.last, b.last), Count: c.count(),
	}
	if a.name == b.name && a.uid == b.uid {
		f.Evidence = fmt.Sprintf("%s stood for %q with the groups %q at %s and with %q at %s", id, a.name, a.groups,
			authn.FormatTime(a.first), b.groups, authn.FormatTime(b.first))
	}
	return f, true
}

// remapped reports whether a token of a provider stood for one identity after the other, as it does
// if the apiserver's claim mappings were changed meanwhile. The apiserver's own tokens are not
// mapped.
func (c *trace) remapped() bool {
	for i := range c.identities {
		a := &c.identities[i]
		if strings.HasPrefix(a.name, authn.PrefixServiceAccount) {
			return false
		}
		for j := range i {
			if b := &c.identities[j]; !a.last.Before(b.first) && !b.last.Before(a.first) {
				return false
			}
		}
	}
	return true
}

// elsewhere finds tokens of pods that came from two addresses alternately. A pod has one address of
// each family at a time; what lies between it and the apiserver may show another, its node's or a
// gateway's, and those are recognized by who else comes from there.
func (t *Trail) elsewhere(id string, c *trace) (Found, bool) {
	if !c.bound {
		return Found{}, false
	}
	for i := range c.places {
		a := &c.places[i]
		if t.shared(a.addr, c.node) {
			continue
		}
		for k := range c.places[:i] {
			b := &c.places[k]
			if strings.Contains(a.addr, ":") != strings.Contains(b.addr, ":") || t.shared(b.addr, c.node) || !a.first.Before(b.last) ||
				!b.first.Before(a.last) {
				continue
			}
			return Found{
				Contradiction: authn.Contradiction{Name: authn.ContradictionReusedElsewhere,
					Evidence: fmt.Sprintf("%s came from %s (%s to %s) and from %s (%s to %s)", id, b.addr, authn.FormatTime(b.first),
						authn.FormatTime(b.last), a.addr, authn.FormatTime(a.first), authn.FormatTime(a.last))},
				Subject: id, First: earlier(a.first, b.first), Last: later(a.last, b.last), Count: c.count(),
			}, true
		}
	}
	return Found{}, false
}

// shared reports whether more than one pod comes from an address.
func (t *Trail) shared(addr, node string) bool {
	p := t.peers[addr]
	return p == nil || p.nodes || p.pods || p.host != "" && p.host == node
}

// unrequested finds certificates of nodes that nobody requested although the node had a requested
// one before this one was first seen: a kubelet that has been given a certificate renews it in the
// same way.
func (t *Trail) unrequested(s State) {
	type own struct {
		id string
		c  *trace
	}
	nodes := map[string][]own{}
	t.credentials.visit(func(id string, c *trace) {
		if c.nodeUser != "" {
			nodes[c.nodeUser] = append(nodes[c.nodeUser], own{id, c})
		}
	})
	for node, all := range nodes {
		var requested time.Time
		by := ""
		for _, o := range all {
			if k, known := s.Credential(o.id); known == state.Present && (requested.IsZero() || k.Issued.Before(requested)) {
				requested, by = k.Issued, k.CSR
			}
		}
		if requested.IsZero() {
			continue
		}
		for _, o := range all {
			first, lastSeen := o.c.span()
			if _, known := s.Credential(o.id); known != state.Absent || !requested.Before(first) {
				continue
			}
			t.add(o.id, Found{
				Contradiction: authn.Contradiction{Name: authn.ContradictionCertUnknown,
					Evidence: fmt.Sprintf("no request issued %s of %s; the node had one by request %s since %s, and this one was first "+
						"seen at %s", o.id, node, by, authn.FormatTime(requested), authn.FormatTime(first))},
				Subject: o.id, First: first, Last: lastSeen, Count: o.c.count(),
			})
		}
	}
}
