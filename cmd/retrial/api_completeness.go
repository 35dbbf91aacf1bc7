package main

import (
	"context"
	"net/url"
	"slices"
	"time"

	"github.com/retrial-io/retrial/analysis/completeness"
)

// completenessRoutes is the question whether everything that was sent arrived.
func (a api) completenessRoutes() []route {
	return []route{{"completeness", []string{"cluster", "from", "to", "settle"}, a.query(a.completeness)}}
}

// longestSettle bounds how long events may be said to be under way.
const longestSettle = time.Hour

func (a api) completeness(ctx context.Context, q url.Values) (any, error) {
	cluster, from, to, err := window(q)
	if err != nil {
		return nil, err
	}
	var cfg completeness.Config
	if s := q.Get("settle"); s != "" {
		if cfg.Settle, err = time.ParseDuration(s); err != nil || cfg.Settle <= 0 || cfg.Settle > longestSettle {
			return nil, bad("settle: %q is no time between 0 and %s, such as 150s", s, longestSettle)
		}
	}
	return completeness.Check(ctx, a.store, cfg, completeness.Question{Cluster: cluster, From: from, To: to, Now: a.site.time(), Scraped: a.site.scraped(cluster)})
}

// completenessCheck tells of the last hour what is missing, of clusters that post.
func (a api) completenessCheck(ctx context.Context, c *checks, cluster string) error {
	const id = "completeness"
	r, err := hourOf(ctx, a.store, a.site, cluster, a.site.time())
	if err != nil {
		return err
	}
	posts := slices.ContainsFunc(r.Servers, func(s completeness.Server) bool { return !s.LastPost.IsZero() || s.Measured != nil })
	if !posts && len(a.site.scraped(cluster)) == 0 {
		return nil
	}
	before := len(*c)
	for _, p := range r.Problems {
		switch {
		case p.Severity == completeness.Note:
		case p.Severity == completeness.Fail && p.Kind != completeness.KindSilent:
			c.add(id, checkFail, p.Todo, "%s", p.Text)
		default:
			c.add(id, checkWarn, p.Todo, "%s", p.Text)
		}
	}
	if len(*c) > before {
		return nil
	}
	var sent, missing int64
	measured := 0
	for _, s := range r.Servers {
		if s.Measured != nil {
			measured++
			sent, missing = sent+s.Measured.Sent, missing+s.Measured.AtMost
		}
	}
	switch {
	case measured == 0:
		c.add(id, checkOK, "", "What its apiservers sent is not known; --completeness-scrape %s=https://HOST:6443 asks them (docs/completeness.md).", cluster)
	case missing == 0:
		c.add(id, checkOK, "", "All %s of the last hour are here, by the metrics of %s.", count(sent, "event"), count(int64(measured), "apiserver"))
	default:
		c.add(id, checkOK, "", "Of %s of the last hour none is known to be missing.", count(sent, "event"))
	}
	return nil
}
