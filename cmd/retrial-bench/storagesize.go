package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/query"
	"github.com/retrial-io/retrial/verdict"
)

// zstdLines is how many lines, from the first on, the baseline is taken of.
const zstdLines = 200_000

// storageResult is what `bench storage -o json` prints. Bytes are on disk and per event.
type storageResult struct {
	Rows          int64              `json:"rows"`
	Seed          uint64             `json:"seed"`
	FillSeconds   float64            `json:"fill_seconds"`
	LineBytes     int64              `json:"line_bytes"` // all events as JSON lines
	SampleLines   int64              `json:"sample_lines"`
	SampleBytes   int64              `json:"sample_bytes"`
	Baseline      float64            `json:"zstd19_bytes_per_event"`
	EventColumns  float64            `json:"event_columns_bytes_per_event"`
	Ratio         float64            `json:"event_columns_to_zstd19"`
	RebuiltEvents int64              `json:"events_rebuilt_byte_for_byte"`
	Groups        map[string]float64 `json:"events_by_group"`
	Columns       map[string]float64 `json:"events_by_column"`
	Tables        map[string]float64 `json:"tables"`
	Total         float64            `json:"total_bytes_per_event"`
	Otel          float64            `json:"otel_logs_bytes_per_event,omitempty"`
	OtelPlain     float64            `json:"otel_logs_unparsed_bytes_per_event,omitempty"`
	OtelColumns   map[string]float64 `json:"otel_logs_by_column,omitempty"`
	OtelRatio     float64            `json:"total_to_otel_logs,omitempty"`
	Outcomes      map[string]int64   `json:"outcomes"`

	Questions      map[string]questionCost `json:"questions"`
	Times          int                     `json:"times"`
	QuestionsTimes map[string]questionCost `json:"questions_times,omitempty"` // of the larger store
	Drawn          *drawnLists             `json:"drawn_lists,omitempty"`
	DrawnTimes     *drawnLists             `json:"drawn_lists_times,omitempty"`
	Together       *together               `json:"together,omitempty"`
	TogetherTimes  *together               `json:"together_times,omitempty"`
	Pages          *pagesCost              `json:"pages,omitempty"`
	PagesUnmerged  *pagesCost              `json:"pages_unmerged,omitempty"` // of a store that was just filled
}

func (r *storageResult) finish() {
	if r.Baseline > 0 {
		r.Ratio = r.EventColumns / r.Baseline
	}
	if r.Otel > 0 {
		r.OtelRatio = r.Total / r.Otel
	}
}

// columnGroup returns what a column of events is for: the event itself, its place and keys, or the
// verdict.
func columnGroup(name string) string {
	switch name {
	case "level", "audit_id", "audit_uuid", "audit_text", "stage", "request_uri", "verb", "source_ips", "user_agent", "code",
		"response_status", "request_object",
		"response_object", "request_received", "stage_delay", "annotations", "shape", "impersonation_constraint":
		return "event"
	case "cluster", "source", "apiserver", "ingested", "ingest_day", "epoch", "kpart", "koffset", "request_key", "content", "size", "sign",
		"version", "row_revision", "minute", "day", "subject", "status_reason":
		return "place and keys"
	case "access", "access_name", "access_path", "group_set":
		return "verdict"
	}
	for _, prefix := range []string{"user_", "impersonated_", "object_", "unknown_"} {
		if strings.HasPrefix(name, prefix) {
			return "event"
		}
	}
	return "verdict"
}

// merge merges every table to one part per partition. Parts are made wide, whatever their size:
// only for wide parts the engine reports the size of each column.
func (b *storageBench) merge(ctx context.Context) error {
	tables, err := rawRows(ctx, b.engine, "SELECT database, name, engine FROM system.tables WHERE database IN ('retrial', 'otel') AND "+
		"engine LIKE '%MergeTree%'")
	if err != nil {
		return err
	}
	for _, t := range tables {
		name := t[0] + "." + t[1]
		for _, sql := range []string{
			"ALTER TABLE " + name + " MODIFY SETTING min_bytes_for_wide_part = 0, min_rows_for_wide_part = 0",
			"OPTIMIZE TABLE " + name + " FINAL SETTINGS optimize_skip_merged_partitions = 0",
		} {
			if _, err := rawRows(ctx, b.engine, sql); err != nil {
				return err
			}
		}
	}
	return nil
}

