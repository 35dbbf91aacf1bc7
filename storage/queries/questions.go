package queries

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
)

// Question is a named question that investigations ask again and again. testdata/questions.golden.txt keeps its SQL and the indexes it uses
// for review; docs/storage.md says what it costs.
type Question struct {
	Name  string
	About string
	// Params are its parameters, besides the cluster, which every question takes.
	Params  []QuestionParam
	Columns []string
	// Now is the command that answers it; the name of the question will be removed in the next release. "": none.
	Now string
	// SQL of the question; %s is the database, parameters are {name:Type}. PREWHERE under FINAL
	// is on columns that all versions of a row share.
	SQL string
}

// QuestionParam is a parameter of a question.
type QuestionParam struct {
	Name    string
	Type    string // of ClickHouse; DateTime64 takes RFC 3339
	About   string
	Default string // "": it has to be given; "-": empty
}

// The window of a question: first and last moment, over whole minutes first, which the
// primary key has. Of bounds that are whole minutes nothing else is read.
const (
	inWindow = `cluster = {cluster:String} AND minute >= toStartOfMinute({from:DateTime64(6, 'UTC')}) ` +
		`AND minute < {to:DateTime64(6, 'UTC')}` + withinMinutes

	withinMinutes = `
    AND request_received >= {from:DateTime64(6, 'UTC')} AND request_received < {to:DateTime64(6, 'UTC')}`
)

// Whole hours of a window, which rollups by the hour have, begin with the one and end before the other. Nothing lies between them in a
// window without a whole hour.
const (
	firstHour = `toStartOfHour(addMicroseconds({from:DateTime64(6, 'UTC')}, 3599999999))`
	lastHour  = `toStartOfHour({to:DateTime64(6, 'UTC')})`
)

// inDays is the window of rollups, which know days.
const inDays = `cluster = {cluster:String} AND day >= toDate({from:DateTime64(6, 'UTC')}) AND day <= toDate({to:DateTime64(6, 'UTC')}) ` +
	`AND implied = ''`

func windowParams(more ...QuestionParam) []QuestionParam {
	return append(more,
		QuestionParam{"from", "DateTime64(6, 'UTC')", "begin, such as 2026-11-20T11:00:00Z", "1970-01-01T00:00:00Z"},
		QuestionParam{"to", "DateTime64(6, 'UTC')", "end, exclusive", "2106-01-01T00:00:00Z"},
		QuestionParam{"limit", "UInt32", "most rows", "100"})
}

