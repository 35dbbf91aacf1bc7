package faults

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
	"github.com/segmentio/kafka-go"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/ingest/stream"
	"github.com/retrial-io/retrial/replay/state"
	"github.com/retrial-io/retrial/replay/state/observe"
	"github.com/retrial-io/retrial/storage"
	"github.com/retrial-io/retrial/verdict"
)

// prepare empties the databases, making them when they are not there.
func (h *host) prepare() error {
	for _, db := range []string{alone, shared, scratchy} {
		if !h.made {
			s, err := storage.Open(context.Background(), storage.Config{Transport: h, Database: db, Shared: db != alone})
			if err != nil {
				return err
			}
			if err := s.Close(); err != nil {
				return err
			}
		}
		tables, err := h.names("SELECT name FROM system.tables WHERE database = '" + db + "' AND engine LIKE '%MergeTree' AND name NOT " +
			"IN ('schema_version', 'meta') FORMAT TSV")
		if err != nil {
			return err
		}
		for _, t := range tables {
			if err := h.exec("TRUNCATE TABLE " + db + "." + t); err != nil {
				return err
			}
		}
	}
	h.made = true
	return nil
}

// names runs a query with one column.
func (h *host) names(sql string) ([]string, error) {
	status, _, data, err := h.do(url.URL{Scheme: "http", Host: "engine", Path: "/", RawQuery: "default_format=TSV"}, http.Header{},
		[]byte(sql), -1)
	if err == nil && status != http.StatusOK {
		err = errors.New(string(data))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", sql, err)
	}
	return strings.Fields(string(data)), nil
}

func (h *host) connect() (driver.Conn, error) {
	return clickhouse.Open(&clickhouse.Options{Protocol: clickhouse.HTTP, Addr: []string{"engine:8123"},
		TransportFunc: func(*http.Transport) (http.RoundTripper, error) { return h, nil }})
}

// committed returns the commits of the events' group, read past all faults.
func (w *world) committed() (map[int32]int64, error) {
	b, _ := w.brokerNow()
	if b == nil {
		return nil, errNetwork
	}
	transport := &kafka.Transport{Dial: b.Dial}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(b.Addr()), Transport: transport, Timeout: 10 * time.Second}
	req := &kafka.OffsetFetchRequest{GroupID: stream.GroupReplay, Topics: map[string][]int{stream.TopicEvents: {}}}
	for p := range mostPartitions {
		req.Topics[stream.TopicEvents] = append(req.Topics[stream.TopicEvents], p)
	}
	resp, err := client.OffsetFetch(context.Background(), req)
	if err != nil {
		return nil, err
	}
	out := map[int32]int64{}
	for _, p := range resp.Topics[stream.TopicEvents] {
		out[int32(p.Partition)] = max(0, p.CommittedOffset)
	}
	return out, nil
}

// groups describes the members of the consumer groups, read past all faults.
func (w *world) groups() map[string][]string {
	b, _ := w.brokerNow()
	if b == nil {
		return nil
	}
	transport := &kafka.Transport{Dial: b.Dial}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(b.Addr()), Transport: transport, Timeout: 10 * time.Second}
	resp, err := client.DescribeGroups(context.Background(), &kafka.DescribeGroupsRequest{GroupIDs: []string{stream.GroupReplay,
		stream.GroupDeadLetter}})
	if err != nil {
		return map[string][]string{"error": {err.Error()}}
	}
	out := map[string][]string{}
	for _, g := range resp.Groups {
		for _, m := range g.Members {
			out[g.GroupID] = append(out[g.GroupID], fmt.Sprint(m.MemberID, m.MemberAssignments.Topics))
		}
	}
	return out
}

// ghost reports whether a group has more members than the one process that runs.
func (w *world) ghost() bool {
	for _, members := range w.groups() {
		if len(members) > 1 {
			return true
		}
	}
	return false
}

// books checks that what a process took in is what it gave out.
func (w *world) books(p *process) {
	families, err := p.reg.Gather()
	if err != nil {
		w.report("%s: gather: %v", p.name, err)
		return
	}
	sum := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			sum[f.GetName()] += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
	}
	if in, out, dead, dup := sum["retrial_runner_in_total"], sum["retrial_runner_out_total"], sum["retrial_runner_deadletters_total"],
		sum["retrial_runner_duplicates_total"]; in != out+dead+dup {
		w.report("%s: runner: in %v is not out %v + dead-lettered %v + duplicates %v", p.name, in, out, dead, dup)
	}
	if in, ack, bad, not := sum["retrial_webhook_events_received_total"], sum["retrial_webhook_events_acknowledged_total"],
		sum["retrial_webhook_items_malformed_total"], sum["retrial_webhook_events_unacknowledged_total"]; in != ack+bad+not {
		w.report("%s: receiver: in %v is not acknowledged %v + malformed %v + unacknowledged %v", p.name, in, ack, bad, not)
	}
	if held := sum["retrial_webhook_in_flight_bytes"]; held != 0 {
		w.report("%s: receiver: %v bytes in flight at the end", p.name, held)
	}
}