// measure reads what columns and tables take.
func (b *storageBench) measure(ctx context.Context, r *storageResult) error {
	n, lines := float64(r.Rows), float64(min(r.Rows, otelLines))
	r.Groups, r.Columns, r.Tables, r.OtelColumns, r.Outcomes = map[string]float64{}, map[string]float64{}, map[string]float64{},
		map[string]float64{}, map[string]int64{}
	tables, err := rawRows(ctx, b.engine, "SELECT database, table, sum(bytes_on_disk) FROM system.parts WHERE active AND database IN "+
		"('retrial', 'otel') GROUP BY database, table")
	if err != nil {
		return err
	}
	for _, t := range tables {
		switch bytes := numeric(t[2]); t[1] {
		case "otel_logs":
			r.Otel = bytes / lines
		case "otel_plain":
			r.OtelPlain = bytes / lines
		default:
			r.Tables[t[1]] = bytes / n
			r.Total += bytes / n
		}
	}
	columns, err := rawRows(ctx, b.engine, "SELECT database, table, column, sum(column_bytes_on_disk) FROM system.parts_columns WHERE "+
		"active AND (database, table) IN (('retrial', 'events'), ('otel', 'otel_logs')) GROUP BY database, table, column")
	if err != nil {
		return err
	}
	for _, c := range columns {
		bytes := numeric(c[3]) / n
		if c[0] == "otel" {
			r.OtelColumns[c[2]] = numeric(c[3]) / lines
			continue
		}
		r.Columns[c[2]] = bytes
		r.Groups[columnGroup(c[2])] += bytes
	}
	r.EventColumns = r.Groups["event"]
	rest := r.Tables["events"]
	for _, g := range r.Groups {
		rest -= g
	}
	r.Groups["indexes"] = rest
	shares, err := b.store.Outcomes(ctx, benchCluster, time.Unix(0, 0), time.Unix(1<<32-1, 0))
	for _, s := range shares {
		r.Outcomes[strings.TrimSuffix(s.Outcome+" "+s.Class, " ")] += s.Requests
	}
	return err
}

// baseline returns the bytes zstd takes for an event of the sample at level 19.
func (b *storageBench) baseline(ctx context.Context) (float64, error) {
	to := b.lines + ".zst"
	if _, err := rawRows(ctx, b.engine, "INSERT INTO FUNCTION file('"+to+"', 'LineAsString', 'line String', 'zstd') SELECT line FROM "+
		"file('"+b.lines+"', 'LineAsString', 'line String') SETTINGS max_threads = 1, max_memory_usage = 0, "+
		"output_format_compression_level = 19"); err != nil {
		return 0, err
	}
	info, err := os.Stat(to)
	if err != nil {
		return 0, err
	}
	lines, err := rawRows(ctx, b.engine, "SELECT count() FROM file('"+b.lines+"', 'LineAsString', 'line String')")
	if err != nil {
		return 0, err
	}
	return float64(info.Size()) / numeric(lines[0][0]), nil
}

// rebuild makes stored events JSON again and compares them with the lines they came from: as
// many as the sample's first blocks have.
func (b *storageBench) rebuild(ctx context.Context) (int64, error) {
	f, err := os.Open(b.lines)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	want := map[event.Hash128][]byte{}
	lines := event.NewLines(f, 0)
	for len(want) < benchBlock {
		line, _, err := lines.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, err
		}
		e, err := event.Decode(line)
		if err != nil {
			return 0, err
		}
		want[event.EventKey(event.RequestKey(benchCluster, e), e)] = slices.Clone(line)
	}
	all, n := len(want), int64(0)
	var buf []byte
	err = b.store.VisitRows(ctx, benchCluster, func(r verdict.Row) error {
		line, ok := want[r.EventKey]
		if !ok {
			return nil
		}
		if buf = event.AppendJSON(buf[:0], r.Event); !bytes.Equal(buf, line) {
			return fmt.Errorf("event %s was not rebuilt:\nstored %s\nsent   %s", r.Event.AuditID, buf, line)
		}
		n++
		delete(want, r.EventKey)
		if len(want) == 0 {
			return query.ErrEnough
		}
		return nil
	})
	if err != nil && !errors.Is(err, query.ErrEnough) {
		return n, err
	}
	if len(want) > 0 {
		return n, fmt.Errorf("%d of %d events are not in the store", len(want), all)
	}
	return n, nil
}

func (r *storageResult) print(out io.Writer) error {
	w := tabwriter.NewWriter(out, 0, 4, 2, ' ', tabwriter.AlignRight)
	if r.LineBytes > 0 {
		r.printSizes(w)
	}
	r.printQuestions(w)
	r.Drawn.print(w, 1)
	r.Together.print(w, r.Rows)
	r.DrawnTimes.print(w, r.Times)
	r.TogetherTimes.print(w, r.Rows*int64(r.Times))
	if r.PagesUnmerged != nil {
		fmt.Fprint(w, "\nBEFORE MERGING\t\n")
		r.PagesUnmerged.print(w)
		fmt.Fprint(w, "\nMERGED\t\n")
	}
	r.Pages.print(w)
	return w.Flush()
}

