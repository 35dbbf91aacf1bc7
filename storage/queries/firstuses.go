package queries

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// FirstFilter selects what was done, or used, for the first time between two moments.
type FirstFilter struct {
	Cluster  string
	From, To time.Time
	// Subjects and Groups restrict it to these subjects and to members of these groups, together; none of either: everybody.
	Subjects, Groups []string
	Own              bool // also what is Kubernetes' own
	Limit            int
}

// FirstUse is something a subject asked for the first time, with whichever groups.
type FirstUse struct {
	Subject, Verb, Group, Resource, Subresource, Namespace, Name, Path string

	Requests, Allowed, Forbidden int64 // all there are, as recorded
	First, Last                  time.Time
}

// FirstGrant is a binding that let a request or a check pass for the first time.
type FirstGrant struct {
	Grant       verdict.Grant // of the first of its rules that did
	Requests    int64         // and checks behind requests
	First, Last time.Time
}

const ofAccess = "subject, verb, api_group, resource, subresource, namespace, name, path"

// Accesses that are new with their groups, conditions on them between the two.
const (
	usedAccesses = "SELECT access FROM %[1]s.access_usage WHERE cluster = {cluster:String} AND implied = ''"
	thatAreNew   = " GROUP BY access HAVING sum(count) > 0 AND toUnixTimestamp64Micro(min(first_seen)) >= {from:Int64} AND " +
		"toUnixTimestamp64Micro(min(first_seen)) < {to:Int64}"
)

// severalSets are the subjects that had several sets of groups: few. Of the others, what is new with its groups is new.
const severalSets = "SELECT subject FROM %[1]s.accesses WHERE cluster = {cluster:String} GROUP BY subject " +
	"HAVING min(group_set) != max(group_set)"

const (
	notOther  = "path != '" + codec.Other + "' AND name != '" + codec.Other + "'"
	ofSeveral = ` AND access IN (SELECT access FROM %[1]s.accesses WHERE cluster = {cluster:String} AND subject IN (` + severalSets + `))`
)

// firstUsesQuery looks for accesses that are new with their groups, and then at what the same subject asked with any others.
const firstUsesQuery = `SELECT ` + ofAccess + `, sum(n) AS requests, toInt64(sum(yes)), toInt64(sum(no)), toUnixTimestamp64Micro(min(begin)) AS first, toUnixTimestamp64Micro(max(until))
FROM (SELECT access, sum(count) AS n, sumIf(count, recorded = 'allow') AS yes, sumIf(count, recorded = 'forbid') AS no, min(first_seen) AS begin, max(last_seen) AS until
    FROM %[1]s.access_usage WHERE cluster = {cluster:String} AND implied = '' GROUP BY access HAVING n > 0) AS used
LEFT SEMI JOIN (
    SELECT access, ` + ofAccess + ` FROM %[1]s.accesses
    PREWHERE cluster = {cluster:String} AND access IN (` + usedAccesses + thatAreNew + `)
    WHERE ` + notOther + `{who}
    UNION ALL
    SELECT access, ` + ofAccess + ` FROM %[1]s.accesses
    PREWHERE cluster = {cluster:String} AND subject IN (` + severalSets + `)
    WHERE ` + notOther + ` AND (` + ofAccess + `) IN (SELECT ` + ofAccess + ` FROM %[1]s.accesses
        PREWHERE cluster = {cluster:String} AND subject IN (` + severalSets + `)
        WHERE access IN (` + usedAccesses + ofSeveral + thatAreNew + `){who})) AS named USING (access)
GROUP BY ` + ofAccess + `
HAVING first >= {from:Int64} AND first < {to:Int64}
ORDER BY first, ` + ofAccess + ` LIMIT {limit:UInt32}`

// FirstUses returns what was asked for the first time, the earliest first. What is not counted by name is not among it.
func (rd *Reader) FirstUses(ctx context.Context, f FirstFilter) ([]FirstUse, error) {
	p := f.params()
	out, err := statement.Collect(ctx, rd.at, strings.ReplaceAll(firstUsesQuery, "{who}", f.who(p)), p, func(u *FirstUse) ([]any, func()) {
		var first, last int64
		return []any{&u.Subject, &u.Verb, &u.Group, &u.Resource, &u.Subresource, &u.Namespace, &u.Name, &u.Path, &u.Requests, &u.Allowed,
				&u.Forbidden, &first, &last},
			func() { u.First, u.Last = codec.FromMicro(first), codec.FromMicro(last) }
	})
	if err != nil {
		return nil, fmt.Errorf("first uses of cluster %q: %w", f.Cluster, err)
	}
	return out, nil
}

