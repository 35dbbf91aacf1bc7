package queries

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
)

const lastGroupsQuery = `SELECT a.group_set, any(g.groups), toUnixTimestamp64Micro(max(u.last_seen)) AS last
FROM %[1]s.access_usage AS u
INNER JOIN (SELECT access, any(group_set) AS group_set FROM %[1]s.accesses WHERE cluster = {cluster:String} AND subject = {subject:String} GROUP BY access) AS a ON a.access = u.access
LEFT JOIN (SELECT group_set, any(groups) AS groups FROM %[1]s.group_sets WHERE group_set IN (` + setsOfSubject + `) GROUP BY group_set) AS g ON g.group_set = a.group_set
WHERE u.cluster = {cluster:String} AND u.implied = '' AND u.access IN (` + ofSubject + `) AND toUnixTimestamp64Micro(u.first_seen) <= {until:Int64}
GROUP BY a.group_set
HAVING sum(u.count) > 0
ORDER BY least(last, {until:Int64}) DESC, last, a.group_set
LIMIT 1`

// recordedGroupsQuery has the groups of the last request of a subject in a stretch of time, as its event has them.
const recordedGroupsQuery = `SELECT groups, toUnixTimestamp64Micro(request_received)
FROM (
    SELECT request_key, request_received, if(bitAnd(any(shape), 1) = 1, any(impersonated_groups), any(user_groups)) AS groups
    FROM %[1]s.events
    WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute <= {to_minute:UInt32} AND subject = {subject:String} AND outcome != ''
        AND toUnixTimestamp64Micro(request_received) <= {until:Int64}
    GROUP BY request_key, request_received HAVING sum(toInt64(sign)) > 0
)
ORDER BY request_received DESC, request_key LIMIT 1`

// otherDaysQuery has the days on which subjects were not told apart, and since when events are kept.
const otherDaysQuery = `SELECT toInt64(toUnixTimestamp(min(day))), toInt64(toUnixTimestamp(max(day))), sum(requests),
    (SELECT toInt64(toUnixTimestamp(min(minute))) FROM %[1]s.events WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32})
FROM (
    SELECT toDateTime(day, 'UTC') AS day, sum(count) AS requests
    FROM %[1]s.access_usage
    WHERE cluster = {cluster:String} AND implied = '' AND access IN (SELECT access FROM %[1]s.accesses WHERE cluster = {cluster:String} AND group_set = {nobody:UInt64})
        AND toUInt16(access_usage.day) BETWEEN {from_day:UInt16} AND {to_day:UInt16}
    GROUP BY day HAVING requests > 0
)`

// otherDays are the days of a range on which requests of a cluster were counted for subjects that are not told apart.
type otherDays struct {
	requests          int64
	first, last, kept int64 // days, and the first minute there are events of, in seconds since 1970
}

func (rd *Reader) otherDays(ctx context.Context, cluster, fromDay, toDay string) (d otherDays, err error) {
	p := clickhouse.Parameters{"cluster": statement.Text(cluster), "nobody": fmt.Sprint(codec.OtherSubject), "from_day": fromDay,
		"to_day": toDay, "from_minute": "0"}
	if err := rd.at.Conn.QueryRow(statement.Params(ctx, p), fmt.Sprintf(otherDaysQuery, rd.at.Name)).Scan(&d.first, &d.last, &d.requests,
		&d.kept); err != nil {
		return d, fmt.Errorf("days of cluster %q whose subjects are not told apart: %w", cluster, err)
	}
	return d, nil
}

// wornSet is a set of groups and when it was last worn.
type wornSet struct {
	key    uint64
	groups []string
	last   int64
}

// LastGroups returns the sorted groups of a subject's last request up to a moment, and its time; a zero moment is now, and the time is zero
// if there is no request. Rollups count by day: of several sets in use on the moment's day it may return any, with a time later that day.
// Where they do not tell subjects or sets apart the events are read; told is false if those are gone.
func (rd *Reader) LastGroups(ctx context.Context, cluster, subject string,
	until time.Time) (groups []string, last time.Time, told bool, err error) {
	p := clickhouse.Parameters{"cluster": statement.Text(cluster), "subject": statement.Text(subject), "until": fmt.Sprint(int64(1) << 62)}
	toDay := "65535"
	if !until.IsZero() {
		p["until"], toDay = fmt.Sprint(until.UnixMicro()), fmt.Sprint(codec.Day(until))
	}
	sets, err := statement.Collect(ctx, rd.at, lastGroupsQuery, p,
		func(g *wornSet) ([]any, func()) { return []any{&g.key, &g.groups, &g.last}, nil })
	if err != nil {
		return nil, time.Time{}, false, fmt.Errorf("groups of %q: %w", subject, err)
	}
	var from, to, kept int64
	if len(sets) == 0 {
		d, err := rd.otherDays(ctx, cluster, "0", toDay)
		if err != nil || d.requests == 0 {
			return nil, time.Time{}, true, err
		}
		from, to, kept = d.first, d.last, d.kept
	} else {
		if last = codec.FromMicro(sets[0].last); codec.GroupsTold(sets[0].key) {
			return sets[0].groups, last, true, nil
		}
		from = last.Truncate(24 * time.Hour).Unix()
		to, kept = from, from+1
	}
	p["from_minute"], p["to_minute"] = fmt.Sprint(from), fmt.Sprint(to+24*60*60-60)
	sets, err = statement.Collect(ctx, rd.at, recordedGroupsQuery, p,
		func(g *wornSet) ([]any, func()) { return []any{&g.groups, &g.last}, nil })
	if err != nil {
		return nil, time.Time{}, false, fmt.Errorf("groups of %q: %w", subject, err)
	}
	if len(sets) == 0 {
		return nil, last, kept != 0 && kept/(24*60*60)*(24*60*60) <= from && last.IsZero(), nil
	}
	slices.Sort(sets[0].groups)
	return slices.Compact(sets[0].groups), codec.FromMicro(sets[0].last), true, nil
}
