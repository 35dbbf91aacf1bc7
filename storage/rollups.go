package storage

import (
	"fmt"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/storage/codec"
)

// rollup is a table whose counts must equal sum(sign) over events, or the part of one that a view feeds.
type rollup struct {
	table string
	only  string   // which rows of the table; empty: all
	keys  []string // grouping columns, of the same name in the rollup and in what the view reads
	from  string   // what is counted, up to a condition; %[1]s are the rows, under the name events
	day   string   // the day of the request, as an expression over both sides
	times bool     // has first_seen and last_seen
	// digest is a second sum, over this expression of the events; such a table also notes when it changed.
	digest string
}

// What the views over the checks behind the filter read; members by place as encodeImplied writes them.
const (
	impliedItems = `%[1]s ARRAY JOIN implied AS item, implied_access AS item_access WHERE recorded != 'forbid' AND item_access != 0`
	impliedUsage = `(SELECT cluster, day, item_access AS access, JSONExtractString(item, 3) AS recorded, JSONExtractString(item, 2) AS replayed, outcome, class, kpart, ingest_day,
    JSONExtractString(item, 1) AS implied, toUInt8(JSONExtractInt(item, 4)) AS covered, sign, request_received
FROM (SELECT cluster, day, outcome, class, kpart, ingest_day, sign, request_received, item, item_access FROM ` + impliedItems + `)) WHERE 1`
	impliedGrants = `(SELECT cluster, day, granted, item_access AS access, kpart, ingest_day, JSONExtractString(item, 1) AS implied, sign, request_received
FROM (SELECT cluster, day, kpart, ingest_day, sign, request_received, item, item_access, arrayJoin(item_grants) AS granted
    FROM %[1]s ARRAY JOIN implied AS item, implied_access AS item_access, implied_grants AS item_grants WHERE recorded != 'forbid' AND item_access != 0)) WHERE 1`
	impliedAccesses = `(SELECT cluster, item_access AS access, if(group_set = 18446744073709551614, '(other)', if(requestor = '', effective, user_name)) AS subject, if(requestor = '', effective_set, toUInt64OrZero(requestor)) AS group_set,
    if(path = '(other)', path, JSONExtractString(item, 5)) AS verb, if(path = '(other)', '', JSONExtractString(item, 7)) AS api_group, if(path = '(other)', '', JSONExtractString(item, 9)) AS resource,
    if(path = '(other)', '', JSONExtractString(item, 10)) AS subresource, if(path = '(other)', '', JSONExtractString(item, 11)) AS namespace, JSONExtractString(item, 16) AS name, path, kpart, day, ingest_day
FROM (SELECT cluster, subject AS effective, group_set AS effective_set, user_name, kpart, day, ingest_day, item, item_access, JSONExtractString(item, 20) AS requestor, JSONExtractString(item, 17) AS path FROM ` + impliedItems + `))`
	impliedSets = `(SELECT toUInt64OrZero(requestor) AS group_set, user_groups, kpart, day, ingest_day
FROM (SELECT user_groups, kpart, day, ingest_day, JSONExtractString(item, 20) AS requestor FROM ` + impliedItems + `) WHERE requestor != '')`
)

// refusedRows are the requests that were refused, by whomever, and which plugin of admission or check behind the filter did it.
const refusedRows = `(SELECT cluster, minute, request_received, request_key, subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace,
    attr_name, attr_path, access_path AS path, recorded, replayed, outcome, class, code,
    admission_plugins[indexOf(arrayMap((o, c) -> o IN ('rejected', 'match') OR c != 0, admission_outcomes, admission_codes), 1)] AS plugin,
    admission_names[indexOf(arrayMap((o, c) -> o IN ('rejected', 'match') OR c != 0, admission_outcomes, admission_codes), 1)] AS plugin_name,
    JSONExtractString(arrayFirst(i -> JSONExtractString(i, 3) = 'forbid', implied), 1) AS refused_check, audit_text, audit_uuid, user_name,
    if(bitAnd(shape, 1) = 1, impersonated_groups, user_groups) AS groups, missing, kpart, ingest_day, toUInt8(source = 'import') AS imported, sign
FROM %[1]s WHERE outcome != '' AND (recorded = 'forbid' OR code IN (401, 403) OR admission = 'rejected')) WHERE 1`