// check compares what the store holds with what was acknowledged and with what follows from
// its own rows.
func (w *world) check() {
	ctx := context.Background()
	conn, err := w.host.connect()
	if err != nil {
		w.report("connect: %v", err)
		return
	}
	defer conn.Close()
	store, err := storage.Open(ctx, storage.Config{Transport: w.host, Database: w.db, Shared: w.db == shared})
	if err != nil {
		w.report("open the store: %v", err)
		return
	}
	defer store.Close()
	for _, f := range []func(context.Context, driver.Conn, *storage.Store) error{w.checkEvents, w.checkCarriers, w.checkVerdicts,
		w.checkRollups, w.checkLetters} {
		if err := f(ctx, conn, store); err != nil {
			w.report("check: %v", err)
		}
	}
}

// checkEvents: every acknowledged event stands once, and nothing nobody sent.
func (w *world) checkEvents(ctx context.Context, conn driver.Conn, _ *storage.Store) error {
	rows, err := conn.Query(ctx,
		`SELECT cluster, hex(request_key), stage, toUnixTimestamp64Micro(request_received) + stage_delay AS at,
	sum(toInt64(sign)) AS n, toString(groupArray((epoch, kpart, koffset, sign, row_revision)))
FROM `+w.db+`.events GROUP BY cluster, request_key, stage, at`)
	if err != nil {
		return err
	}
	defer rows.Close()
	stored := map[identity]bool{}
	var standing int64
	for rows.Next() {
		var cluster, key, stage, places string
		var at, n int64
		if err := rows.Scan(&cluster, &key, &stage, &at, &n, &places); err != nil {
			return err
		}
		standing += n
		if n == 0 {
			continue
		}
		raw, err := hex.DecodeString(key)
		if err != nil || len(raw) != 16 {
			return fmt.Errorf("request key %q: %w", key, err)
		}
		id := identity{cluster, event.EventKey(event.HashFromBytes([16]byte(raw)), &event.Event{Stage: event.Stage(stage),
			StageTimestamp: time.UnixMicro(at).UTC()})}
		stored[id] = true
		if n != 1 {
			w.report("an event stands %d times: %s %s %s", n, cluster, key, places)
		}
		if !w.sent[id] {
			w.report("an event stands that nobody sent: %s %s %s", cluster, key, places)
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	missing, which := 0, ""
	for b, items := range w.batches {
		for _, it := range items {
			at, acked := w.acked[it.id]
			if !acked || stored[it.id] || it.digest != "" {
				continue
			}
			if missing++; missing <= 4 {
				e, _ := event.Decode(it.raw)
				which += fmt.Sprintf("; %s of batch %d, acknowledged after %v", e.AuditID, b, at.Sub(w.began))
			}
		}
	}
	if missing > 0 {
		w.report("%d of %d acknowledged events are not stored%s", missing, len(w.acked), which)
	}
	var listed uint64
	if err := conn.QueryRow(ctx, "SELECT count() FROM "+w.db+".events FINAL WHERE sign = 1").Scan(&listed); err != nil {
		return err
	}
	if int64(listed) != standing {
		w.report("a list shows %d events, %d stand", listed, standing)
	}
	return nil
}

// checkCarriers: every request with a stage that carries a decision has one verdict.
func (w *world) checkCarriers(ctx context.Context, conn driver.Conn, _ *storage.Store) error {
	var bad uint64
	if err := conn.QueryRow(ctx,
		`SELECT count() FROM (SELECT sum(if(outcome != '', toInt64(sign), 0)) AS judged,
	sum(if(stage != 'RequestReceived', toInt64(sign), 0)) AS stages
FROM `+w.db+`.events GROUP BY cluster, request_key HAVING judged != if(stages > 0, 1, 0))`).Scan(&bad); err != nil {
		return err
	}
	if bad > 0 {
		w.report("%d requests do not have one verdict", bad)
	}
	return nil
}

// checkVerdicts: every verdict is what a replay from scratch gives with all policy that is
// known, and all acknowledged policy is.
func (w *world) checkVerdicts(ctx context.Context, _ driver.Conn, store *storage.Store) error {
	states := map[string]*state.State{}
	of := func(cluster string) *state.State {
		if states[cluster] == nil {
			states[cluster] = state.New(cluster)
		}
		return states[cluster]
	}
	clusters, err := store.PolicyClusters(ctx)
	if err != nil {
		return err
	}
	if err := store.LoadPolicy(ctx, clusters, func(v verdict.PolicyVersion) error {
		o, err := observe.Decode(v.Observation)
		if err == nil {
			of(v.Cluster).Apply(o)
		}
		return err
	}); err != nil {
		return err
	}
	// What acknowledged writes say must be there: applying them again changes nothing. An
	// effect would change a verdict below.
	w.mu.Lock()
	for b, items := range w.batches {
		for _, it := range items {
			if it.policy && w.policy[it.id] {
				e, err := event.Decode(it.raw)
				if err != nil {
					continue
				}
				if obs, err := observe.FromEvent(e); err == nil {
					of(w.owner[b]).Apply(obs...)
				}
			}
		}
	}
	w.mu.Unlock()
	var all []int32
	for p := range int32(mostPartitions) {
		all = append(all, p)
	}
	for _, cluster := range clusters {
		if err := store.Affected(ctx, verdict.AffectedFilter{Cluster: cluster, Partitions: all}, func(row verdict.Row) error {
			want := w.judge.Replay(row.Event, of(cluster))
			if got, want := verdictText(row.Verdict), verdictText(want); got != want {
				w.report("%s %s of %s at %v: verdict %s, from scratch %s", row.Event.Verb, row.Event.RequestURI, row.Event.User.Username,
					row.Position, got, want)
			}
			return nil
		}); err != nil {
			return err
		}
	}
	return nil
}

func verdictText(v *verdict.Verdict) string {
	grants := make([]string, 0, len(v.Grants))
	for _, g := range v.Grants {
		grants = append(grants, fmt.Sprint(g))
	}
	slices.Sort(grants)
	return fmt.Sprintf("%s %s %s %s %q grants %v missing %v", v.Outcome, v.Replayed, v.Class, v.Authorizer, v.Cause, grants, v.Missing)
}

// checkRollups: the rollups are what the views make of the standing rows alone, put into an
// empty store.
func (w *world) checkRollups(ctx context.Context, conn driver.Conn, _ *storage.Store) error {
	if err := w.host.exec("INSERT INTO " + scratchy + ".events SELECT * FROM " + w.db +
		".events FINAL WHERE sign = 1 SETTINGS insert_deduplicate = 0, " +
		"max_partitions_per_insert_block = 0, optimize_on_insert = 0"); err != nil {
		return err
	}
	rows, err := conn.Query(ctx, "SELECT table, name FROM system.columns WHERE database = '"+w.db+"' "+
		"AND default_kind NOT IN ('ALIAS', 'MATERIALIZED') ORDER BY table, position")
	if err != nil {
		return err
	}
	columns := map[string][]string{}
	for rows.Next() {
		var table, name string
		if err := rows.Scan(&table, &name); err != nil {
			return err
		}
		columns[table] = append(columns[table], name)
	}
	if err := rows.Err(); err != nil {
		return err
	}
	compared := 0
	for _, table := range []string{"access_usage", "grant_usage", "volume", "activity", "unmatched", "objects", "arrivals", "halves",
		"refused", "detections"} {
		list := columns[table]
		if !slices.Contains(list, "count") {
			return fmt.Errorf("table %s has no count: %v", table, list)
		}
		keys := slices.DeleteFunc(slices.Clone(list), func(c string) bool {
			return c == "count" || c == "first_seen" || c == "last_seen" || c == "digest" || c == "changed" ||
				c == "kpart" && w.db == alone // whose rollups are of all partitions together
		})
		by, sums, having := strings.Join(keys, ", "), "count", "sum(count) != 0"
		minus := "-count AS count"
		if slices.Contains(list, "digest") {
			sums, minus, having = "count, digest", "-count AS count, -digest AS digest", "sum(count) != 0 OR sum(digest) != 0"
		}
		var bad uint64
		var text string
		if err := conn.QueryRow(ctx, fmt.Sprintf(`SELECT count(), toString(any(t)) FROM (SELECT tuple(%[1]s, sum(count)) AS t FROM
(SELECT %[1]s, %[2]s FROM %[3]s.%[4]s UNION ALL SELECT %[1]s, %[5]s FROM %[6]s.%[4]s) GROUP BY %[1]s HAVING %[7]s)`,
			by, sums, w.db, table, minus, scratchy, having)).Scan(&bad, &text); err != nil {
			return err
		}
		if bad > 0 {
			w.report("rollup %s differs from scratch in %d keys: (%s, difference) %s", table, bad, by, text)
		}
		compared++
	}
	for table, key := range map[string]string{"accesses": "(cluster, access)", "group_sets": "group_set"} {
		var lacking uint64
		if err := conn.QueryRow(ctx, fmt.Sprintf("SELECT count() FROM %s.%[2]s "+
			"WHERE %[3]s NOT IN (SELECT %[3]s FROM %[4]s.%[2]s)", scratchy, table, key, w.db)).Scan(&lacking); err != nil {
			return err
		}
		if lacking > 0 {
			w.report("%s lacks %d entries", table, lacking)
		}
		compared++
	}
	if compared != 12 {
		return fmt.Errorf("%d rollups compared", compared)
	}
	return nil
}

// checkLetters: everything acknowledged that is not an event is a dead letter.
func (w *world) checkLetters(ctx context.Context, conn driver.Conn, _ *storage.Store) error {
	rows, err := conn.Query(ctx, "SELECT digest FROM "+w.db+".dead_letters FINAL")
	if err != nil {
		return err
	}
	defer rows.Close()
	have := map[string]bool{}
	for rows.Next() {
		var digest string
		if err := rows.Scan(&digest); err != nil {
			return err
		}
		have[digest] = true
	}
	for digest := range w.letters {
		if !have[digest] {
			w.report("an acknowledged entry that is not an event is not a dead letter: %s", digest)
		}
	}
	return rows.Err()
}
