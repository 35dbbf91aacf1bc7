package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"

	"github.com/retrial-io/retrial/ingest/embedded"
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/internal/cli"
	"github.com/retrial-io/retrial/storage"
	chdb "github.com/retrial-io/retrial/storage/embedded"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/storage/storagetest"
	"github.com/retrial-io/retrial/verdict"
)

// inspection is what retrial-inspect is asked, as JSON on its standard input, about a data
// directory that nothing serves. The answers are files, since some are large.
type inspection struct {
	Data    string            // the data directory
	Queries map[string]string // file the answer goes to → SQL with a FORMAT of its own
	Events  map[string]string // file → cluster: a line `event key, content of the rebuilt event` for each standing row
	Inserts int               // so many inserts are made first, of one event each, of a cluster of their own
	Window  int               // the tables remember so many deduplication tokens from then on; 0 leaves it
	Kafka   string            // file that everything the broker's log holds is written to; empty: the log is not opened
}

// inspectMain answers one inspection and prints the store's totals.
func inspectMain() {
	if err := inspectDirectory(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "retrial-inspect:", err)
		os.Exit(cli.ExitError)
	}
}

func inspectDirectory(ctx context.Context) (err error) {
	var in inspection
	if err := json.NewDecoder(os.Stdin).Decode(&in); err != nil {
		return err
	}
	if in.Kafka != "" {
		if err := dumpKafka(ctx, filepath.Join(in.Data, "kafka"), in.Kafka); err != nil {
			return err
		}
	}
	engine, err := chdb.Open(chdb.Config{Path: filepath.Join(in.Data, "clickhouse")})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	store, err := storage.Open(ctx, storage.Config{Transport: engine})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, store.Close()) }()
	for _, table := range tables {
		if in.Window == 0 {
			break
		}
		sql := fmt.Sprintf("ALTER TABLE retrial.%s MODIFY SETTING non_replicated_deduplication_window = %d", table, in.Window)
		if err := ask(engine, sql, io.Discard); err != nil {
			return err
		}
	}
	if err := errors.Join(insertOthers(ctx, store, in.Inserts), store.RollUp(ctx)); err != nil {
		return err
	}
	for file, sql := range in.Queries {
		if err := toFile(file, func(w io.Writer) error { return ask(engine, sql, w) }); err != nil {
			return err
		}
	}
	for file, cluster := range in.Events {
		if err := toFile(file, func(w io.Writer) error { return listEvents(ctx, store, cluster, w) }); err != nil {
			return err
		}
	}
	t, err := store.Totals(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(t)
}

// insertOthers makes inserts as the runner does, so that each is remembered in every table
// in place of an earlier one.
func insertOthers(ctx context.Context, store *storage.Store, n int) error {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	for i := range n {
		line := fmt.Sprintf(`{"level":"Metadata","auditID":"other-%d","stage":"ResponseComplete","requestURI":"/api/v1/nodes",`+
			`"verb":"list","user":{"username":"u","groups":["g%d"]},`+
			`"requestReceivedTimestamp":"2026-11-20T12:00:00.000000Z","stageTimestamp":"2026-11-20T12:00:00.000100Z",`+
			`"annotations":{"authorization.k8s.io/decision":"allow"}}`, i, i)
		row, err := storagetest.Row("other", []byte(line), event.Position{Epoch: 1, Partition: 99, Offset: int64(i)}, at)
		if err != nil {
			return err
		}
		storagetest.Verdict(&row)
		if err := store.Insert(ctx, fmt.Sprint("other/", i), []verdict.Row{row}); err != nil {
			return err
		}
	}
	return nil
}

func toFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	w := bufio.NewWriter(f)
	return errors.Join(write(w), w.Flush(), f.Close())
}

// ask runs SQL on the engine as any HTTP client of a ClickHouse server would.
func ask(engine *chdb.Engine, sql string, w io.Writer) error {
	req, err := http.NewRequest(http.MethodPost, "http://engine/?database=retrial", strings.NewReader(sql))
	if err != nil {
		return err
	}
	res, err := engine.RoundTrip(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(res.Body)
		return fmt.Errorf("%s: %s", sql, text)
	}
	_, err = io.Copy(w, res.Body)
	return err
}

