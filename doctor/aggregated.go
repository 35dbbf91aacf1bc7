package doctor

import (
	"context"
	"strings"
	"time"

	"github.com/retrial-io/retrial/analysis/lineage"
	"github.com/retrial-io/retrial/internal/phrase"
)

// aggregatedCheck reports requests that reached the cluster's aggregated API servers past its
// kube-apiserver, in the day before a time.
func (a *Service) aggregatedCheck(ctx context.Context, c *Checks, cluster string, last time.Time) error {
	if a.Site.Apiserver == nil {
		return nil
	}
	servers := a.Site.Apiserver(cluster, "").Servers()
	if len(servers) == 0 {
		return nil
	}
	const id = "aggregated"
	found, err := a.Store.DirectRequests(ctx, cluster, servers, lineage.Aggregators(), last.Add(-traitsRange), last)
	if err != nil {
		return err
	}
	for _, d := range found {
		c.Add(id, CheckWarn, "To see who it was: retrial why "+d.AuditID+". Only the kube-apiserver should reach the server; or the audit "+
			"policy of the kube-apiserver leaves these requests out.",
			"%s at %s bypassed the kube-apiserver in the last day, by %s; the first by %s to %s.",
			phrase.Number(int(d.Requests), "request"), d.APIServer, phrase.Number(int(d.Users), "user"), phrase.Shorten(d.User),
			phrase.Shorten(d.URI))
	}
	if len(found) == 0 {
		c.Add(id, CheckOK, "", "What reached %s in the last day came through the kube-apiserver.", strings.Join(servers, ", "))
	}
	return nil
}
