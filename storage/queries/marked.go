package queries

import (
	"bytes"
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
// its request, its sign, cluster, rule, key, the request's time in microseconds and name (h).
type markScan struct {
	filters  []verdict.MarkFilter
	clusters []string // of the filters, each once, sorted
	rules    []string // likewise
	columns  []string // that are read
	params   clickhouse.Parameters
}

func newMarkScan(filters []verdict.MarkFilter) *markScan {
	from, to := filters[0].From, filters[0].To
	m := &markScan{filters: filters,
		columns: []string{"cluster", "request_key", "stage", "version", "sign", "audit_id", "request_received", "hits", "hit_keys"}}
	every := map[string]int64{}
	for _, f := range filters {
		if f.From.Before(from) {
			from = f.From
		}
		if f.To.After(to) {
			to = f.To
		}
		m.clusters, m.rules = append(m.clusters, f.Cluster), append(m.rules, f.Rule)
		every[f.Rule] = max(f.Every.Microseconds(), 1)
	}
	slices.Sort(m.clusters)
	slices.Sort(m.rules)
	m.clusters, m.rules = slices.Compact(m.clusters), slices.Compact(m.rules)
	widths := make([]int64, len(m.rules))
	for i, r := range m.rules {
		widths[i] = every[r]
	}
	m.params = clickhouse.Parameters{
		"clusters": statement.Texts(m.clusters), "from_minute": fmt.Sprint(codec.Minute(from)),
		"to_minute": fmt.Sprint(codec.Minute(to)), "rules": statement.Texts(m.rules), "every": statement.Numbers(widths),
	}
	return m
}

// markSpan is the condition of events of the filters' clusters and time, markMinutes that of the time.
const (
	markSpan    = "cluster IN {clusters:Array(String)} AND " + markMinutes
	markMinutes = "minute >= {from_minute:UInt32} AND minute <= {to_minute:UInt32}"
)

// sql selects columns, and those of marks, of the marks a condition holds for; %[1]s is the database.
func (m *markScan) sql(columns, where string) string {
	return "SELECT " + columns +
		", substringIndex(h, '/', 1) AS rule, if(k = 0, xxHash64(audit_id), k) AS key, toUnixTimestamp64Micro(request_received) AS at," +
		"\n    transform(rule, {rules:Array(String)}, {every:Array(Int64)}, toInt64(1)) AS every, intDiv(at - positiveModulo(at, every), " +
		"every) AS pane" +
		"\nFROM (SELECT " + strings.Join(m.columns, ", ") + " FROM %[1]s.events WHERE " + markSpan + ")" +
		"\nARRAY JOIN hits AS h, hit_keys AS k WHERE " + where
}

// within is the condition of marks of the clusters, rules and times of some of the filters: an alternative for each list of rules that is
// wanted of one stretch of time, whichever clusters it is wanted of.
func (m *markScan) within(name string, some func(*verdict.MarkFilter) bool) string {
	type stretch struct{ from, to int64 }
	type ofCluster struct {
		stretch
		cluster string
	}
	rules := map[ofCluster][]string{}
	var order []ofCluster
	for i := range m.filters {
		f := &m.filters[i]
		if !some(f) {
			continue
		}
		at := ofCluster{stretch{f.From.UnixMicro(), f.To.UnixMicro()}, f.Cluster}
		if rules[at] == nil {
			order = append(order, at)
		}
		rules[at] = append(rules[at], f.Rule)
	}
	slices.SortFunc(order, func(a, b ofCluster) int {
		return cmp.Or(cmp.Compare(a.from, b.from), cmp.Compare(a.to, b.to), cmp.Compare(a.cluster, b.cluster))
	})
	type alternative struct {
		stretch
		rules string
	}
	clusters := map[alternative][]string{}
	var alternatives []alternative
	for _, at := range order {
		slices.Sort(rules[at])
		a := alternative{at.stretch, statement.Texts(slices.Compact(rules[at]))}
		if clusters[a] == nil {
			alternatives = append(alternatives, a)
		}
		clusters[a] = append(clusters[a], at.cluster)
	}
	conditions := make([]string, len(alternatives))
	for i, a := range alternatives {
		param := fmt.Sprint(name, i)
		m.params[param], m.params[param+"_from"], m.params[param+"_to"] = a.rules, fmt.Sprint(a.from), fmt.Sprint(a.to)
		conditions[i] = fmt.Sprintf("at >= {%[1]s_from:Int64} AND at < {%[1]s_to:Int64} AND rule IN {%[1]s:Array(String)}", param)
		if len(clusters[a]) < len(m.clusters) {
			m.params[param+"_of"] = statement.Texts(clusters[a])
			conditions[i] += fmt.Sprintf(" AND cluster IN {%s_of:Array(String)}", param)
		}
	}
	return strings.Join(conditions, " OR ")
}

// paneSet is a subquery of the panes of the filters. They go into the statement, as keys do: see keySet.
func (m *markScan) paneSet() string {
	var clusters, rules, keys, panes []byte
	for i := range m.filters {
		cluster, _ := slices.BinarySearch(m.clusters, m.filters[i].Cluster)
		rule, _ := slices.BinarySearch(m.rules, m.filters[i].Rule)
		for _, p := range m.filters[i].Panes {
			clusters = append(strconv.AppendInt(clusters, int64(cluster+1), 10), ',')
			rules = append(strconv.AppendInt(rules, int64(rule+1), 10), ',')
			keys = append(strconv.AppendUint(keys, p.Key, 10), ',')
			panes = append(strconv.AppendInt(panes, p.Number, 10), ',')
		}
	}
	array := func(list []byte, of string) string {
		return fmt.Sprintf("CAST('[%s]', 'Array(%s)')", bytes.TrimSuffix(list, []byte{','}), of)
	}
	return "(SELECT {clusters:Array(String)}[c], {rules:Array(String)}[r], k, n FROM (SELECT " + array(clusters, "UInt16") + " AS cs, " +
		array(rules, "UInt16") + " AS rs, " + array(keys, "UInt64") + " AS ks, " + array(panes, "Int64") +
		" AS ns) ARRAY JOIN cs AS c, rs AS r, ks AS k, ns AS n)"
}

// Marked visits the standing rows any of the filters selects, each once, with the places of the
// filters that select it; the list is valid until visit returns. Filters of one rule have the same
// Every. Rows have what findings show and what any filter Reads; the rest is empty.
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
		conditions = append(conditions, "("+w+") AND (cluster, rule, key, pane) IN "+m.paneSet())
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

// markedBy are the cluster of a marked request and the rule.
type markedBy struct{ cluster, rule string }

// markMatch tells which of many filters select a row.
type markMatch struct {
	filters []verdict.MarkFilter
	by      map[markedBy][]int
	panes   []map[verdict.Pane]struct{}
	list    []int
}

func newMarkMatch(filters []verdict.MarkFilter) *markMatch {
	m := &markMatch{filters: filters, by: map[markedBy][]int{}, panes: make([]map[verdict.Pane]struct{}, len(filters))}
	for i, f := range filters {
		of := markedBy{f.Cluster, f.Rule}
		m.by[of] = append(m.by[of], i)
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
		for _, i := range m.by[markedBy{r.Cluster, rule}] {
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
