package queries

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// usesQuery joins what is counted with what it is, and with whether grants let it pass. %[2]s restricts the accesses, %[3]s their subjects.
const usesQuery = `SELECT subject, group_set, verb, api_group, resource, subresource, namespace, name, path,
    implied, recorded, replayed, outcome, class, covered, granted, n, first, last, days
FROM (
    SELECT access, implied, recorded, replayed, outcome, class, covered, sum(count) AS n,
        toUnixTimestamp64Micro(min(first_seen)) AS first, toUnixTimestamp64Micro(max(last_seen)) AS last,
        groupUniqArrayIf(toUInt16(day), count > 0) AS days,
        (access, implied) IN (SELECT access, implied FROM %[1]s.grant_usage WHERE cluster = {cluster:String}%[2]s
            GROUP BY access, implied HAVING sum(count) > 0) AS granted
    FROM %[1]s.access_usage WHERE cluster = {cluster:String}%[2]s
    GROUP BY access, implied, recorded, replayed, outcome, class, covered HAVING n > 0) AS used
INNER JOIN (
    SELECT access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path
    FROM %[1]s.accesses WHERE cluster = {cluster:String}%[3]s LIMIT 1 BY access) AS named USING (access)`

// setsQuery are the groups of the accesses.
const setsQuery = `SELECT group_set, any(groups) FROM %[1]s.group_sets
WHERE group_set IN (SELECT group_set FROM %[1]s.accesses WHERE cluster = {cluster:String}%[2]s) GROUP BY group_set`

// Uses visits what is counted of a cluster, of all subjects if none is named, in no order. It reads no event.
func (rd *Reader) Uses(ctx context.Context, cluster string, subjects []string, visit func(verdict.Use) error) error {
	p := clickhouse.Parameters{"cluster": statement.Text(cluster)}
	of, who := "", ""
	if len(subjects) > 0 {
		p["subjects"] = statement.Texts(subjects)
		who = " AND subject IN {subjects:Array(String)}"
		of = fmt.Sprintf(" AND access IN (SELECT access FROM %s.accesses WHERE cluster = {cluster:String}%s)", rd.at.Name, who)
	}
	type set struct {
		key    uint64
		groups []string
	}
	list, err := statement.Collect(ctx, rd.at, fmt.Sprintf(setsQuery, "%[1]s", who), p,
		func(s *set) ([]any, func()) { return []any{&s.key, &s.groups}, nil })
	if err != nil {
		return fmt.Errorf("uses of cluster %q: %w", cluster, err)
	}
	sets := make(map[uint64][]string, len(list))
	for _, s := range list {
		sets[s.key] = s.groups
	}
	ctx, cancel := context.WithCancel(statement.Params(ctx, p))
	defer cancel()
	res, err := rd.at.Conn.Query(ctx, fmt.Sprintf(usesQuery, rd.at.Name, of, who))
	if err != nil {
		return fmt.Errorf("uses of cluster %q: %w", cluster, err)
	}
	defer res.Close()
	scan := codec.NewUseScan(sets)
	for res.Next() {
		if err := res.Scan(scan.Targets()...); err != nil {
			return fmt.Errorf("uses of cluster %q: %w", cluster, err)
		}
		if err := visit(scan.Use()); err != nil {
			return err
		}
	}
	if err := res.Err(); err != nil {
		return fmt.Errorf("uses of cluster %q: %w", cluster, err)
	}
	return nil
}

// countedQuery sums up what is counted of requests.
const countedQuery = `SELECT outcome, class, sum(count) AS requests
FROM %s.volume WHERE cluster = {cluster:String} AND outcome != ''
GROUP BY outcome, class HAVING requests > 0
ORDER BY requests DESC, outcome, class`

// countedBesides is what the volume does not say: bounds of the requests, since when events are stored, and what these tell.
const countedBesides = `SELECT
    (SELECT toUnixTimestamp64Micro(min(first_seen)) FROM %[1]s.access_usage WHERE cluster = {cluster:String} AND implied = ''),
    (SELECT toUnixTimestamp64Micro(max(last_seen)) FROM %[1]s.access_usage WHERE cluster = {cluster:String} AND implied = ''),
    (SELECT toInt64(min(minute)) FROM %[1]s.events WHERE cluster = {cluster:String}),
    (SELECT toInt64(sumIf(toInt64(sign), outcome != '')) FROM %[1]s.events WHERE cluster = {cluster:String} AND ` + wereCut + `),
    (SELECT toInt64(count()) FROM %[1]s.dead_letters FINAL WHERE cluster = {cluster:String})`

// Counted sums up what is counted of all requests of a cluster, those whose events are past retention among them. Since is the minute of
// the first event that is stored.
func (rd *Reader) Counted(ctx context.Context, cluster string) (out Recording, since time.Time, err error) {
	p := clickhouse.Parameters{"cluster": statement.Text(cluster)}
	out.Classes, err = statement.Collect(ctx, rd.at, countedQuery, p,
		func(s *Share) ([]any, func()) { return []any{&s.Outcome, &s.Class, &s.Requests}, nil })
	if err != nil {
		return out, since, fmt.Errorf("sum up the requests of cluster %q: %w", cluster, err)
	}
	for _, s := range out.Classes {
		out.Requests += s.Requests
	}
	if out.Requests == 0 {
		return out, since, nil
	}
	type besides struct{ first, last, since, truncated, dead int64 }
	list, err := statement.Collect(ctx, rd.at, countedBesides, p,
		func(b *besides) ([]any, func()) {
			return []any{&b.first, &b.last, &b.since, &b.truncated, &b.dead}, nil
		})
	if err != nil {
		return out, since, fmt.Errorf("sum up the requests of cluster %q: %w", cluster, err)
	}
	for _, b := range list {
		out.First, out.Last, since = codec.FromMicro(b.first), codec.FromMicro(b.last), time.Unix(b.since, 0).UTC()
		out.Truncated, out.DeadLetters = b.truncated, b.dead
	}
	return out, since, nil
}