var rollups = []rollup{ //nolint:gochecknoglobals // constant table
	{"access_usage", "implied = ''", []string{"cluster", "day", "access", "recorded", "replayed", "outcome", "class", "kpart",
		"ingest_day"}, "%[1]s WHERE outcome != ''", "day", true, ""},
	{"access_usage", "implied != ''", []string{"cluster", "day", "access", "recorded", "replayed", "outcome", "class", "kpart",
		"ingest_day", "implied", "covered"}, impliedUsage, "day", true, ""},
	{"grant_usage", "implied = ''", []string{"cluster", "day", "granted", "access", "kpart", "ingest_day"},
		"%[1]s ARRAY JOIN grants AS granted WHERE 1", "day", true, ""},
	{"grant_usage", "implied != ''", []string{"cluster", "day", "granted", "access", "kpart", "ingest_day", "implied"}, impliedGrants,
		"day", true, ""},
	{"volume", "", []string{"cluster", "minute", "recorded", "replayed", "outcome", "class", "kpart", "ingest_day"}, "%[1]s WHERE 1",
		"toDate(minute)", false, ""},
	{"activity", "", []string{"cluster", "slot", "subject", "user_agent", "recorded", "outcome", "kpart", "ingest_day"},
		"(SELECT cluster, toStartOfTenMinutes(minute) AS slot, if(group_set = 18446744073709551614, '(other)', events.subject) AS " +
			"subject, if(bitAnd(shape, 16) = 16 OR events.subject IN ('', 'system:anonymous') AND recorded != 'allow', '(other)', " +
			"events.user_agent) AS user_agent, recorded, outcome, kpart, ingest_day, sign FROM %[1]s WHERE outcome != '') WHERE 1",
		"toDate(slot)", false, ""},
	{"unmatched", "", []string{"cluster", "slot", "outcome", "class", "subject", "apiserver", "cause", "missing", "recorded",
		"recorded_reason", "replayed", "code", "config_version", "kpart", "ingest_day", "imported"},
		"(SELECT cluster, toStartOfTenMinutes(minute) AS slot, outcome, class, subject, apiserver, " + codec.FoldedCause + " AS cause, " +
			codec.FoldedMissing + " AS missing, recorded, recorded_reason, replayed, code, config_version, kpart, ingest_day, " +
			"toUInt8(source = 'import') AS imported, sign, request_received FROM %[1]s " +
			"WHERE outcome NOT IN ('', 'match', 'not_judged')) WHERE 1",
		"toDate(slot)", true, ""},
	{"objects", "", []string{"cluster", "resource", "namespace", "name", "slot", "user_name", "verb", "subresource", "recorded", "kpart",
		"ingest_day", "imported"},
		"(SELECT cluster, object_resource AS resource, object_namespace AS namespace, object_name AS name, toStartOfHour(minute) AS " +
			"slot, user_name, verb, object_subresource AS subresource, recorded, kpart, ingest_day, toUInt8(source = 'import') AS " +
			"imported, sign, request_received FROM %[1]s WHERE outcome != '') WHERE 1",
		"toDate(slot)", true, ""},
	{"arrivals", "", []string{"cluster", "ingested", "apiserver", "source", "day", "kpart", "ingest_day", "imported"},
		"(SELECT cluster, ingested, apiserver, source, day, kpart, ingest_day, toUInt8(source = 'import') AS imported, sign FROM %[1]s) " +
			"WHERE 1", "day", false, ""},
	{"halves", "", []string{"cluster", "minute", "kpart", "ingest_day", "imported"},
		"(SELECT cluster, minute, kpart, ingest_day, toUInt8(source = 'import') AS imported, sign, stage, request_key FROM %[1]s " +
			"WHERE stage IN ('RequestReceived', 'ResponseStarted') OR outcome = '' OR verb = 'watch' AND code < 400) WHERE 1",
		"toDate(minute)", false,
		"if(stage IN ('RequestReceived', 'ResponseStarted'), 1, -1) * reinterpretAsInt64(cityHash64(request_key))"},
	{"refused", "", []string{"cluster", "minute", "request_received", "request_key", "subject", "attr_verb", "attr_is_resource",
		"attr_api_group", "attr_resource", "attr_subresource", "attr_namespace", "attr_name", "attr_path", "path", "recorded", "replayed",
		"outcome", "class", "code", "plugin", "plugin_name", "refused_check", "audit_text", "audit_uuid", "user_name", "groups", "missing",
		"kpart", "ingest_day", "imported"}, refusedRows, "toDate(minute)", false, ""},
	{"detections", "", []string{"cluster", "rule", "slot", "key", "kpart", "ingest_day"}, `%[1]s ARRAY JOIN hits AS hit, hit_keys AS hit_key, arrayMap(h -> substringIndex(h, '/', 1), hits) AS rule,
    arrayMap(h -> if(endsWith(h, '/first'), toStartOfDay(minute), toStartOfTenMinutes(minute)), hits) AS slot,
    arrayMap((h, k) -> if(endsWith(h, '/first'), if(bitAnd(shape, 32) = 32, 1, k), 0), hits, hit_keys) AS key WHERE 1`, "toDate(slot)", false,
		"reinterpretAsInt64(cityHash64(request_key, version, hit, hit_key))"},
}