// listEvents lists a cluster's events, rebuilt from complete rows.
func listEvents(ctx context.Context, store *storage.Store, cluster string, w io.Writer) error {
	return store.VisitRows(ctx, cluster, func(r verdict.Row) error {
		content := event.Content(event.AppendJSON(nil, r.Event))
		_, err := fmt.Fprintln(w, event.EventKey(event.RequestKey(cluster, r.Event), r.Event), content)
		return err
	})
}

// dumpKafka writes keys, headers and values of every record in the log.
func dumpKafka(ctx context.Context, dir, file string) (err error) {
	broker, err := embedded.Start(embedded.Config{Dir: dir}) // no consumers: nothing is deleted
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, broker.Close()) }()
	client, err := stream.NewClient(stream.Config{Brokers: []string{broker.Addr()}, Dial: broker.Dial, Partitions: 4, Replication: 1})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	return toFile(file, func(w io.Writer) error {
		for _, topic := range []string{stream.TopicEvents, stream.TopicPolicy, stream.TopicDeadLetter} {
			ends, err := client.HighWatermarks(ctx, topic)
			if err != nil {
				return err
			}
			for partition := range ends {
				if err := dumpPartition(ctx, broker, topic, partition, w); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func dumpPartition(ctx context.Context, broker *embedded.Broker, topic string, partition int32, w io.Writer) error {
	dialer := &kafka.Dialer{DialFunc: broker.Dial, Timeout: 10 * time.Second}
	conn, err := dialer.DialLeader(ctx, "tcp", broker.Addr(), topic, int(partition))
	if err != nil {
		return err
	}
	defer conn.Close()
	first, end, err := conn.ReadOffsets()
	if err != nil || first == end {
		return err
	}
	r := kafka.NewReader(kafka.ReaderConfig{
		Brokers: []string{broker.Addr()}, Topic: topic, Partition: int(partition), MaxBytes: 64 << 20, MaxWait: 50 * time.Millisecond,
		Dialer: dialer,
	})
	defer r.Close()
	for {
		m, err := r.ReadMessage(ctx)
		if err != nil {
			return fmt.Errorf("read %s/%d: %w", topic, partition, err)
		}
		fmt.Fprintf(w, "%s %d %d\n%q\n", topic, partition, m.Offset, m.Key)
		for _, h := range m.Headers {
			fmt.Fprintf(w, "%s: %s\n", h.Key, h.Value)
		}
		fmt.Fprintf(w, "%s\n", m.Value)
		if m.Offset+1 >= end {
			return nil
		}
	}
}

// inspect runs retrial-inspect.
func inspect(t *testing.T, in inspection) queries.Totals {
	t.Helper()
	ask, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "retrial-inspect")
	cmd.Stdin = bytes.NewReader(ask)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		t.Fatalf("inspect %s: %v\n%s", in.Data, err, &errs)
	}
	var totals queries.Totals
	if err := json.Unmarshal(out.Bytes(), &totals); err != nil {
		t.Fatal(err)
	}
	return totals
}

// tables are all tables of the store that hold what came in, and what follows from it at once:
// findings follow when time has passed.
var tables = []string{"events", "accesses", "group_sets", "access_usage", "grant_usage", "volume", "activity", "unmatched",
	"objects", "arrivals", "halves", "refused", "policy_objects", "dead_letters"}

// contentOf is a query that tells whether anything in any table changed: the number of rows
// and a sum over all their columns, with finished merges or without.
func contentOf() string {
	parts := make([]string, 0, len(tables))
	for _, table := range tables {
		columns, where := "*", ""
		switch table {
		case "events":
			where = " WHERE sign = 1"
		case "halves":
			columns = "* EXCEPT changed"
		case "policy_objects": // the place an observation was read from last may move
			columns = "* EXCEPT (epoch, kpart, koffset, idx)"
		}
		parts = append(parts,
			fmt.Sprintf("SELECT '%s' AS name, count() AS rows, sum(cityHash64(tuple(%s))) AS content FROM retrial.%s FINAL%s", table,
				columns, table, where))
	}
	return "SELECT * FROM (" + strings.Join(parts, " UNION ALL ") + ") ORDER BY name FORMAT TSV"
}

// usageOf is a query of everything the rollups sum up for a cluster, keys that sum to
// nothing left out: the same for the same history, whatever the way it came in.
func usageOf(cluster string) string {
	return `SELECT * FROM (
SELECT 'access' AS what, toString(tuple(access, day, recorded, replayed, outcome, class)) AS k, sum(count) AS n FROM retrial.access_usage WHERE cluster = '` + cluster + `' GROUP BY k HAVING n != 0
UNION ALL SELECT 'grant', toString(tuple(granted, access, day)) AS k, sum(count) AS n FROM retrial.grant_usage WHERE cluster = '` + cluster + `' GROUP BY k HAVING n != 0
UNION ALL SELECT 'volume', toString(tuple(minute, recorded, replayed, outcome, class)) AS k, sum(count) AS n FROM retrial.volume WHERE cluster = '` + cluster + `' GROUP BY k HAVING n != 0
UNION ALL SELECT 'activity', toString(tuple(slot, subject, user_agent, recorded, outcome)) AS k, sum(count) AS n FROM retrial.activity WHERE cluster = '` + cluster + `' GROUP BY k HAVING n != 0
) ORDER BY what, k FORMAT TSV`
}

// placeColumns say where a row came from and when it was judged, not what happened on the
// cluster. request_key, and some hit_keys, hold the cluster's name.
const placeColumns = "hit_keys, cluster, source, apiserver, ingested, ingest_day, epoch, kpart, koffset, request_key, sign, version, " +
	"row_revision, policy_revision, batch"

// eventColumns are the event's. All others are what the replay adds: they stand in the row of the
// stage of a request that was stored first, so with deliveries in another order in another stage's row.
const eventColumns = `content, size, level, audit_uuid, audit_text, stage, request_uri, verb, user_name, user_uid, user_groups, user_extra,
impersonated_name, impersonated_uid, impersonated_groups, impersonated_extra, impersonation_constraint, source_ips, user_agent,
object_resource, object_namespace, object_name, object_uid, object_api_group, object_api_version, object_resource_version, object_subresource,
code, status_reason, response_status, request_object, response_object, request_received, stage_delay, annotations,
unknown_at, unknown_name, unknown_value, shape, minute, day, subject`

// eventsOf is a query of a cluster's events, one JSON object each, without verdicts.
func eventsOf(cluster string) string {
	return "SELECT " + eventColumns + " FROM retrial.events FINAL WHERE sign = 1 AND cluster = '" + cluster +
		"' ORDER BY request_received, audit_id, user_name, request_uri, verb, stage, stage_delay FORMAT JSONEachRow"
}

// verdictsOf is a query of a cluster's verdicts, one JSON object a request.
func verdictsOf(cluster string) string {
	return "SELECT audit_id, user_name, verb, request_uri, request_received, * EXCEPT (" + placeColumns + ", " + eventColumns +
		") FROM retrial.events FINAL WHERE sign = 1 AND outcome != '' AND cluster = '" + cluster +
		"' ORDER BY request_received, audit_id, user_name, request_uri, verb FORMAT JSONEachRow"
}

// lines reads a file's lines.
func lines(t *testing.T, path string) []string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	out := strings.Split(string(b), "\n")
	return out[:len(out)-1]
}

// sameLines compares two answers line by line and shows the first differences.
func sameLines(t *testing.T, what string, got, want []string) {
	t.Helper()
	if slices.Equal(got, want) {
		return
	}
	t.Errorf("%s: %d lines, want %d", what, len(got), len(want))
	shown := 0
	for i := range min(len(got), len(want)) {
		if got[i] == want[i] {
			continue
		}
		t.Errorf("%s: line %d\n got %s\nwant %s", what, i+1, difference(got[i], want[i]), difference(want[i], got[i]))
		if shown++; shown == 3 {
			return
		}
	}
}

// difference returns the members of a JSON object that another does not have alike.
func difference(a, b string) string {
	var x, y map[string]json.RawMessage
	if json.Unmarshal([]byte(a), &x) != nil || json.Unmarshal([]byte(b), &y) != nil {
		return a
	}
	out := "audit ID " + string(x["audit_id"]) + ":"
	for _, k := range slices.Sorted(func(yield func(string) bool) {
		for k := range x {
			if !yield(k) {
				return
			}
		}
	}) {
		if !bytes.Equal(x[k], y[k]) {
			out += fmt.Sprintf(" %s=%.300s", k, x[k])
		}
	}
	return out
}
