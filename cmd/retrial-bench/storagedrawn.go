package main

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/retrial-io/retrial/internal/procstat"
	"github.com/retrial-io/retrial/storage/queries"
)

// drawnAsked is how many filters of lists are drawn.
const drawnAsked = 200

// drawnLists are what lists of drawn filters take.
type drawnLists struct {
	Asked  int     `json:"asked"`
	Empty  int     `json:"empty"` // that selected nothing
	Time   spread  `json:"milliseconds"`
	CPU    spread  `json:"cpu_milliseconds"`
	Worst  string  `json:"worst"` // the filter that took most CPU
	Read   float64 `json:"mean_rows_read"`
	events int64
}

// spread is the middle, the 95th percentile and the largest of some figures.
type spread struct {
	P50   float64 `json:"p50"`
	P95   float64 `json:"p95"`
	Worst float64 `json:"worst"`
}

func spreadOf(list []float64) spread {
	slices.Sort(list)
	n := len(list)
	return spread{list[n/2], list[min(n*95/100, n-1)], list[n-1]}
}

// drawer draws filters: of every member, half of the time, a value the store has, or one time in five one it has not; up to two conditions
// on further columns; of everything stored, a day, an hour or a minute of it.
type drawer struct {
	rng         *rand.Rand
	values      map[string][]string
	first, last time.Time
}

// drawnColumns are the columns of conditions, and where their values are.
var drawnColumns = [][2]string{ //nolint:gochecknoglobals // constant table
	{"user", "user_name"}, {"namespace", "object_namespace"}, {"apiGroup", "object_api_group"}, {"subresource", "object_subresource"},
	{"name", "object_name"}, {"userAgent", "user_agent"}, {"code", "code"}, {"authorizer", "authorizer"},
	{"group", "arrayJoin(user_groups)"},
	{"sourceIP", "arrayJoin(source_ips)"}, {"rule", "substringIndex(arrayJoin(hits), '/', 1)"}, {"credential", "credential"},
	{"subject", "subject"}, {"verb", "verb"}, {"resource", "object_resource"},
}

// drawnValues bounds the values of a column that are drawn.
const drawnValues = 2_000

func (b *storageBench) newDrawer(ctx context.Context) (*drawer, error) {
	d := &drawer{rng: rand.New(rand.NewPCG(b.seed, 17)), values: map[string][]string{}} //nolint:gosec // the same for a seed
	for _, column := range []string{"subject", "recorded", "outcome", "class", "verb", "object_resource"} {
		rows, err := rawRows(ctx, b.engine, "SELECT DISTINCT toString("+column+") AS v FROM retrial.events WHERE v != '' ORDER BY v")
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			d.values[column] = append(d.values[column], r[0])
		}
	}
	for _, c := range drawnColumns {
		rows, err := rawRows(ctx, b.engine, fmt.Sprintf("SELECT DISTINCT toString(%s) AS v FROM retrial.events WHERE v != '' "+
			"ORDER BY v LIMIT %d", c[1], drawnValues))
		if err != nil {
			return nil, err
		}
		for _, r := range rows {
			d.values[c[0]+"="] = append(d.values[c[0]+"="], r[0])
		}
	}
	clusters, err := b.store.Clusters(ctx)
	if err != nil {
		return nil, err
	}
	d.first, d.last = clusters[0].First, clusters[0].Last.Add(time.Minute)
	return d, nil
}

func (d *drawer) filter() queries.EventFilter {
	value := func(column string) string {
		switch n := d.rng.IntN(10); {
		case n < 5:
			return ""
		case n < 6:
			return "none-of-these"
		}
		list := d.values[column]
		return list[d.rng.IntN(len(list))]
	}
	f := queries.EventFilter{Cluster: benchCluster, Subject: value("subject"), Recorded: value("recorded"), Outcome: value("outcome"),
		Class: value("class"), Verb: value("verb"), Resource: value("object_resource"), Judged: d.rng.IntN(2) == 0}
	for range d.rng.IntN(3) {
		f.Where = append(f.Where, d.condition())
	}
	if long := []time.Duration{0, 0, 24 * time.Hour, time.Hour, time.Minute}[d.rng.IntN(5)]; long > 0 {
		f.From = d.first.Add(time.Duration(d.rng.Int64N(int64(d.last.Sub(d.first)))))
		f.To = f.From.Add(long)
	}
	return f
}

// condition draws one: a value the store has, at times its beginning, and one time in four what has it not.
func (d *drawer) condition() queries.Condition {
	c := queries.Condition{Column: drawnColumns[d.rng.IntN(len(drawnColumns))][0], Not: d.rng.IntN(4) == 0}
	list := d.values[c.Column+"="]
	if len(list) == 0 {
		return queries.Condition{Column: "name", Value: "none-of-these"}
	}
	c.Value = list[d.rng.IntN(len(list))]
	if c.Begins = d.rng.IntN(4) == 0 && c.Column != "code"; c.Begins {
		c.Value = c.Value[:(len(c.Value)+1)/2]
	}
	return c
}

// askDrawn asks for lists of drawn filters, each once.
func (b *storageBench) askDrawn(ctx context.Context) (*drawnLists, error) {
	d, err := b.newDrawer(ctx)
	if err != nil {
		return nil, err
	}
	before, err := read(ctx, b.engine)
	if err != nil {
		return nil, err
	}
	out := &drawnLists{Asked: drawnAsked, events: int64(b.rows)}
	var took, used []float64
	most := 0.0
	for range drawnAsked {
		f := d.filter()
		began, cpu := time.Now(), procstat.Own()
		rows, err := b.store.Events(ctx, f)
		if err != nil {
			return nil, fmt.Errorf("a list of %+v: %w", f, err)
		}
		took = append(took, float64(time.Since(began).Microseconds())/1e3)
		used = append(used, float64((procstat.Own()-cpu).Microseconds())/1e3)
		if len(rows) == 0 {
			out.Empty++
		}
		if c := used[len(used)-1]; c > most {
			most, out.Worst = c, fmt.Sprintf("subject %q, recorded %q, outcome %q, class %q, verb %q, resource %q, judged %v, where %+v, "+
				"%v long: %d rows", f.Subject, f.Recorded, f.Outcome, f.Class, f.Verb, f.Resource, f.Judged, f.Where,
				f.To.Sub(f.From), len(rows))
		}
	}
	after, err := read(ctx, b.engine)
	if err != nil {
		return nil, err
	}
	out.Time, out.CPU = spreadOf(took), spreadOf(used)
	out.Read = float64(after["SelectedRows"]-before["SelectedRows"]) / drawnAsked
	return out, nil
}

func (l *drawnLists) print(w io.Writer, times int) {
	if l == nil {
		return
	}
	fmt.Fprintf(w, "\nLISTS OF %d FILTERS DRAWN, OF %d EVENTS\tp50\tp95\tworst\t\n", l.Asked, l.events*int64(times))
	fmt.Fprintf(w, "ms\t%.0f\t%.0f\t%.0f\t\n", l.Time.P50, l.Time.P95, l.Time.Worst)
	fmt.Fprintf(w, "CPU ms\t%.0f\t%.0f\t%.0f\t\n", l.CPU.P50, l.CPU.P95, l.CPU.Worst)
	fmt.Fprintf(w, "%d of them empty, %.0f rows read on average; dearest: %s\t\t\t\t\n", l.Empty, l.Read, l.Worst)
}
