package storage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/replay"
)

// This file reads marked requests for many filters at once: planning a statement over events
// costs more than the few rows most rules select.

// unasked are columns no rule can ask about (see analysis/detect, Variables), nor a finding
// shows. They are most of a row: each costs the store a column to read and the driver a value to
// convert, for every request of a rule that counts.
var unasked = map[string]bool{ //nolint:gochecknoglobals // constant table
	"source": true, "toUnixTimestamp64Micro(ingested)": true, "epoch": true, "kpart": true, "koffset": true, "content": true, "size": true, "row_revision": true,
	"impersonated_uid": true, "impersonated_extra": true, "impersonation_constraint": true,
	"object_resource": true, "object_namespace": true, "object_name": true, "object_uid": true, "object_api_group": true,
	"object_api_version": true, "object_resource_version": true, "object_subresource": true,
	"unknown_at": true, "unknown_name": true, "unknown_value": true, "cause": true, "errors": true,
	"attr_api_version": true, "attr_path": true, "attr_label_selector": true, "attr_field_selector": true,
	"impersonation": true, "impersonation_mode": true, "impersonation_grants": true, "impersonation_missing": true,
	"admission_plugin": true, "admission_namespace_lifecycle": true, "policy_revision": true, "engine_version": true, "config_version": true,
	"evidence": true, "explained": true, "chain": true, "implied": true, "implied_grants": true, "review": true,
}

// asked are the places in stored.targets of what rules can ask about.
func asked(bodies bool) (places []int, columns []string) {
	for i, t := range new(stored).targets() {
		if !unasked[t.sql] && (bodies || t.sql != "request_object" && t.sql != "response_object") {
			places, columns = append(places, i), append(columns, t.sql)
		}
	}
	return places, columns
}

// markScan is the part of a statement that has a row for every mark the filters may select:
// its request, its sign, rule, key, the request's time in microseconds and name (h).
type markScan struct {
	filters []replay.MarkFilter
	rules   []string // of the filters, each once, sorted
	params  clickhouse.Parameters
}

func newMarkScan(filters []replay.MarkFilter) *markScan {
	from, to := filters[0].From, filters[0].To
	m := &markScan{filters: filters}
	every := map[string]int64{}
	for _, f := range filters {
		if f.From.Before(from) {
			from = f.From
		}
		if f.To.After(to) {
			to = f.To
		}
		if _, ok := every[f.Rule]; !ok {
			m.rules = append(m.rules, f.Rule)
		}
		every[f.Rule] = max(f.Every.Microseconds(), 1)
	}
	slices.Sort(m.rules)
	widths := make([]int64, len(m.rules))
	for i, r := range m.rules {
		widths[i] = every[r]
	}
	m.params = clickhouse.Parameters{
		"cluster": text(filters[0].Cluster), "from_minute": fmt.Sprint(minute(from)), "to_minute": fmt.Sprint(minute(to)),
		"rules": texts(m.rules), "every": numbers(widths),
	}
	return m
}

// markSpan is the condition of events of the filters' cluster and time.
const markSpan = "cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute <= {to_minute:UInt32}"

// sql selects columns, and those of marks, of the marks a condition holds for; %[1]s is the database.
func (m *markScan) sql(columns, where string) string {
	return "SELECT " + columns + ", substringIndex(h, '/', 1) AS rule, if(k = 0, xxHash64(audit_id), k) AS key, toUnixTimestamp64Micro(request_received) AS at," +
		"\n    transform(rule, {rules:Array(String)}, {every:Array(Int64)}, toInt64(1)) AS every, intDiv(at - positiveModulo(at, every), every) AS pane" +
		"\nFROM (SELECT request_key, stage, version, sign, audit_id, request_received, hits, hit_keys FROM %[1]s.events WHERE " + markSpan + ")" +
		"\nARRAY JOIN hits AS h, hit_keys AS k WHERE " + where
}

// within is the condition of marks of the rules and times of some of the filters.
func (m *markScan) within(name string, some func(*replay.MarkFilter) bool) string {
	type stretch struct{ from, to int64 }
	rules := map[stretch][]string{}
	var order []stretch
	for i := range m.filters {
		f := &m.filters[i]
		if !some(f) {
			continue
		}
		at := stretch{f.From.UnixMicro(), f.To.UnixMicro()}
		if rules[at] == nil {
			order = append(order, at)
		}
		rules[at] = append(rules[at], f.Rule)
	}
	slices.SortFunc(order, func(a, b stretch) int { return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to)) })
	conditions := make([]string, len(order))
	for i, at := range order {
		param := fmt.Sprint(name, i)
		m.params[param], m.params[param+"_from"], m.params[param+"_to"] = texts(rules[at]), fmt.Sprint(at.from), fmt.Sprint(at.to)
		conditions[i] = fmt.Sprintf("at >= {%[1]s_from:Int64} AND at < {%[1]s_to:Int64} AND rule IN {%[1]s:Array(String)}", param)
	}
	return strings.Join(conditions, " OR ")
}

