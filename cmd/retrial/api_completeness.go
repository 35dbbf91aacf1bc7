package main

import (
	"context"
	"fmt"
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
			return nil, bad("invalid settle %q: want a duration of at most %s, such as 150s", s, longestSettle)
		}
	}
	return completeness.Check(ctx, a.store, cfg, completeness.Question{Cluster: cluster, From: from, To: to, Now: a.site.time(), Scraped: a.site.scraped(cluster)})
}

// completenessCheck tells of the last hour what is missing, of clusters that post. It warns as
// long as that is not known.
func (a api) completenessCheck(ctx context.Context, c *checks, f *connectionFacts, imported bool) error {
	const id = "completeness"
	r, err := hourOf(ctx, a.store, a.site, f.cluster, a.site.time())
	if err != nil {
		return err
	}
	posts := slices.ContainsFunc(r.Servers, func(s completeness.Server) bool { return !s.LastPost.IsZero() || s.Measured != nil })
	asked := len(a.site.scraped(f.cluster)) > 0
	if !posts && !asked && imported {
		return nil
	}
	step := f.countedStep()
	told := 0
	for _, p := range r.Problems {
		switch {
		case p.Severity == completeness.Note:
		case p.Kind == completeness.KindUnread && step.State == stateDone: // it was read since that hour
		case p.Severity == completeness.Fail && p.Kind != completeness.KindSilent:
			c.add(id, checkFail, p.Todo, "%s", p.Text)
			told++
		default:
			c.add(id, checkWarn, p.Todo, "%s", p.Text)
			told++
		}
	}
	var sent int64
	measured := 0
	for _, s := range r.Servers {
		if s.Measured != nil {
			measured++
			sent += s.Measured.Sent
		}
	}
	switch {
	case measured == 0 && !asked:
		c.add(id, checkWarn, step.Todo, "%s", step.Text)
	case told > 0:
	case measured == 0 && step.State == stateDone:
		c.add(id, checkWarn, "Wait: two readings are compared, once the events between them cannot be under way any more.", "What its apiservers sent is read, and not known yet.")
	case measured == 0:
		c.add(id, checkWarn, step.Todo, "%s", step.Text)
	default:
		text := fmt.Sprintf("Of %s of the last hour none is known to be missing, by the metrics of %s.", count(sent, "event"), count(int64(measured), "apiserver"))
		for _, p := range r.Problems {
			if p.Kind == completeness.KindMissing { // dropped, and here all the same
				text += " " + p.Text
			}
		}
		c.add(id, checkOK, "", "%s", text)
	}
	return nil
}
