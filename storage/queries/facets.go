package queries

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"golang.org/x/sync/errgroup"

	"github.com/retrial-io/retrial/storage/statement"
)

// Stretch is what was counted of a range.
type Stretch struct {
	From, To time.Time // zero when there is nothing to count
	Whole    bool      // all that the range has
}

// Facet is how often the values of a column are among the requests that a filter selects.
type Facet struct {
	Column string
	Stretch
	Values []ValueCount // most requests first
	More   bool         // there are other values
}

// ValueCount counts the requests that have a value.
type ValueCount struct {
	Value    string
	Requests int64
}

// mostCounted is how many events one count reads at most, the newest of the range, in whole minutes: columns of some bytes each.
const mostCounted = 2_000_000

// countedSlots is how many columns are counted at a time.
const countedSlots = 3

const stretchQuery = `SELECT toInt64(toUnixTimestamp(minIf(minute, later < {most:Int64}))), toInt64(toUnixTimestamp(min(minute))), toInt64(toUnixTimestamp(max(minute))), count()
FROM (
    SELECT minute, sum(count) AS c, sum(c) OVER (ORDER BY minute DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS later
    FROM %s.volume
    WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32}
    GROUP BY minute
    HAVING c > 0
)`

// stretches returns what of the filter's range is counted of single requests, and all that it has in whole minutes.
func (rd *Reader) stretches(ctx context.Context, f *EventFilter) (counted, all Stretch, err error) {
	p := minutes(f.Cluster, f.From, f.To)
	p["most"] = fmt.Sprint(mostCounted)
	type span struct {
		begin, first, last int64
		minutes            uint64
	}
	list, err := statement.Collect(ctx, rd.at, stretchQuery, p, func(s *span) ([]any, func()) {
		return []any{&s.begin, &s.first, &s.last, &s.minutes}, nil
	})
	if err != nil || len(list) == 0 || list[0].minutes == 0 {
		return Stretch{Whole: true}, Stretch{Whole: true}, err
	}
	s := list[0]
	all = Stretch{From: time.Unix(s.first, 0).UTC(), To: time.Unix(s.last+60, 0).UTC(), Whole: true}
	counted = Stretch{From: time.Unix(s.begin, 0).UTC(), To: all.To, Whole: s.begin == s.first}
	if f.From.After(counted.From) {
		counted.From = f.From
	}
	if !f.To.IsZero() && f.To.Before(counted.To) {
		counted.To = f.To
	}
	return counted, all, nil
}

// inVolume reports whether the rollup by the minute has all that a filter asks about.
func (f *EventFilter) inVolume() bool {
	return f.Subject == "" && f.Verb == "" && f.Resource == "" &&
		!slices.ContainsFunc(f.Where, func(c Condition) bool { s := columnOf(c.Column); return s == nil || !s.inVolume })
}

// ofVolume reports whether requests are counted by a column, nil for all together, in that rollup: single ones are too many.
func (f *EventFilter) ofVolume(by *selectable, counted Stretch) bool {
	return !counted.Whole && f.inVolume() && (by == nil || by.inVolume)
}

// counting is where requests are counted: single ones of a stretch, or the rollup of all of it.
type counting struct {
	Stretch
	rows   string // FROM and the conditions
	number string // of requests
	at     string // microseconds of a row
	params clickhouse.Parameters
}

// counting returns where requests are counted by a column, nil for all together: of single requests, unless these are too many and the
// rollup has what is asked.
func (f EventFilter) counting(by *selectable, counted, all Stretch) (c counting, err error) {
	f.Judged, f.Before = true, Cursor{}
	volume := f.ofVolume(by, counted)
	from, to := f.From, f.To
	f.From, f.To = withinMinute(counted.From), withinMinute(counted.To)
	if volume {
		f.From, f.To = time.Time{}, time.Time{}
	}
	conditions, p, err := f.conditions()
	if err != nil {
		return c, err
	}
	c = counting{counted, "events PREWHERE ", "sum(toInt64(sign))", "toUnixTimestamp64Micro(request_received)", p}
	if volume {
		c = counting{all, "volume WHERE ", "sum(count)", "toInt64(toUnixTimestamp(minute)) * 1000000", p}
	} else {
		from, to = c.From, c.To
	}
	for name, v := range minutes(f.Cluster, from, to) {
		p[name] = v
	}
	c.rows += strings.Join(append([]string{"cluster = {cluster:String}", "minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32}"},
		conditions...), " AND ")
	return c, nil
}

// withinMinute returns a moment within a minute; of others the minutes tell.
func withinMinute(at time.Time) time.Time {
	if at.Truncate(time.Minute).Equal(at) {
		return time.Time{}
	}
	return at
}