// paneSet is a subquery of the panes of the filters. They go into the statement, as keys do:
// see keySet.
func (m *markScan) paneSet() string {
	var rules, keys, panes strings.Builder
	for i := range m.filters {
		at, _ := slices.BinarySearch(m.rules, m.filters[i].Rule)
		for _, p := range m.filters[i].Panes {
			if keys.Len() > 0 {
				rules.WriteByte(',')
				keys.WriteByte(',')
				panes.WriteByte(',')
			}
			rules.WriteString(strconv.Itoa(at + 1))
			keys.WriteString(strconv.FormatUint(p.Key, 10))
			panes.WriteString(strconv.FormatInt(p.Number, 10))
		}
	}
	return "(SELECT {rules:Array(String)}[r], k, n FROM (SELECT CAST('[" + rules.String() + "]', 'Array(UInt16)') AS rs, CAST('[" + keys.String() + "]', 'Array(UInt64)') AS ks, CAST('[" +
		panes.String() + "]', 'Array(Int64)') AS ns) ARRAY JOIN rs AS r, ks AS k, ns AS n)"
}

// Marked visits the standing rows any of the filters selects, each once, with the places of the
// filters that select it; the list is valid until visit returns. All filters are of one cluster,
// those of one rule have the same Every. Rows have what rules can ask about: see unasked for what
// stays empty; they have bodies when any filter wants them.
func (s *Store) Marked(ctx context.Context, filters []replay.MarkFilter, visit func(row replay.Row, selected []int) error) error {
	if len(filters) == 0 {
		return nil
	}
	m := newMarkScan(filters)
	var conditions []string
	if w := m.within("whole", func(f *replay.MarkFilter) bool { return len(f.Panes) == 0 }); w != "" {
		conditions = append(conditions, w)
	}
	if w := m.within("paned", func(f *replay.MarkFilter) bool { return len(f.Panes) > 0 }); w != "" {
		conditions = append(conditions, "("+w+") AND (rule, key, pane) IN "+m.paneSet())
	}
	ctx, cancel := context.WithCancel(params(ctx, m.params))
	defer cancel()
	// What stands is found by the columns that tell rows apart; only of those the rest is read.
	places, columns := asked(slices.ContainsFunc(filters, func(f replay.MarkFilter) bool { return !f.NoBodies }))
	var r stored
	all, to := r.targets(), make([]any, len(places))
	for i, at := range places {
		to[i] = all[at].to
	}
	res, err := s.conn.Query(ctx, fmt.Sprintf("SELECT "+strings.Join(columns, ", ")+" FROM %[1]s.events WHERE sign = 1 AND "+markSpan+
		"\nAND (request_key, stage, version) IN (SELECT request_key, stage, version FROM (\n"+m.sql("request_key, stage, version, sign", strings.Join(conditions, " OR "))+
		"\n) GROUP BY request_key, stage, version HAVING sum(toInt64(sign)) > 0)\nLIMIT 1 BY request_key, stage, version"+thrift, s.db))
	if err != nil {
		return fmt.Errorf("read marked requests: %w", err)
	}
	defer res.Close()
	match := newMarkMatch(filters)
	for res.Next() {
		r = stored{} // what a row refers to is its own
		if err := res.Scan(to...); err != nil {
			return fmt.Errorf("read marked requests: %w", err)
		}
		row, err := r.row()
		if err != nil {
			return fmt.Errorf("read marked requests: %w", err)
		}
		if selected := match.of(&row); len(selected) > 0 {
			if err := visit(row, selected); err != nil {
				return err
			}
		}
	}
	if err := res.Err(); err != nil {
		return fmt.Errorf("read marked requests: %w", err)
	}
	return nil
}

// markMatch tells which of many filters select a row.
type markMatch struct {
	filters []replay.MarkFilter
	byRule  map[string][]int
	panes   []map[replay.Pane]struct{}
	list    []int
}