// internedTable is a table without counts, or the part of one that comes from some rows: what it lacks is added.
type internedTable struct {
	table   string
	key     string // columns that tell whether it lacks a row
	columns string // of the table
	values  string // for the columns, over from
	from    string // as of a rollup, with a WHERE
}

// interned are the tables without counts, those of requests before those of the checks behind them.
var interned = []internedTable{ //nolint:gochecknoglobals // constant table
	{"accesses", "cluster, access", accessColumns, `cluster, access, if(group_set = 18446744073709551614, '(other)', events.subject) AS subject, group_set,
    if(access_path = '(other)', access_path, attr_verb) AS verb, if(access_path = '(other)', '', attr_api_group) AS api_group, if(access_path = '(other)', '', attr_resource) AS resource,
    if(access_path = '(other)', '', attr_subresource) AS subresource, if(access_path = '(other)', '', attr_namespace) AS namespace, access_name AS name, access_path AS path`,
		"%[1]s WHERE outcome != ''"},
	{"accesses", "cluster, access", accessColumns, accessColumns, impliedAccesses + " WHERE 1"},
	{"group_sets", "group_set", "group_set, groups", fmt.Sprintf(groupsOf, "user_groups"),
		impliedSets + " WHERE 1"},
	{"group_sets", "group_set", "group_set, groups", fmt.Sprintf(groupsOf, "if(bitAnd(shape, 1) = 1, impersonated_groups, user_groups)"),
		"%[1]s WHERE outcome != ''"},
}

const (
	accessColumns = "cluster, access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path"
	groupsOf      = "group_set, if(group_set >= 18446744073709551614, ['(other)'], " +
		"arraySort(arrayDistinct(arrayMap(g -> toString(g), any(%s))))) AS groups"
)

// list returns the SELECT of what rows have for the table; rows are as for from, and condition is about them.
func (t *internedTable) list(rows, condition string) string {
	return fmt.Sprintf("SELECT %s, max(ingest_day) AS seen\nFROM %s%s\nGROUP BY %s", t.values, fmt.Sprintf(t.from, rows), condition,
		strings.TrimSuffix(t.columns, ", groups"))
}

// lacking returns the condition on what the table does not have.
func (t *internedTable) lacking(db string) string {
	return fmt.Sprintf(" AND (%s) NOT IN (SELECT %[1]s FROM %[2]s.%[3]s)", t.key, db, t.table)
}

// add returns the INSERT of it.
func (t *internedTable) add(db, rows, condition string) string {
	return fmt.Sprintf("INSERT INTO %s.%s (%s, seen) %s", db, t.table, t.columns, t.list(rows, condition))
}

// later reports whether the rollup may be made later than events are stored. Marks and the volume are counted at once: detections, and
// pages that renew themselves, ask for these every few seconds.
func (r *rollup) later() bool { return r.table != "detections" && r.table != "volume" }

// withEvents are the rollups that are partitioned as events are, and dropped with them: clients choose what is in them.
var withEvents = []string{"unmatched", "objects", "arrivals", "halves", "refused"} //nolint:gochecknoglobals // constant table

// goes reports whether the rollup is dropped together with its events; others are then their only record.
func (r *rollup) goes() bool { return slices.Contains(withEvents, r.table) }

// columns returns the columns of the rollup that are filled.
func (r *rollup) columns() string {
	list := strings.Join(r.keys, ", ") + ", count"
	if r.times {
		list += ", first_seen, last_seen"
	}
	if r.digest != "" {
		list += ", digest, changed"
	}
	return list
}

// everyPartition stands for the partition that rollups are counted by where one process has all of them (see Store.alone).
const everyPartition = 0

// read returns the keys as they are read of events, and what to group them by. Where all is true, rows of all partitions are counted
// together.
func (r *rollup) read(all bool) (keys, by string) {
	keys = strings.Join(r.keys, ", ")
	if !all {
		return keys, keys
	}
	every := fmt.Sprintf("materialize(toInt32(%d)) AS kpart", everyPartition)
	return strings.Replace(keys, "kpart", every, 1), strings.Replace(keys, "kpart, ", "", 1)
}

// count returns the SELECT of what rows add to the rollup; rows are as for from, all as for read.
func (r *rollup) count(rows string, all bool) string {
	values := ", sum(toInt64(sign)) AS count"
	if r.times {
		values += ", min(request_received) AS first_seen, max(request_received) AS last_seen"
	}
	if r.digest != "" {
		values += ", sum(toInt64(sign) * " + r.digest + ") AS digest, max(now()) AS changed"
	}
	keys, by := r.read(all)
	return fmt.Sprintf("SELECT %s%s\nFROM %s\nGROUP BY %s", keys, values, fmt.Sprintf(r.from, rows), by)
}

// add returns the INSERT of it, for all partitions together.
func (r *rollup) add(db, rows string) string {
	return fmt.Sprintf("INSERT INTO %s.%s (%s) %s", db, r.table, r.columns(), r.count(rows, true))
}
