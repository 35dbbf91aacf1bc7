package queries

import (
	"context"
	"fmt"
)

// Totals are sums over whole tables, for tests and for the doctor: Volume equals Events,
// Usage and Activity equal Judged, ImpliedUsage Implied, and Grants equals GrantRows, whenever no insert is in between.
type Totals struct {
	Events    int64 // standing rows: sum(sign)
	Rows      int64 // rows that are not taken back as a list shows them
	Judged    int64 // standing rows with a verdict
	Implied   int64 // checks behind the standing rows that were not refused
	GrantRows int64 // grants of the standing rows and of those checks
	Checksum  uint64
	// Sums over the rollups.
	Volume, Usage, ImpliedUsage, Grants, Activity int64
	// The checksums depend on every key and its sum.
	UsageChecksum, GrantChecksum, VolumeChecksum, ActivityChecksum uint64
	Accesses, GroupSets                                            uint64
	PolicyVersions, DeadLetters                                    uint64
}

// Totals reads the totals of the store.
func (rd *Reader) Totals(ctx context.Context) (Totals, error) {
	var t Totals
	for _, q := range []struct {
		sql string
		to  []any
	}{
		{`SELECT sum(toInt64(sign)), toInt64(sumIf(toInt64(sign), outcome != '')), toInt64(sumIf(sign * toInt64(arrayCount(a -> a != 0, implied_access)), recorded != 'forbid')), sum(sign * (toInt64(length(grants)) + if(recorded != 'forbid', toInt64(arraySum(arrayMap((a, g) -> if(a = 0, 0, length(g)), implied_access, implied_grants))), 0))), toUInt64(sum(sign * reinterpretAsInt64(cityHash64(cluster, request_key, stage, stage_delay, content, version, koffset)))) FROM %s.events`,
			[]any{&t.Events, &t.Judged, &t.Implied, &t.GrantRows, &t.Checksum}},
		{`SELECT toInt64(count()) FROM %s.events FINAL WHERE sign = 1`, []any{&t.Rows}},
		{`SELECT sum(c), toUInt64(sum(reinterpretAsInt64(h) * c)) FROM (SELECT sum(count) AS c, cityHash64(cluster, minute, outcome, class, recorded, replayed, kpart, ingest_day) AS h FROM %s.volume GROUP BY h)`, []any{&t.Volume, &t.VolumeChecksum}},
		{`SELECT sum(c), toUInt64(sum(reinterpretAsInt64(h) * c)) FROM (SELECT sum(count) AS c, cityHash64(cluster, slot, subject, user_agent, recorded, outcome, kpart, ingest_day) AS h FROM %s.activity GROUP BY h)`, []any{&t.Activity, &t.ActivityChecksum}},
		{`SELECT toInt64(sumIf(c, behind = '')), toInt64(sumIf(c, behind != '')), toUInt64(sum(reinterpretAsInt64(h) * c)) FROM (SELECT sum(count) AS c, implied AS behind, cityHash64(cluster, access, day, recorded, replayed, outcome, class, kpart, ingest_day, implied, covered) AS h FROM %s.access_usage GROUP BY h, behind)`, []any{&t.Usage, &t.ImpliedUsage, &t.UsageChecksum}},
		{`SELECT sum(c), toUInt64(sum(reinterpretAsInt64(h) * c)) FROM (SELECT sum(count) AS c, cityHash64(cluster, granted, access, day, kpart, ingest_day, implied) AS h FROM %s.grant_usage GROUP BY h)`, []any{&t.Grants, &t.GrantChecksum}},
		{`SELECT uniqExact(access) FROM %s.accesses`, []any{&t.Accesses}},
		{`SELECT uniqExact(group_set) FROM %s.group_sets`, []any{&t.GroupSets}},
		{`SELECT count() FROM %s.policy_objects FINAL`, []any{&t.PolicyVersions}},
		{`SELECT count() FROM %s.dead_letters FINAL`, []any{&t.DeadLetters}},
	} {
		if err := rd.at.Conn.QueryRow(ctx, fmt.Sprintf(q.sql, rd.at.Name)).Scan(q.to...); err != nil {
			return t, fmt.Errorf("read totals: %w", err)
		}
	}
	return t, nil
}