func newMarkMatch(filters []replay.MarkFilter) *markMatch {
	m := &markMatch{filters: filters, byRule: map[string][]int{}, panes: make([]map[replay.Pane]struct{}, len(filters))}
	for i, f := range filters {
		m.byRule[f.Rule] = append(m.byRule[f.Rule], i)
		if len(f.Panes) > 0 {
			m.panes[i] = make(map[replay.Pane]struct{}, len(f.Panes))
			for _, p := range f.Panes {
				m.panes[i][p] = struct{}{}
			}
		}
	}
	return m
}

func (m *markMatch) of(r *replay.Row) []int {
	m.list = m.list[:0]
	at := r.Event.RequestReceivedTimestamp
	for _, mark := range r.Marks {
		rule, _, _ := strings.Cut(mark.Name, "/")
		for _, i := range m.byRule[rule] {
			f := &m.filters[i]
			if at.Before(f.From) || !at.Before(f.To) {
				continue
			}
			if m.panes[i] != nil {
				if _, ok := m.panes[i][replay.Pane{Key: mark.Key, Number: paneOf(at, f.Every)}]; !ok {
					continue
				}
			}
			m.list = append(m.list, i)
		}
	}
	return m.list
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

// PaneCounts returns for every filter the groups whose marks in its stretch count often enough
// for every one of the rule's thresholds (atLeast, in the filter's place), pane by pane of length
// Every; panes the stretch cuts are counted whole. The filters are as for Marked, their own Panes are not
// looked at. The name of a mark says after the slash, as a number, which thresholds the request
// counts for: bit i for the i-th.
func (s *Store) PaneCounts(ctx context.Context, filters []replay.MarkFilter, atLeast [][]int) ([][]replay.PaneCounts, error) {
	out := make([][]replay.PaneCounts, len(filters))
	if len(filters) == 0 {
		return out, nil
	}
	m := newMarkScan(filters)
	byRule := map[string][]int{}
	most := 0
	for i, f := range filters {
		byRule[f.Rule] = append(byRule[f.Rule], i)
		most = max(most, len(atLeast[i]))
	}
	sums, counts := make([]string, most), make([]string, most)
	for i := range most {
		sums[i] = fmt.Sprintf("sum(toInt64(sign) * toInt64(bitTest(mask, %d))) AS c%[1]d", i)
		counts[i] = fmt.Sprintf("c%d", i)
	}
	having := make([]string, len(m.rules))
	for i, rule := range m.rules {
		having[i] = fmt.Sprintf("rule = {rules:Array(String)}[%d]", i+1)
		for c, n := range atLeast[byRule[rule][0]] {
			having[i] += fmt.Sprintf(" AND sum(c%d) >= %d", c, n)
		}
	}
	type group struct {
		rule string
		replay.PaneCounts
	}
	groups, err := collect(ctx, s, `SELECT rule, key, groupArray(pane), groupArray([`+strings.Join(counts, ", ")+`])
FROM
(
    SELECT rule, key, pane, `+strings.Join(sums, ", ")+`
    FROM (
`+m.sql("sign, toUInt64OrZero(substringIndex(h, '/', -1)) AS mask", m.within("whole", func(*replay.MarkFilter) bool { return true }))+`
)
    GROUP BY rule, key, pane HAVING sum(toInt64(sign)) > 0
)
GROUP BY rule, key HAVING `+strings.Join(having, " OR ")+thrift, m.params, func(g *group) ([]any, func()) {
		return []any{&g.rule, &g.Key, &g.Panes, &g.Counts}, nil
	})
	if err != nil {
		return nil, fmt.Errorf("count marks: %w", err)
	}
	for i := range groups {
		for _, place := range byRule[groups[i].rule] {
			if c, ok := within(&groups[i].PaneCounts, &filters[place], atLeast[place]); ok {
				out[place] = append(out[place], c)
			}
		}
	}
	return out, nil
}

// within returns the panes of a group that lie in the filter's stretch, if they count often enough.
func within(g *replay.PaneCounts, f *replay.MarkFilter, atLeast []int) (replay.PaneCounts, bool) {
	first, last := paneOf(f.From, f.Every), paneOf(f.To.Add(-time.Microsecond), f.Every)
	c := replay.PaneCounts{Key: g.Key}
	sums := make([]int64, len(atLeast))
	for i, n := range g.Panes {
		if n < first || n > last {
			continue
		}
		c.Panes, c.Counts = append(c.Panes, n), append(c.Counts, g.Counts[i][:len(atLeast)])
		for t := range sums {
			sums[t] += g.Counts[i][t]
		}
	}
	for t, n := range atLeast {
		if sums[t] < int64(n) {
			return c, false
		}
	}
	return c, len(c.Panes) > 0
}
