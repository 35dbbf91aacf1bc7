package doctor

import (
	"strings"

	"github.com/retrial-io/retrial/internal/phrase"
	"github.com/retrial-io/retrial/internal/safe"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/rbacindex"
	"github.com/retrial-io/retrial/replay/authz"
)

// mostObjects is how many objects a check names.
const mostObjects = 3

// stateImport lists a cluster's state and imports it.
func stateImport(cluster string) string {
	return query.StateListing + " && " + query.StateImport(cluster)
}

// unknownCheck names the roles and bindings of a cluster whose content is not known: while there
// are any, drift of the subjects they could concern is not detected.
func (a *Service) unknownCheck(c *Checks, cluster string) {
	const id = "policy-known"
	s, ok := a.Replay.State(cluster)
	if !ok {
		return
	}
	view := s.RBAC(query.Latest)
	anybody, role := view.Blind()
	named := func(keys []rbacindex.Key) string {
		var texts []string
		for _, k := range keys[:min(len(keys), mostObjects)] {
			text := authz.UnknownName(k)
			if why := s.Reason(k, query.Latest); why != "" {
				text += " (" + why + ")"
			}
			texts = append(texts, safe.Text(text))
		}
		if more := len(keys) - mostObjects; more > 0 {
			texts = append(texts, "and "+phrase.Count(int64(more), "other"))
		}
		return strings.Join(texts, "; ")
	}
	if len(anybody) > 0 {
		c.Add(id, CheckFail, stateImport(cluster), "Drift is not detected: no refusal is certain, because it is not known what these "+
			"bindings give to whom: %s.", named(anybody))
	}
	if len(role) > 0 {
		c.Add(id, CheckWarn, stateImport(cluster), "It is not known what these roles give to whom: %s.", named(role))
	}
	if len(anybody)+len(role) == 0 && len(view.UnknownKinds) == 0 {
		c.Add(id, CheckOK, "", "Every role and binding is known.")
	}
}
