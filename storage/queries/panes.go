package queries

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// paneSums are the columns of a statement that counts; c0, v0 and x0 are of rules' first thresholds.
type paneSums struct {
	marks        []string // of marks: the hash of the value it counts for
	panes        []string // of panes
	counts, sets []string // names of those
}

func newPaneSums(m *markScan, byRule map[string][]verdict.Threshold) paneSums {
	most := 0
	for _, list := range byRule {
		most = max(most, len(list))
	}
	p := paneSums{marks: []string{"cluster", "sign", "toUInt64OrZero(substringIndex(h, '/', -1)) AS mask"}}
	for i := range most {
		var value strings.Builder
		atLeast := 0
		for place, rule := range m.rules {
			if list := byRule[rule]; i < len(list) && list[i].ByValue() {
				var of []string
				for _, name := range list[i].Distinct {
					sql, column := codec.CountedBy(name)
					of = append(of, sql)
					if !slices.Contains(m.columns, column) {
						m.columns = append(m.columns, column)
					}
				}
				fmt.Fprintf(&value, "rule = {rules:Array(String)}[%d], cityHash64(%s), ", place+1, strings.Join(of, ", "))
				atLeast = max(atLeast, list[i].AtLeast)
			}
		}
		set := "emptyArrayUInt64()"
		if atLeast > 0 {
			p.marks = append(p.marks, fmt.Sprintf("multiIf(%stoUInt64(0)) AS x%d", value.String(), i))
			set = fmt.Sprintf("groupUniqArrayIf(%d)(x%d, bitTest(mask, %[2]d) AND x%[2]d != 0)", atLeast, i)
		}
		p.panes = append(p.panes, fmt.Sprintf("sum(toInt64(sign) * toInt64(bitTest(mask, %d))) AS c%[1]d, %s AS v%[1]d", i, set))
		p.counts, p.sets = append(p.counts, fmt.Sprintf("c%d", i)), append(p.sets, fmt.Sprintf("v%d", i))
	}
	return p
}

// PaneCounts returns for every filter the groups whose marks in its stretch reach every threshold of the rule (in the filter's place), pane
// by pane of length Every; panes that the stretch cuts are counted whole. The filters are as for Marked; their own Panes are ignored. The
// name of a mark says after the slash, as a number, which thresholds the request counts for: bit i for the i-th. Some values of rows that
// were taken back may be counted.
func (rd *Reader) PaneCounts(ctx context.Context, filters []verdict.MarkFilter,
	thresholds [][]verdict.Threshold) ([][]verdict.PaneCounts, error) {
	out := make([][]verdict.PaneCounts, len(filters))
	if len(filters) == 0 {
		return out, nil
	}
	places, byRule := map[markedBy][]int{}, map[string][]verdict.Threshold{}
	for i, f := range filters {
		for _, t := range thresholds[i] {
			if at := slices.IndexFunc(t.Distinct, func(name string) bool { return !codec.Countable(name) }); at >= 0 {
				return nil, fmt.Errorf("count marks of rule %s: different values of %q cannot be counted", f.Rule, t.Distinct[at])
			}
		}
		of := markedBy{f.Cluster, f.Rule}
		places[of], byRule[f.Rule] = append(places[of], i), thresholds[i]
	}
	m := newMarkScan(filters)
	p := newPaneSums(m, byRule)
	having := make([]string, len(m.rules))
	for i, rule := range m.rules {
		having[i] = fmt.Sprintf("rule = {rules:Array(String)}[%d]", i+1)
		for c, t := range byRule[rule] {
			if t.ByValue() {
				having[i] += fmt.Sprintf(" AND length(groupUniqArrayArray(%d)(v%d)) >= %[1]d", t.AtLeast, c)
			} else {
				having[i] += fmt.Sprintf(" AND sum(c%d) >= %d", c, t.AtLeast)
			}
		}
	}
	type group struct {
		markedBy
		verdict.PaneCounts
	}
	groups, err := statement.Collect(ctx, rd.at,
		`SELECT cluster, rule, key, groupArray(pane), groupArray([`+strings.Join(p.counts, ", ")+`]), groupArray([`+
			strings.Join(p.sets, ", ")+`])
FROM
(
    SELECT cluster, rule, key, pane, `+strings.Join(p.panes, ", ")+`
    FROM (
`+m.sql(strings.Join(p.marks, ", "), m.within("whole", func(*verdict.MarkFilter) bool { return true }))+`
)
    GROUP BY cluster, rule, key, pane HAVING sum(toInt64(sign)) > 0
)
GROUP BY cluster, rule, key HAVING `+strings.Join(having, " OR ")+thrift, m.params, func(g *group) ([]any, func()) {
			return []any{&g.cluster, &g.rule, &g.Key, &g.Panes, &g.Counts, &g.Values}, nil
		})
	if err != nil {
		return nil, fmt.Errorf("count marks: %w", err)
	}
	for i := range groups {
		for _, place := range places[groups[i].markedBy] {
			if c, ok := within(&groups[i].PaneCounts, &filters[place], thresholds[place]); ok {
				out[place] = append(out[place], c)
			}
		}
	}
	return out, nil
}

// within returns the panes of a group that lie in the filter's stretch, if they count often enough.
func within(g *verdict.PaneCounts, f *verdict.MarkFilter, thresholds []verdict.Threshold) (verdict.PaneCounts, bool) {
	first, last := paneOf(f.From, f.Every), paneOf(f.To.Add(-time.Microsecond), f.Every)
	c := verdict.PaneCounts{Key: g.Key}
	tally := verdict.NewTally(thresholds)
	for i, n := range g.Panes {
		if n < first || n > last {
			continue
		}
		c.Panes, c.Counts, c.Values = append(c.Panes, n), append(c.Counts, g.Counts[i][:len(thresholds)]),
			append(c.Values, g.Values[i][:len(thresholds)])
		tally.Add(&c, len(c.Panes)-1)
	}
	return c, len(c.Panes) > 0 && tally.Enough()
}

// paneOf is the number of a request's pane: rounded down, before 1970 too.
func paneOf(at time.Time, every time.Duration) int64 {
	us, width := at.UnixMicro(), max(every.Microseconds(), 1)
	n := us / width
	if us%width < 0 {
		n--
	}
	return n
}