// value is what requests are counted by: of a list every text that is in it, "" for an empty one.
func (s *selectable) value() string {
	switch s.is {
	case isList:
		return "arrayJoin(if(empty(arrayDistinct(" + s.sql + ") AS values), [''], values))"
	case isNumber:
		return "toString(" + s.sql + ")"
	}
	return s.sql
}

// key is what requests are grouped by to count them by the column, and valuesOf the list of values of such a key.
func (s *selectable) key() string {
	if s.name == "rule" {
		return "hits"
	}
	return s.sql
}

func (s *selectable) valuesOf(key string) string {
	switch {
	case s.name == "rule":
		key = strings.Replace(s.sql, s.key(), key, 1)
	case s.is != isList:
		return "[toString(" + key + ")]"
	}
	return "if(empty(arrayDistinct(" + key + ") AS list_" + s.name + "), [''], list_" + s.name + ")"
}

// Facets counts the requests that a filter selects, in all and by columns: of each the values with most requests.
func (rd *Reader) Facets(ctx context.Context, f EventFilter, columns []string, limit int) (total Facet, out []Facet, err error) {
	counted, all, err := rd.stretches(ctx, &f)
	if err != nil {
		return total, nil, fmt.Errorf("facets of cluster %q: %w", f.Cluster, err)
	}
	by := map[string]*Facet{"": {}} // "" is all together
	for _, name := range columns {
		if columnOf(name) == nil {
			return total, nil, fmt.Errorf("requests are not counted by %q", name)
		}
		by[name] = &Facet{}
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(countedSlots)
	var once []string
	for name, to := range by {
		if !f.ofVolume(columnOf(name), counted) {
			once = append(once, name)
			continue
		}
		g.Go(func() (err error) { *to, err = rd.facet(ctx, &f, name, counted, all, limit); return err })
	}
	slices.Sort(once)
	g.Go(func() error { return rd.together(ctx, &f, once, counted, all, limit, by) })
	if err := g.Wait(); err != nil {
		return total, nil, fmt.Errorf("facets of cluster %q: %w", f.Cluster, err)
	}
	for _, name := range columns {
		out = append(out, *by[name])
	}
	return *by[""], out, nil
}

// together counts single requests by several columns, reading them once; "" among the names is all together.
func (rd *Reader) together(ctx context.Context, f *EventFilter, names []string, counted, all Stretch, limit int,
	by map[string]*Facet) error {
	if len(names) == 0 {
		return nil
	}
	c, err := f.counting(columnOf(names[0]), counted, all)
	if err != nil {
		return err
	}
	columns := slices.DeleteFunc(slices.Clone(names), func(name string) bool { return name == "" })
	of := map[uint64]*Facet{} // by which columns a row is not about, as bits
	every := uint64(1)<<len(columns) - 1
	var read, keys, sets, values []string
	for i, name := range columns {
		s, key, others := columnOf(name), fmt.Sprint("v", i), every-1<<(len(columns)-1-i)
		read, keys, sets = append(read, s.key()+" AS "+key), append(keys, key), append(sets, "("+key+")")
		values = append(values, fmt.Sprintf("lacks = %d, %s", others, s.valuesOf(key)))
		of[others] = by[name]
	}
	if len(columns) < len(names) {
		sets, of[every] = append(sets, "()"), by[""]
	}
	for _, name := range names {
		*by[name] = Facet{Column: name, Stretch: c.Stretch}
	}
	if c.To.IsZero() {
		return nil
	}
	if len(columns) == 0 {
		*by[""], err = rd.facet(ctx, f, "", counted, all, limit)
		return err
	}
	c.params["limit"] = fmt.Sprint(limit + 1)
	type group struct {
		lacks uint64
		ValueCount
	}
	list, err := statement.Collect(ctx, rd.at, fmt.Sprintf(togetherQuery, strings.Join(values, ", "), strings.Join(keys, ", "),
		strings.Join(read, ", "), "%s."+c.rows, strings.Join(sets, ", ")), c.params, func(g *group) ([]any, func()) {
		return []any{&g.lacks, &g.Value, &g.Requests}, nil
	})
	for _, g := range list {
		if to := of[g.lacks]; len(to.Values) < limit {
			to.Values = append(to.Values, g.ValueCount)
		} else {
			to.More = true
		}
	}
	return err
}

// togetherQuery counts by each of several columns. What is in lists is taken apart when it has been counted.
const togetherQuery = `SELECT toUInt64(lacks), value, sum(n) AS requests
FROM (
    SELECT lacks, n, arrayJoin(CAST(multiIf(%[1]s, ['']), 'Array(String)')) AS value
    FROM (
        SELECT grouping(%[2]s) AS lacks, %[2]s, sum(toInt64(sign)) AS n
        FROM (SELECT %[3]s, sign FROM %[4]s)
        GROUP BY GROUPING SETS (%[5]s)
        HAVING n != 0
    )
)
GROUP BY lacks, value
HAVING requests > 0
ORDER BY lacks, requests DESC, value
LIMIT {limit:UInt32} BY lacks
SETTINGS max_bytes_before_external_group_by = 268435456`

// facet counts by one column, "" for all together.
func (rd *Reader) facet(ctx context.Context, f *EventFilter, name string, counted, all Stretch, limit int) (Facet, error) {
	by := columnOf(name)
	if by == nil && name != "" {
		return Facet{}, fmt.Errorf("requests are not counted by %q", name)
	}
	c, err := f.counting(by, counted, all)
	if err != nil {
		return Facet{}, err
	}
	out := Facet{Column: name, Stretch: c.Stretch}
	if c.To.IsZero() {
		return out, nil
	}
	value := "''"
	if by != nil {
		value = by.value()
	}
	c.params["limit"] = fmt.Sprint(limit + 1)
	out.Values, err = statement.Collect(ctx, rd.at, "SELECT toString(value), requests FROM (SELECT "+value+" AS value, "+c.number+
		" AS requests FROM %s."+c.rows+" GROUP BY value HAVING requests > 0 ORDER BY requests DESC, value LIMIT {limit:UInt32})\n"+
		"SETTINGS max_bytes_before_external_group_by = 268435456", c.params,
		func(v *ValueCount) ([]any, func()) { return []any{&v.Value, &v.Requests}, nil })
	if out.More = len(out.Values) > limit; out.More {
		out.Values = out.Values[:limit]
	}
	return out, err
}

// Histogram is how many requests of a filter there are, step by step.
type Histogram struct {
	Stretch
	Begin  time.Time // of the first step
	Step   time.Duration
	Values []string  // of the column they are split by, most requests first; none without one
	Counts [][]int64 // by step: of each of the values and, last, of all others
}

// HistogramSteps is how many steps a histogram has at most.
const HistogramSteps = 200

// Histogram counts the requests that a filter selects by step, split by the most frequent values of a column ("" for none).
func (rd *Reader) Histogram(ctx context.Context, f EventFilter, split string, top, steps int) (h Histogram, err error) {
	counted, all, err := rd.stretches(ctx, &f)
	if err != nil {
		return h, fmt.Errorf("histogram of cluster %q: %w", f.Cluster, err)
	}
	by := columnOf(split)
	c, err := f.counting(by, counted, all)
	if err != nil {
		return h, fmt.Errorf("histogram of cluster %q: %w", f.Cluster, err)
	}
	if h.Stretch = c.Stretch; h.To.IsZero() {
		return h, nil
	}
	place := "toUInt16(0)"
	if by != nil {
		values, err := rd.facet(ctx, &f, split, counted, all, top)
		if err != nil {
			return h, fmt.Errorf("histogram of cluster %q: %w", f.Cluster, err)
		}
		places := make([]uint16, len(values.Values))
		for i, v := range values.Values {
			h.Values, places[i] = append(h.Values, v.Value), uint16(i+1)
		}
		if len(places) > 0 {
			place = "transform(" + by.value() + ", {values:Array(String)}, {places:Array(UInt16)}, toUInt16(0))"
			c.params["values"], c.params["places"] = statement.Texts(h.Values), statement.Numbers(places)
		}
	}
	least := time.Second
	if c.number == "sum(count)" {
		least = time.Minute
	}
	h.Step = max(stepWithin(h.To.Sub(h.From), steps-1), least) // one more by where they begin
	h.Begin = h.From.Truncate(h.Step)
	n := int(h.To.Sub(h.Begin)/h.Step) + 1
	if h.To.Equal(h.Begin.Add(time.Duration(n-1) * h.Step)) {
		n--
	}
	h.Counts = make([][]int64, n)
	for i := range h.Counts {
		h.Counts[i] = make([]int64, len(h.Values)+1)
	}
	c.params["begin"], c.params["step"] = fmt.Sprint(h.Begin.UnixMicro()), fmt.Sprint(h.Step.Microseconds())
	type count struct {
		step  int64
		place uint16
		n     int64
	}
	list, err := statement.Collect(ctx, rd.at, "SELECT intDiv("+c.at+" - {begin:Int64}, {step:Int64}) AS step, "+place+" AS place, "+
		c.number+" AS requests FROM %s."+c.rows+" GROUP BY step, place HAVING requests != 0", c.params,
		func(x *count) ([]any, func()) { return []any{&x.step, &x.place, &x.n}, nil })
	if err != nil {
		return h, fmt.Errorf("histogram of cluster %q: %w", f.Cluster, err)
	}
	for _, x := range list {
		if x.step < 0 || x.step >= int64(n) {
			continue // a minute before 1970
		}
		at := int(x.place) - 1
		if at < 0 {
			at = len(h.Values)
		}
		h.Counts[x.step][at] += x.n
	}
	return h, nil
}
