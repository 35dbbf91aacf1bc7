package query

import (
	"context"
	"net/url"
	"time"

	"github.com/retrial-io/retrial/analysis/completeness"
)

// completenessRoutes is the question whether everything that was sent arrived.
func (a *Service) completenessRoutes() []Question {
	return []Question{{"completeness", []string{"cluster", "from", "to", "settle"}, CostQuery, a.completeness}}
}

// longestSettle bounds how long events may be said to be under way.
const longestSettle = time.Hour

func (a *Service) completeness(ctx context.Context, q url.Values) (any, error) {
	cluster, from, to, err := window(q)
	if err != nil {
		return nil, err
	}
	var cfg completeness.Config
	if s := q.Get("settle"); s != "" {
		if cfg.Settle, err = time.ParseDuration(s); err != nil || cfg.Settle <= 0 || cfg.Settle > longestSettle {
			return nil, Bad("invalid settle %q: want a duration of at most %s, such as 150s", s, longestSettle)
		}
	}
	return completeness.Check(ctx, a.Store, cfg, completeness.Question{Cluster: cluster, From: from, To: to, Now: a.time(), Scraped: a.Scraped(cluster)})
}
