package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/internal/procstat"
	"github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/storage/queries"
)

// questionCost is the cost of a query.
type questionCost struct {
	Seconds float64 `json:"seconds"`     // the median of five
	CPU     float64 `json:"cpu_seconds"` // of one of them, by the operating system
	Rows    int64   `json:"rows_read"`
	Bytes   int64   `json:"bytes_read"`
	Answer  int64   `json:"answer_rows"`
}

// askTimes is how often every query runs, overviewAsked how often the first page runs at most: on a
// large store it runs for overviewLong.
const (
	askTimes, overviewAsked = 5, 40
	overviewLong            = 15 * time.Second
)

// ask runs every query several times, about the middle of the store, and records what the engine
// read.
func (b *storageBench) ask(ctx context.Context) (map[string]questionCost, error) {
	facts, err := rawRows(ctx, b.engine, `SELECT toString(min(minute)), toString(addHours(min(minute), 1)), argMax(user_name, `+
		`request_received), argMax(toString(audit_uuid), request_received) FROM retrial.events WHERE user_name LIKE `+
		`'system:serviceaccount:%'`)
	if err != nil {
		return nil, err
	}
	subject, err := rawRows(ctx, b.engine, "SELECT user_name, max(credential) FROM retrial.events WHERE credential LIKE 'JTI=%' AND "+
		"user_name LIKE '%-%:%' GROUP BY user_name ORDER BY count() DESC LIMIT 1")
	if err != nil {
		return nil, err
	}
	if len(facts) == 0 || len(subject) == 0 {
		return nil, errors.New("the store has no service account to ask about: generate more rows")
	}
	stamp := func(s string) string { return strings.Replace(s, " ", "T", 1) + "Z" }
	common := map[string]string{"subject": subject[0][0], "credential": subject[0][1], "id": facts[0][3], "resource": "secrets",
		"namespace": "ads-prod", "name": "sync-config-0", "role": "engineer"}
	out := map[string]questionCost{}
	for _, q := range queries.Questions() {
		values := map[string]string{}
		for _, p := range q.Params {
			if v, ok := common[p.Name]; ok && !(q.Name == "role-usage" && p.Name == "namespace") {
				values[p.Name] = v
			}
		}
		if q.Name == "subject-events" {
			values["from"], values["to"] = stamp(facts[0][0]), stamp(facts[0][1])
		}
		if out[q.Name], err = b.askQuestion(ctx, q, values); err != nil {
			return nil, err
		}
		if q.Name == "object" {
			if err := b.askObjects(ctx, out, q); err != nil {
				return nil, err
			}
		}
	}
	if err := b.askLists(ctx, out, subject[0][0]); err != nil {
		return nil, err
	}
	return out, b.askOverview(ctx, out)
}

// askQuestion asks a named question several times.
func (b *storageBench) askQuestion(ctx context.Context, q queries.Question, values map[string]string) (cost questionCost, err error) {
	sql, bound, err := q.Bind("retrial", benchCluster, values)
	if err != nil {
		return cost, err
	}
	cost, err = b.cost(ctx, func() (int64, error) {
		body, err := rawQuery(ctx, b.engine, sql+" FORMAT JSONCompact SETTINGS output_format_json_quote_64bit_integers = 0, "+
			"use_skip_indexes_if_final = 1, do_not_merge_across_partitions_select_final = 1", bound, nil)
		if err != nil {
			return 0, err
		}
		var answer struct{ Rows int64 }
		text, err := io.ReadAll(body)
		if err = errors.Join(err, body.Close()); err != nil {
			return 0, err
		}
		return answer.Rows, json.Unmarshal(text, &answer)
	})
	if err != nil {
		return cost, fmt.Errorf("%s: %w", q.Name, err)
	}
	return cost, nil
}

// askObjects asks about the object that is touched most, by most users, least, and never; of the first two also without the last minute, so
// that a part of an hour is read of the events.
func (b *storageBench) askObjects(ctx context.Context, out map[string]questionCost, q queries.Question) error {
	const touched = "SELECT resource, namespace, name, toString(toStartOfMinute(max(last_seen))) FROM retrial.objects WHERE name != '' " +
		"GROUP BY resource, namespace, name ORDER BY "
	for name, order := range map[string]string{"most": "sum(count) DESC", "by most": "uniq(user_name) DESC", "least": "sum(count)",
		"never": "name"} {
		found, err := rawRows(ctx, b.engine, touched+order+", name LIMIT 1")
		if err != nil {
			return err
		}
		values := map[string]string{"resource": found[0][0], "namespace": found[0][1], "name": found[0][2]}
		if name == "never" {
			values["name"] = "never-touched"
		}
		if out["object (touched "+name+")"], err = b.askQuestion(ctx, q, values); err != nil {
			return err
		}
		if strings.HasSuffix(name, "most") {
			values["to"] = strings.Replace(found[0][3], " ", "T", 1) + "Z"
			if out["object (touched "+name+", part of an hour)"], err = b.askQuestion(ctx, q, values); err != nil {
				return err
			}
		}
	}
	return nil
}

