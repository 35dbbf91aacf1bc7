package doctor

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/replay/state"
)

// versionCheck reports which versions of Kubernetes the apiservers of a cluster run, by their own
// requests, and whether their configuration agrees.
func (a *Service) versionCheck(c *Checks, cluster string) {
	const id = "version"
	s, ok := a.Replay.State(cluster)
	if !ok {
		return
	}
	seen := s.Servers()
	if len(seen) == 0 {
		if given := a.Site.versionGiven(cluster, ""); given == 0 {
			c.Add(id, CheckWarn, "Keep the requests of system:apiserver in the audit policy (deploy/audit-policy.yaml), or set "+
				"kubernetesVersion in server.yaml of --apiserver-config.",
				"Its log does not show which version of Kubernetes its apiserver is: the newest is assumed.")
		}
		return
	}
	var texts []string
	for _, server := range slices.Sorted(maps.Keys(seen)) {
		list := seen[server]
		who := "its apiserver"
		if server != "" {
			who = "apiserver " + server
		}
		newest := slices.MaxFunc(list, func(a, b state.Release) int { return a.Last.Compare(b.Last) })
		text := who + " is " + newest.String()
		for _, r := range list {
			if r != newest {
				text += fmt.Sprintf(", was %s until %s", r, r.Last.UTC().Format(time.RFC3339))
			}
		}
		texts = append(texts, text)
		if given := a.Site.versionGiven(cluster, server); given != 0 && given != newest.Minor {
			c.Add(id, CheckFail, fmt.Sprintf("Set kubernetesVersion: %q in server.yaml of %s, then retrial rejudge --cluster %s.", newest,
				a.Site.apiserverFolder(cluster), cluster),
				"By its own requests %s is Kubernetes %s; its configuration says 1.%d, by which its requests are judged.", who,
				newest, given)
		}
	}
	c.Add(id, CheckOK, "", "By their own requests: %s.", strings.Join(texts, "; "))
}

// versionGiven returns the minor version in the present configuration of an apiserver, 0 if it has
// none, or one that it emulates.
func (s Site) versionGiven(cluster, server string) int {
	if s.Apiserver == nil {
		return 0
	}
	cfg := s.Apiserver(cluster, server).At(s.time())
	if cfg == nil || cfg.Guessed || cfg.Emulates {
		return 0
	}
	return cfg.Minor
}
