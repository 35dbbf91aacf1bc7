package queries

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// This file reads marked requests for many filters at once: planning a statement over events
// costs more than the few rows most rules select.

// markScan is the part of a statement that has a row for every mark the filters may select:
// its request, its sign, rule, key, the request's time in microseconds and name (h).
type markScan struct {
	filters []verdict.MarkFilter
	rules   []string // of the filters, each once, sorted
	columns []string // that are read
	params  clickhouse.Parameters
}

func newMarkScan(filters []verdict.MarkFilter) *markScan {
	from, to := filters[0].From, filters[0].To
	m := &markScan{filters: filters,
		columns: []string{"request_key", "stage", "version", "sign", "audit_id", "request_received", "hits", "hit_keys"}}
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
		"cluster": statement.Text(filters[0].Cluster), "from_minute": fmt.Sprint(codec.Minute(from)),
		"to_minute": fmt.Sprint(codec.Minute(to)), "rules": statement.Texts(m.rules), "every": statement.Numbers(widths),
	}
	return m
}

// markSpan is the condition of events of the filters' cluster and time.
const markSpan = "cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute <= {to_minute:UInt32}"

// sql selects columns, and those of marks, of the marks a condition holds for; %[1]s is the database.
func (m *markScan) sql(columns, where string) string {
	return "SELECT " + columns +
		", substringIndex(h, '/', 1) AS rule, if(k = 0, xxHash64(audit_id), k) AS key, toUnixTimestamp64Micro(request_received) AS at," +
		"\n    transform(rule, {rules:Array(String)}, {every:Array(Int64)}, toInt64(1)) AS every, intDiv(at - positiveModulo(at, every), " +
		"every) AS pane" +
		"\nFROM (SELECT " + strings.Join(m.columns, ", ") + " FROM %[1]s.events WHERE " + markSpan + ")" +
		"\nARRAY JOIN hits AS h, hit_keys AS k WHERE " + where
}

// within is the condition of marks of the rules and times of some of the filters.
func (m *markScan) within(name string, some func(*verdict.MarkFilter) bool) string {
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
		m.params[param], m.params[param+"_from"], m.params[param+"_to"] = statement.Texts(rules[at]), fmt.Sprint(at.from), fmt.Sprint(at.to)
		conditions[i] = fmt.Sprintf("at >= {%[1]s_from:Int64} AND at < {%[1]s_to:Int64} AND rule IN {%[1]s:Array(String)}", param)
	}
	return strings.Join(conditions, " OR ")
}

// paneSet is a subquery of the panes of the filters. They go into the statement, as keys do: see keySet.
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
	return "(SELECT {rules:Array(String)}[r], k, n FROM (SELECT CAST('[" + rules.String() + "]', 'Array(UInt16)') AS rs, CAST('[" +
		keys.String() + "]', 'Array(UInt64)') AS ks, CAST('[" +
		panes.String() + "]', 'Array(Int64)') AS ns) ARRAY JOIN rs AS r, ks AS k, ns AS n)"
}

// Marked visits the standing rows any of the filters selects, each once, with the places of the
// filters that select it; the list is valid until visit returns. All filters are of one cluster,
// those of one rule have the same Every. Rows have what findings show and what any filter Reads; the rest is empty.
func (rd *Reader) Marked(ctx context.Context, filters []verdict.MarkFilter, visit func(row verdict.Row, selected []int) error) error {
	if len(filters) == 0 {
		return nil
	}
	m := newMarkScan(filters)
	var conditions []string
	if w := m.within("whole", func(f *verdict.MarkFilter) bool { return len(f.Panes) == 0 }); w != "" {
		conditions = append(conditions, w)
	}
	if w := m.within("paned", func(f *verdict.MarkFilter) bool { return len(f.Panes) > 0 }); w != "" {
		conditions = append(conditions, "("+w+") AND (rule, key, pane) IN "+m.paneSet())
	}
	reads := map[string]bool{}
	for _, f := range filters {
		for _, name := range f.Reads {
			reads[name] = true
		}
	}
	r := codec.NewStored()
	columns, to, err := r.Asked(reads)
	if err != nil {
		return fmt.Errorf("read marked requests: %w", err)
	}
	ctx, cancel := context.WithCancel(statement.Params(ctx, m.params))
	defer cancel()
	// What stands is found by the columns that tell rows apart; only of those the rest is read.
	res, err := rd.at.Conn.Query(ctx, fmt.Sprintf("SELECT "+strings.Join(columns, ", ")+" FROM %[1]s.events WHERE sign = 1 AND "+markSpan+
		"\nAND (request_key, stage, version) IN (SELECT request_key, stage, version FROM (\n"+
		m.sql("request_key, stage, version, sign", strings.Join(conditions, " OR "))+
		"\n) GROUP BY request_key, stage, version HAVING sum(toInt64(sign)) > 0)\nLIMIT 1 BY request_key, stage, version"+thrift,
		rd.at.Name))
	if err != nil {
		return fmt.Errorf("read marked requests: %w", err)
	}
	defer res.Close()
	match := newMarkMatch(filters)
	for res.Next() {
		r.Reset()
		if err := res.Scan(to...); err != nil {
			return fmt.Errorf("read marked requests: %w", err)
		}
		row, err := r.Row()
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
	filters []verdict.MarkFilter
	byRule  map[string][]int
	panes   []map[verdict.Pane]struct{}
	list    []int
}

func newMarkMatch(filters []verdict.MarkFilter) *markMatch {
	m := &markMatch{filters: filters, byRule: map[string][]int{}, panes: make([]map[verdict.Pane]struct{}, len(filters))}
	for i, f := range filters {
		m.byRule[f.Rule] = append(m.byRule[f.Rule], i)
		if len(f.Panes) > 0 {
			m.panes[i] = make(map[verdict.Pane]struct{}, len(f.Panes))
			for _, p := range f.Panes {
				m.panes[i][p] = struct{}{}
			}
		}
	}
	return m
}

func (m *markMatch) of(r *verdict.Row) []int {
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
				if _, ok := m.panes[i][verdict.Pane{Key: mark.Key, Number: paneOf(at, f.Every)}]; !ok {
					continue
				}
			}
			m.list = append(m.list, i)
		}
	}
	return m.list
}