// ofBinding is a grant without its rule and the words of its reason.
const ofBinding = `arrayMap(i -> JSONExtractString(text, i), range(1, 9))`

// any keeps the engine from applying the condition to every row.
const firstGrantsQuery = `SELECT argMin(text, begin), sum(n) AS requests, toUnixTimestamp64Micro(min(begin)) AS first, toUnixTimestamp64Micro(max(until))
FROM (SELECT any(granted) AS text, sum(count) AS n, min(first_seen) AS begin, max(last_seen) AS until
    FROM %[1]s.grant_usage WHERE cluster = {cluster:String} GROUP BY granted HAVING n > 0)
WHERE {own:UInt8} OR NOT startsWith(JSONExtractString(text, 2), 'kube-') AND NOT startsWith(JSONExtractString(text, 3), 'system:')
GROUP BY ` + ofBinding + `
HAVING first >= {from:Int64} AND first < {to:Int64}
ORDER BY first, ` + ofBinding + ` LIMIT {limit:UInt32}`

// FirstGrants returns the bindings that let something pass for the first time, each for each of its subjects, the earliest first. Subjects
// and groups of the filter do not restrict it.
func (rd *Reader) FirstGrants(ctx context.Context, f FirstFilter) ([]FirstGrant, error) {
	var bad error
	out, err := statement.Collect(ctx, rd.at, firstGrantsQuery, f.params(), func(g *FirstGrant) ([]any, func()) {
		var granted string
		var first, last int64
		return []any{&granted, &g.Requests, &first, &last}, func() {
			g.First, g.Last = codec.FromMicro(first), codec.FromMicro(last)
			if bad == nil {
				g.Grant, bad = codec.DecodeGrant(granted)
			}
		}
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, fmt.Errorf("first grants of cluster %q: %w", f.Cluster, err)
	}
	return out, nil
}

func (f *FirstFilter) params() clickhouse.Parameters {
	to := int64(1) << 62
	if !f.To.IsZero() {
		to = f.To.UnixMicro()
	}
	own := "0"
	if f.Own {
		own = "1"
	}
	return clickhouse.Parameters{"cluster": statement.Text(f.Cluster), "from": fmt.Sprint(f.From.UnixMicro()), "to": fmt.Sprint(to),
		"own": own, "limit": fmt.Sprint(f.Limit)}
}

// who returns the condition on subjects and groups, and adds its parameters.
func (f *FirstFilter) who(p clickhouse.Parameters) string {
	also := ""
	if !f.Own {
		also = " AND " + notOwn
	}
	if len(f.Subjects)+len(f.Groups) == 0 {
		return also
	}
	p["subjects"], p["groups"] = statement.Texts(f.Subjects), statement.Texts(f.Groups)
	return also + " AND (subject IN {subjects:Array(String)} OR group_set IN (SELECT group_set FROM %[1]s.group_sets " +
		"WHERE hasAny(groups, {groups:Array(String)})))"
}

// otherRequests counts the requests of a range, in whole days, that are not counted by name.
const otherRequests = `SELECT sum(count) FROM %[1]s.access_usage
WHERE cluster = {cluster:String} AND implied = '' AND toUInt16(day) BETWEEN {from_day:UInt16} AND {to_day:UInt16}
    AND access IN (SELECT access FROM %[1]s.accesses WHERE cluster = {cluster:String} AND (path = '` + codec.Other + `' OR name = '` + codec.Other + `'))`

// Unnamed counts the requests of the days of a range that are not counted by what they asked for, or by subject.
func (rd *Reader) Unnamed(ctx context.Context, cluster string, from, to time.Time) (n int64, err error) {
	list, err := statement.Collect(ctx, rd.at, otherRequests, days(cluster, from, to),
		func(n *int64) ([]any, func()) { return []any{n}, nil })
	if err != nil {
		return 0, fmt.Errorf("unnamed requests of cluster %q: %w", cluster, err)
	}
	for _, x := range list {
		n += x
	}
	return n, nil
}

// days returns the parameters of a cluster and the days a range touches; zero bounds leave it open.
func days(cluster string, from, to time.Time) clickhouse.Parameters {
	p := clickhouse.Parameters{"cluster": statement.Text(cluster), "from_day": "0", "to_day": "65535"}
	if !from.IsZero() {
		p["from_day"] = fmt.Sprint(codec.Day(from))
	}
	if !to.IsZero() {
		p["to_day"] = fmt.Sprint(codec.Day(to.Add(-time.Microsecond)))
	}
	return p
}