// printSizes prints what a store that was filled takes.
func (r *storageResult) printSizes(w io.Writer) {
	n := float64(r.Rows)
	fmt.Fprintf(w, "events\t%d\tof %.0f bytes\t\n", r.Rows, float64(r.LineBytes)/n)
	fmt.Fprintf(w, "zstd -19\t%.1f\tbytes an event, %d lines\t\n", r.Baseline, r.SampleLines)
	fmt.Fprintf(w, "event columns\t%.1f\t%.2f of zstd -19\t\n", r.EventColumns, r.Ratio)
	section := func(title string, m map[string]float64) {
		fmt.Fprintf(w, "\n%s\t\t\t\n", title)
		names := make([]string, 0, len(m))
		for k := range m {
			names = append(names, k)
		}
		slices.SortFunc(names, func(a, b string) int {
			if m[a] != m[b] {
				if m[a] > m[b] {
					return -1
				}
				return 1
			}
			return strings.Compare(a, b)
		})
		for _, k := range names {
			fmt.Fprintf(w, "%s\t%.2f\t\t\n", k, m[k])
		}
	}
	section("EVENTS BY GROUP", r.Groups)
	section("EVENTS BY COLUMN", r.Columns)
	section("TABLES", r.Tables)
	fmt.Fprintf(w, "\ntotal\t%.1f\t\t\n", r.Total)
	if r.Otel > 0 {
		section("OTEL_LOGS", r.OtelColumns)
		fmt.Fprintf(w, "\notel_logs\t%.1f\tours is %.2f of it\t\n", r.Otel, r.OtelRatio)
		fmt.Fprintf(w, "lines unparsed\t%.1f\tours is %.2f of it\t\n", r.OtelPlain, r.Total/r.OtelPlain)
	}
	fmt.Fprintf(w, "rebuilt byte for byte\t%d\tevents\t\n", r.RebuiltEvents)
	for _, k := range slices.Sorted(maps.Keys(r.Outcomes)) {
		fmt.Fprintf(w, "%s\t%d\t\t\n", k, r.Outcomes[k])
	}
}

// printQuestions prints what was asked.
func (r *storageResult) printQuestions(w io.Writer) {
	for _, at := range []struct {
		rows int64
		cost map[string]questionCost
	}{{r.Rows, r.Questions}, {r.Rows * int64(r.Times), r.QuestionsTimes}} {
		if len(at.cost) == 0 {
			continue
		}
		fmt.Fprintf(w, "\nQUESTIONS OF %d EVENTS\tms\tCPU ms\tMB read\trows read\tanswer\t\n", at.rows)
		for _, k := range slices.Sorted(maps.Keys(at.cost)) {
			c := at.cost[k]
			fmt.Fprintf(w, "%s\t%.0f\t%.0f\t%.1f\t%d\t%d\t\n", k, c.Seconds*1e3, c.CPU*1e3, float64(c.Bytes)/1e6, c.Rows, c.Answer)
		}
	}
}

// rawRows runs a statement at the engine and returns its rows as texts.
func rawRows(ctx context.Context, engine http.RoundTripper, sql string) ([][]string, error) {
	form := ""
	if strings.HasPrefix(sql, "SELECT") {
		form = " FORMAT JSONCompact SETTINGS output_format_json_quote_64bit_integers = 0"
	}
	body, err := rawQuery(ctx, engine, sql+form, nil, nil)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	text, err := io.ReadAll(body)
	if err != nil || len(text) == 0 {
		return nil, err
	}
	var answer struct{ Data [][]any }
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.UseNumber()
	if err := dec.Decode(&answer); err != nil {
		return nil, fmt.Errorf("%s: %w", sql, err)
	}
	out := make([][]string, len(answer.Data))
	for i, row := range answer.Data {
		for _, v := range row {
			out[i] = append(out[i], fmt.Sprint(v))
		}
	}
	return out, nil
}

// rawQuery posts a statement, with parameters and the data of an INSERT.
func rawQuery(ctx context.Context, engine http.RoundTripper, sql string, params map[string]string, data io.Reader) (io.ReadCloser, error) {
	args := url.Values{"query": {sql}}
	for k, v := range params {
		args.Set("param_"+k, v)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://embedded/?"+args.Encode(), data)
	if err != nil {
		return nil, err
	}
	res, err := engine.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(res.Body, 4096)) // the error is what matters
		return nil, fmt.Errorf("%s: %s", sql[:min(len(sql), 200)], text)
	}
	return res.Body, nil
}

func numeric(text string) float64 {
	var f float64
	_, _ = fmt.Sscan(text, &f) // the engine prints numbers
	return f
}