// Questions returns the questions there are, by name.
func Questions() []Question {
	subject := QuestionParam{"subject", "String", "user name as audit logs have it", ""}
	list := []Question{
		{Name: "subject-events", About: "every event of a subject, its own and those others made as it, oldest first",
			Params:  windowParams(subject),
			Columns: []string{"time", "stage", "verb", "uri", "code", "recorded", "outcome", "audit_id"},
			SQL: `SELECT request_received, stage, verb, request_uri, code, recorded, outcome, audit_id
FROM %s.events FINAL
PREWHERE user_name = {subject:String} OR impersonated_name = {subject:String}
WHERE ` + inWindow + ` AND sign = 1
ORDER BY request_received, request_key, stage_delay LIMIT {limit:UInt32}`},
		{Name: "denials", About: "who was refused, how often and how many different things, by days", Params: windowParams(),
			Columns: []string{"subject", "denials", "accesses", "first", "last"},
			SQL: `SELECT subject, sum(n) AS denials, count() AS accesses, min(first), max(last)
FROM (SELECT access, sum(count) AS n, min(first_seen) AS first, max(last_seen) AS last FROM %[1]s.access_usage
    WHERE ` + inDays + ` AND recorded = 'forbid' GROUP BY access HAVING n > 0) AS used
INNER JOIN (SELECT DISTINCT access, subject FROM %[1]s.accesses WHERE cluster = {cluster:String}) AS named USING (access)
GROUP BY subject ORDER BY denials DESC, subject LIMIT {limit:UInt32}`},
		{Name: "subjects", About: "who made requests, how many, how many of them were refused, for how many different things, and when, " +
			"by days; (other) are those that are not told apart", Params: windowParams(),
			Columns: []string{"subject", "requests", "refused", "accesses", "first", "last"},
			SQL: `SELECT subject, sum(n) AS requests, sum(refusals) AS refused, count() AS accesses, min(first), max(last)
FROM (SELECT access, sum(count) AS n, sumIf(count, recorded = 'forbid') AS refusals, min(first_seen) AS first, max(last_seen) AS last
    FROM %[1]s.access_usage WHERE ` + inDays + ` GROUP BY access HAVING n > 0) AS used
LEFT SEMI JOIN (SELECT access, subject FROM %[1]s.accesses WHERE cluster = {cluster:String}) AS named USING (access)
GROUP BY subject ORDER BY requests DESC, subject LIMIT {limit:UInt32}`},
		{Name: "object", About: "who touched an object, and how",
			Params: windowParams(QuestionParam{"resource", "String", "such as secrets", ""},
				QuestionParam{"namespace", "String", "empty: of the cluster", "-"}, QuestionParam{"name", "String", "its name", ""}),
			Columns: []string{"user", "verb", "subresource", "recorded", "requests", "first", "last"},
			SQL: `SELECT user_name, verb, subresource, recorded, sum(n) AS requests, min(first), max(last)
FROM (SELECT user_name, verb, subresource, recorded, sum(count) AS n, min(first_seen) AS first, max(last_seen) AS last
    FROM %[1]s.objects
    WHERE cluster = {cluster:String} AND resource = {resource:String} AND namespace = {namespace:String} AND name = {name:String}
        AND slot >= ` + firstHour + ` AND slot < ` + lastHour + `
    GROUP BY user_name, verb, subresource, recorded
    UNION ALL
    SELECT user_name, verb, object_subresource AS subresource, recorded, toInt64(sign) AS n, request_received AS first, request_received AS last
    FROM %[1]s.events
    PREWHERE object_name = {name:String} AND object_resource = {resource:String} AND object_namespace = {namespace:String}
        AND cityHash64(object_resource, object_namespace, object_name) = cityHash64({resource:String}, {namespace:String}, {name:String})
    WHERE ` + inWindow + ` AND (minute < ` + firstHour + ` OR minute >= ` + lastHour + `) AND outcome != '')
GROUP BY user_name, verb, subresource, recorded HAVING requests > 0
ORDER BY requests DESC, user_name, verb, subresource, recorded LIMIT {limit:UInt32}`},
		{Name: "secrets-read", About: "who read which secrets (a list or watch has no name), by days; (other): requests beyond those " +
			"that are counted by name, of secrets or not", Params: windowParams(),
			Columns: []string{"subject", "verb", "namespace", "name", "requests", "first", "last"},
			SQL: `SELECT subject, verb, namespace, name, sum(n) AS requests, min(first), max(last)
FROM (SELECT access, sum(count) AS n, min(first_seen) AS first, max(last_seen) AS last FROM %[1]s.access_usage
    WHERE ` + inDays + ` AND recorded = 'allow' AND access IN (SELECT access FROM %[1]s.accesses ` +
				`WHERE cluster = {cluster:String} AND (resource = 'secrets' ` +
				`AND api_group = '' AND verb IN ('get', 'list', 'watch') OR path = '` + codec.Other + `'))
    GROUP BY access HAVING n > 0) AS used
INNER JOIN (SELECT DISTINCT access, subject, verb, namespace, name FROM %[1]s.accesses WHERE cluster = {cluster:String} AND (resource = 'secrets' OR path = '` + codec.Other + `')) AS named USING (access)
GROUP BY subject, verb, namespace, name ORDER BY requests DESC, subject, verb, namespace, name LIMIT {limit:UInt32}`},
		{Name: "top-users", About: "the subjects with most requests, by days", Params: windowParams(),
			Columns: []string{"subject", "requests"}, SQL: topAccess("subject")},
		{Name: "top-verbs", About: "requests by verb and resource, by days", Params: windowParams(),
			Columns: []string{"verb", "resource", "requests"}, SQL: topAccess("verb, resource")},
		{Name: "top-agents", About: "the user agents with most requests, by ten minutes", Params: windowParams(),
			Columns: []string{"agent", "requests", "subjects"},
			SQL: `SELECT user_agent, sum(n) AS requests, count()
FROM (SELECT user_agent, subject, sum(count) AS n FROM %s.activity
    WHERE cluster = {cluster:String} AND slot >= toStartOfTenMinutes({from:DateTime64(6, 'UTC')}) AND slot < {to:DateTime64(6, 'UTC')}
    GROUP BY user_agent, subject HAVING n > 0)
GROUP BY user_agent HAVING requests > 0 ORDER BY requests DESC, user_agent LIMIT {limit:UInt32}`},
		{Name: "drift", Now: "drift", About: "requests whose recorded decision is not the policy's, by class", Params: windowParams(),
			Columns: []string{"class", "recorded", "replayed", "requests"},
			SQL: `SELECT class, recorded, replayed, sum(count) AS requests
FROM %s.volume
WHERE cluster = {cluster:String} AND minute >= toStartOfMinute({from:DateTime64(6, 'UTC')}) AND minute < {to:DateTime64(6, 'UTC')} AND outcome = 'drift'
GROUP BY class, recorded, replayed HAVING requests > 0 ORDER BY requests DESC, class, recorded, replayed LIMIT {limit:UInt32}`},
		{Name: "grants-never-used", About: "bindings that stand and let no stored request or check through",
			Params:  []QuestionParam{{"limit", "UInt32", "most rows", "100"}},
			Columns: []string{"kind", "namespace", "binding"},
			SQL: `SELECT kind, namespace, name
FROM (SELECT if(startsWith(resource, 'cluster'), 'ClusterRoleBinding', 'RoleBinding') AS kind, toString(namespace) AS namespace, name,
        argMax(deleted, (toUInt64OrZero(resource_version), observed)) AS gone
    FROM %[1]s.policy_objects
    WHERE cluster = {cluster:String} AND resource IN ('rolebindings.rbac.authorization.k8s.io', 'clusterrolebindings.rbac.authorization.k8s.io') AND name != ''
    GROUP BY kind, namespace, name)
WHERE gone = 0 AND (kind, namespace, name) NOT IN (
    SELECT JSONExtractString(granted, 1), JSONExtractString(granted, 2), JSONExtractString(granted, 3)
    FROM (SELECT granted FROM %[1]s.grant_usage WHERE cluster = {cluster:String} GROUP BY granted HAVING sum(count) > 0))
ORDER BY kind, namespace, name LIMIT {limit:UInt32}`},
		{Name: "role-usage", About: "what a role was used for, by whom and through which binding, by days",
			Params: windowParams(QuestionParam{"kind", "String", "Role or ClusterRole", "ClusterRole"},
				QuestionParam{"role", "String", "its name", ""},
				QuestionParam{"namespace", "String", "of the RoleBinding; empty: any", "-"}),
			Columns: []string{"binding", "subject", "verb", "resource", "namespace", "name", "path", "requests", "last"},
			SQL: `SELECT binding, subject, verb, resource, namespace, name, path, sum(n) AS requests, max(last)
FROM (SELECT JSONExtractString(granted, 3) AS binding, access, sum(n) AS n, max(last) AS last
    FROM (SELECT granted, access, sum(count) AS n, max(last_seen) AS last FROM %[1]s.grant_usage
        WHERE ` + inDays + ` AND granted IN (SELECT arrayJoin(arrayFilter(g -> JSONExtractString(g, 4) = {kind:String} AND JSONExtractString(g, 5) = {role:String}
                AND ({namespace:String} = '' OR JSONExtractString(g, 2) = {namespace:String}), groupUniqArray(granted)))
            FROM %[1]s.grant_usage WHERE cluster = {cluster:String})
        GROUP BY granted, access)
    GROUP BY binding, access HAVING n > 0) AS used
INNER JOIN (SELECT DISTINCT access, subject, verb, resource, namespace, name, path FROM %[1]s.accesses WHERE cluster = {cluster:String}) AS named USING (access)
GROUP BY binding, subject, verb, resource, namespace, name, path
ORDER BY requests DESC, binding, subject, verb, resource, namespace, name, path LIMIT {limit:UInt32}`},
		{Name: "first-seen", About: "accesses that were made for the first time, as far as the rollups go back", Params: windowParams(),
			Columns: []string{"first", "subject", "verb", "group", "resource", "namespace", "name", "path", "requests"},
			SQL: `SELECT first, subject, verb, api_group, resource, namespace, name, path, n
FROM (SELECT access, sum(count) AS n, min(first_seen) AS first FROM %[1]s.access_usage WHERE cluster = {cluster:String} AND implied = ''
    GROUP BY access HAVING n > 0 AND first >= {from:DateTime64(6, 'UTC')} AND first < {to:DateTime64(6, 'UTC')} ORDER BY first, access LIMIT {limit:UInt32}) AS used
INNER JOIN (SELECT DISTINCT access, subject, verb, api_group, resource, namespace, name, path FROM %[1]s.accesses WHERE cluster = {cluster:String}) AS named USING (access)
ORDER BY first, subject, verb, resource, namespace, name, path`},
		{Name: "rate", About: "events and refusals by minute",
			Params:  []QuestionParam{windowParams()[0], windowParams()[1], {"limit", "UInt32", "most rows", "50000"}},
			Columns: []string{"minute", "events", "denials"},
			SQL: `SELECT minute, sum(count) AS events, sumIf(count, recorded = 'forbid')
FROM %s.volume
WHERE cluster = {cluster:String} AND minute >= toStartOfMinute({from:DateTime64(6, 'UTC')}) AND minute < {to:DateTime64(6, 'UTC')}
GROUP BY minute HAVING events > 0 ORDER BY minute LIMIT {limit:UInt32}`},
		{Name: "audit-id", Now: "why", About: "the events of an audit ID, all stages",
			Params:  []QuestionParam{{"id", "String", "audit ID", ""}},
			Columns: []string{"time", "stage", "user", "verb", "uri", "code", "recorded", "outcome"},
			SQL: `SELECT request_received, stage, user_name, verb, request_uri, code, recorded, outcome
FROM %[1]s.events FINAL
WHERE cluster = {cluster:String} AND sign = 1 AND (audit_uuid = toUUIDOrZero({id:String}) AND audit_id = {id:String} OR audit_text = {id:String})
    AND minute IN (SELECT minute FROM %[1]s.events WHERE cluster = {cluster:String} AND audit_uuid = toUUIDOrZero({id:String}) AND toUUIDOrZero({id:String}) != toUUIDOrZero('')
        UNION DISTINCT SELECT minute FROM %[1]s.events WHERE cluster = {cluster:String} AND audit_text = {id:String})
ORDER BY request_received, request_key, stage_delay LIMIT 1000`},
		{Name: "token", About: "everything that was done with a credential (JTI=…, X509SHA256=…, Secret=…)",
			Params:  windowParams(QuestionParam{"credential", "String", "as events have it", ""}),
			Columns: []string{"time", "user", "agent", "verb", "uri", "code", "recorded", "audit_id"},
			SQL: `SELECT request_received, user_name, user_agent, verb, request_uri, code, recorded, audit_id
FROM %s.events FINAL
PREWHERE credential = {credential:String}
WHERE ` + inWindow + ` AND sign = 1
ORDER BY request_received, request_key, stage_delay LIMIT {limit:UInt32}`},
	}
	slices.SortFunc(list, func(a, b Question) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// topAccess counts requests by columns of accesses.
func topAccess(columns string) string {
	return `SELECT ` + columns + `, sum(n) AS requests
FROM (SELECT access, sum(count) AS n FROM %[1]s.access_usage WHERE ` + inDays + ` GROUP BY access HAVING n > 0) AS used
INNER JOIN (SELECT DISTINCT access, ` + columns + ` FROM %[1]s.accesses WHERE cluster = {cluster:String}) AS named USING (access)
GROUP BY ` + columns + ` ORDER BY requests DESC, ` + columns + ` LIMIT {limit:UInt32}`
}

// ErrQuestion is the asker's error: an unknown question, a parameter too many or too few.
var ErrQuestion = errors.New("question")

// TakesTime reports whether a parameter of the question is a time.
func (q *Question) TakesTime(name string) bool {
	return slices.ContainsFunc(q.Params, func(p QuestionParam) bool { return p.Name == name && strings.HasPrefix(p.Type, "DateTime64") })
}

// Bind returns the SQL of the question for a database and the values of its parameters.
func (q *Question) Bind(database, cluster string, values map[string]string) (sql string, bound map[string]string, err error) {
	bound = map[string]string{"cluster": statement.Text(cluster)}
	whole := true
	for name := range values {
		if !slices.ContainsFunc(q.Params, func(p QuestionParam) bool { return p.Name == name }) {
			return "", nil, fmt.Errorf("%w %s takes no parameter %q", ErrQuestion, q.Name, name)
		}
	}
	for _, p := range q.Params {
		v, given := values[p.Name]
		switch {
		case !given && p.Default == "":
			return "", nil, fmt.Errorf("%w %s wants %s: %s", ErrQuestion, q.Name, p.Name, p.About)
		case !given && p.Default != "-":
			v = p.Default
		}
		switch {
		case strings.HasPrefix(p.Type, "DateTime64"):
			at, err := time.Parse(time.RFC3339, v)
			if err != nil {
				return "", nil, fmt.Errorf("%w %s: %s is %q: write it as 2026-11-20T11:36:00Z", ErrQuestion, q.Name, p.Name, v)
			}
			whole = whole && at.Equal(at.Truncate(time.Minute))
			v = at.UTC().Format("2006-01-02 15:04:05.000000")
		case p.Type == "UInt32":
			var n uint32
			if _, err := fmt.Sscanf(v, "%d", &n); err != nil || fmt.Sprint(n) != v {
				return "", nil, fmt.Errorf("%w %s: %s is %q: want a number", ErrQuestion, q.Name, p.Name, v)
			}
		}
		bound[p.Name] = statement.Text(v)
	}
	sql = q.SQL
	if whole {
		sql = strings.Replace(sql, withinMinutes, "", 1)
	}
	return strings.NewReplacer("%[1]s", database, "%s", database).Replace(sql), bound, nil
}

// Ask answers a question about a cluster. The values are strings, numbers and times, in the order of Columns.
func (rd *Reader) Ask(ctx context.Context, name, cluster string, values map[string]string) (q Question, rows [][]any, err error) {
	err = rd.VisitAnswer(ctx, name, cluster, values, func(of Question) error { q = of; return nil }, func(row []any) error {
		rows = append(rows, row)
		return nil
	})
	return q, rows, err
}

// VisitAnswer answers a question row by row, as they are read: begin is called once, before the first, when the question is known to be
// answered. Either ends the reading by returning an error.
func (rd *Reader) VisitAnswer(ctx context.Context, name, cluster string, values map[string]string, begin func(Question) error,
	row func([]any) error) error {
	list := Questions()
	i := slices.IndexFunc(list, func(q Question) bool { return q.Name == name })
	if i < 0 {
		return fmt.Errorf("%w %q is not known", ErrQuestion, name)
	}
	q := list[i]
	sql, bound, err := q.Bind(rd.at.Name, cluster, values)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(statement.Params(ctx, clickhouse.Parameters(bound)))
	defer cancel()
	res, err := rd.at.Conn.Query(ctx, sql)
	if err != nil {
		return fmt.Errorf("ask %s: %w", name, err)
	}
	defer res.Close()
	types, begun := res.ColumnTypes(), false
	for res.Next() {
		to := make([]any, len(types))
		for i, t := range types {
			to[i] = reflect.New(t.ScanType()).Interface()
		}
		if err := res.Scan(to...); err != nil {
			return fmt.Errorf("ask %s: %w", name, err)
		}
		for i := range to {
			to[i] = reflect.ValueOf(to[i]).Elem().Interface()
		}
		if !begun {
			if err := begin(q); err != nil {
				return err
			}
			begun = true
		}
		if err := row(to); err != nil {
			return err
		}
	}
	if err := res.Err(); err != nil {
		return fmt.Errorf("ask %s: %w", name, err)
	}
	if !begun {
		return begin(q)
	}
	return nil
}