// cost asks a question several times; ask returns how many rows the answer has.
func (b *storageBench) cost(ctx context.Context, ask func() (rows int64, err error)) (cost questionCost, err error) {
	samples := make([]questionCost, askTimes)
	var answer int64
	for i := range samples {
		if samples[i], err = askOnce(ctx, b.engine, func() (err error) { answer, err = ask(); return err }); err != nil {
			return cost, err
		}
	}
	cost = median(samples)
	cost.Answer = answer
	return cost, nil
}

// askOnce asks once, and returns what that took.
func askOnce(ctx context.Context, e *embedded.Engine, ask func() error) (cost questionCost, err error) {
	before, err := read(ctx, e)
	if err != nil {
		return cost, err
	}
	began, cpu := time.Now(), procstat.Own()
	if err := ask(); err != nil {
		return cost, err
	}
	cost.Seconds, cost.CPU = time.Since(began).Seconds(), (procstat.Own() - cpu).Seconds()
	after, err := read(ctx, e)
	cost.Rows, cost.Bytes = after["SelectedRows"]-before["SelectedRows"], after["SelectedBytes"]-before["SelectedBytes"]
	return cost, err
}

// median returns the median time and the mean CPU of samples of one question, and what the last of them read.
func median(samples []questionCost) questionCost {
	cost, cpu := samples[len(samples)-1], 0.0
	took := make([]float64, len(samples))
	for i := range samples {
		took[i], cpu = samples[i].Seconds, cpu+samples[i].CPU
	}
	slices.Sort(took)
	cost.Seconds, cost.CPU = took[len(took)/2], cpu/float64(len(samples))
	return cost
}

