package storage

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
)

const lastGroupsQuery = `SELECT a.group_set, any(g.groups), toUnixTimestamp64Micro(max(u.last_seen)) AS last
FROM %[1]s.access_usage AS u
INNER JOIN (SELECT access, any(group_set) AS group_set FROM %[1]s.accesses WHERE subject = {subject:String} GROUP BY access) AS a ON a.access = u.access
LEFT JOIN (SELECT group_set, any(groups) AS groups FROM %[1]s.group_sets GROUP BY group_set) AS g ON g.group_set = a.group_set
WHERE u.cluster = {cluster:String} AND u.implied = '' AND u.access IN (` + ofSubject + `) AND toUnixTimestamp64Micro(u.first_seen) <= {until:Int64}
GROUP BY a.group_set
HAVING sum(u.count) > 0
ORDER BY least(last, {until:Int64}) DESC, last, a.group_set
LIMIT 1`

// LastGroups returns the groups a subject's requests carried the last time up to a moment,
// sorted, and when that was; a zero moment is now. The time is zero when there is no request.
// Rollups count by day: of sets that were both in use on the moment's day either may come,
// and the time may be later on that day.
func (s *Store) LastGroups(ctx context.Context, cluster, subject string, until time.Time) ([]string, time.Time, error) {
	p := clickhouse.Parameters{"cluster": text(cluster), "subject": text(subject), "until": fmt.Sprint(int64(1) << 62)}
	if !until.IsZero() {
		p["until"] = fmt.Sprint(until.UnixMicro())
	}
	type set struct {
		key    uint64
		groups []string
		last   int64
	}
	sets, err := collect(ctx, s, lastGroupsQuery, p, func(g *set) ([]any, func()) {
		return []any{&g.key, &g.groups, &g.last}, nil
	})
	if err != nil {
		return nil, time.Time{}, fmt.Errorf("groups of %q: %w", subject, err)
	}
	if len(sets) == 0 {
		return nil, time.Time{}, nil
	}
	return sets[0].groups, codec.FromMicro(sets[0].last), nil
}