// askLists asks for lists of the newest requests that a filter selects, of everything stored: many,
// few, and none.
func (b *storageBench) askLists(ctx context.Context, out map[string]questionCost, subject string) error {
	for name, f := range map[string]queries.EventFilter{
		"(list, all)":                  {},
		"(list, one account)":          {Subject: subject},
		"(list, refused)":              {Recorded: "forbid"},
		"(list, an account's refused)": {Subject: subject, Recorded: "forbid"},
		"(list, deleted secrets)":      {Verb: "delete", Resource: "secrets"},
		"(list, drift)":                {Outcome: "drift"},
		"(list, of nobody)":            {Subject: "nobody"},
		"(list, an unknown resource)":  {Resource: "gadgets", Verb: "get", Recorded: "allow", Outcome: "match"},
	} {
		f.Cluster, f.Judged = benchCluster, true
		var err error
		out[name], err = b.cost(ctx, func() (int64, error) {
			rows, err := b.store.Events(ctx, f)
			return int64(len(rows)), err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// askOverview runs the queries of the first page, for the whole range, with which it opens, for its
// last day and its last hour, and records the 95th percentile.
func (b *storageBench) askOverview(ctx context.Context, out map[string]questionCost) error {
	clusters, err := b.store.Clusters(ctx)
	if err != nil {
		return err
	}
	first, last := clusters[0].First, clusters[0].Last.Add(time.Minute)
	for name, from := range map[string]time.Time{"(first page, whole range)": first, "(first page, last day)": last.Add(-24 * time.Hour),
		"(first page, last hour)": last.Add(-time.Hour)} {
		var took []float64
		start, cpu := time.Now(), procstat.Own()
		before, err := read(ctx, b.engine)
		if err != nil {
			return err
		}
		for len(took) < overviewAsked && time.Since(start) < overviewLong {
			began := time.Now()
			if _, err := b.store.Overview(ctx, benchCluster, from, last); err != nil {
				return err
			}
			if _, err := b.store.Events(ctx, queries.EventFilter{Cluster: benchCluster, From: from, To: last, Judged: true}); err != nil {
				return err
			}
			took = append(took, time.Since(began).Seconds())
		}
		used, n := procstat.Own()-cpu, int64(len(took))
		after, err := read(ctx, b.engine)
		if err != nil {
			return err
		}
		slices.Sort(took)
		out[name] = questionCost{Seconds: took[n*95/100], CPU: used.Seconds() / float64(n),
			Rows: (after["SelectedRows"] - before["SelectedRows"]) / n, Bytes: (after["SelectedBytes"] - before["SelectedBytes"]) / n}
	}
	return nil
}

// read returns what the engine has read of tables so far; nothing else is running.
func read(ctx context.Context, e *embedded.Engine) (map[string]int64, error) {
	rows, err := rawRows(ctx, e, "SELECT event, value FROM system.events WHERE event IN ('SelectedRows', 'SelectedBytes')")
	out := map[string]int64{}
	for _, r := range rows {
		out[r[0]] = int64(numeric(r[1]))
	}
	return out, err
}

// multiply makes the store several times as large inside it: every copy is three days later, with
// its own identifiers and credentials, and rollups as if it had been inserted. The views do not
// run; then the engine merges as much as it would in time.
func (b *storageBench) multiply(ctx context.Context, times int) error {
	views, err := rawRows(ctx, b.engine, "SELECT name FROM system.tables WHERE database = 'retrial' AND engine = 'MaterializedView'")
	if err != nil {
		return err
	}
	for _, v := range views {
		if _, err := rawRows(ctx, b.engine, "DETACH TABLE retrial."+v[0]); err != nil {
			return err
		}
	}
	const day = "toIntervalDay(%[1]d)"
	renewed := func(credential string) string {
		return "concat(substring(" + credential + ", 1, position(" + credential + ", '=')), toString(reinterpretAsUUID(sipHash128(" +
			credential + ", %[1]d))))"
	}
	shift := map[string]string{
		"events": "minute + " + day + " AS minute, day + " + day + " AS day, request_received + " + day +
			" AS request_received, ingested + " + day + " AS ingested, ingest_day + " + day +
			" AS ingest_day, koffset + %[2]d AS koffset, sipHash128(request_key, %[1]d) AS request_key, if(audit_text = '', " +
			"reinterpretAsUUID(sipHash128(audit_uuid, %[1]d)), audit_uuid) AS audit_uuid, if(credential = '', '', " +
			renewed("credential") + ") AS credential" +
			", mapApply((k, v) -> (k, if(k = 'authentication.kubernetes.io/credential-id', arrayMap(c -> " + renewed("c") +
			", v), v)), user_extra) AS user_extra",
		"access_usage": "day + " + day + " AS day, ingest_day + " + day + " AS ingest_day, first_seen + " + day +
			" AS first_seen, last_seen + " + day + " AS last_seen",
		"grant_usage": "day + " + day + " AS day, ingest_day + " + day + " AS ingest_day, first_seen + " + day +
			" AS first_seen, last_seen + " + day + " AS last_seen",
		"activity": "slot + " + day + " AS slot, ingest_day + " + day + " AS ingest_day",
		"unmatched": "slot + " + day + " AS slot, ingest_day + " + day + " AS ingest_day, first_seen + " + day +
			" AS first_seen, last_seen + " + day + " AS last_seen",
		"objects": "slot + " + day + " AS slot, ingest_day + " + day + " AS ingest_day, first_seen + " + day +
			" AS first_seen, last_seen + " + day + " AS last_seen",
		"arrivals": "day + " + day + " AS day, ingested + " + day + " AS ingested, ingest_day + " + day + " AS ingest_day",
		"halves":   "minute + " + day + " AS minute, ingest_day + " + day + " AS ingest_day",
		"refused": "minute + " + day + " AS minute, request_received + " + day + " AS request_received, ingest_day + " + day +
			" AS ingest_day, sipHash128(request_key, %[1]d) AS request_key",
		"volume": "minute + " + day + " AS minute, ingest_day + " + day + " AS ingest_day",
	}
	for _, table := range []string{"events", "access_usage", "grant_usage", "volume", "activity", "unmatched", "objects", "arrivals",
		"halves", "refused"} {
		if _, err := rawRows(ctx, b.engine, "CREATE TABLE retrial.bench_"+table+" AS retrial."+table); err != nil {
			return err
		}
		if _, err := rawRows(ctx, b.engine, "ALTER TABLE retrial.bench_"+table+" ATTACH PARTITION ALL FROM retrial."+table); err != nil {
			return err
		}
		for i := 1; i < times; i++ {
			sql := "INSERT INTO retrial." + table + " SELECT * REPLACE (" + fmt.Sprintf(shift[table], 3*i, i*b.rows) +
				") FROM retrial.bench_" + table +
				" SETTINGS max_threads = 2, max_block_size = 16384, min_insert_block_size_rows = 262144, min_insert_block_size_bytes = " +
				"0, max_partitions_per_insert_block = 0, insert_deduplicate = 0, optimize_on_insert = 0"
			if _, err := rawRows(ctx, b.engine, sql); err != nil {
				return err
			}
		}
		if _, err := rawRows(ctx, b.engine, "DROP TABLE retrial.bench_"+table+" SYNC"); err != nil {
			return err
		}
		fmt.Fprintf(b.log, "%s is %d times as large\n", table, times)
	}
	return nil
}
