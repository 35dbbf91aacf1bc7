package storage

import (
	"context"
	"fmt"
)

// Totals are sums over whole tables, for tests and for the doctor: Volume equals Events,
// Usage equals Judged, and Grants equals GrantRows, whenever no insert is in between.
type Totals struct {
	Events    int64 // standing rows: sum(sign)
	Rows      int64 // rows that are not taken back as a list shows them
	Judged    int64 // standing rows with a verdict
	GrantRows int64 // grants of the standing rows
	Checksum  uint64
	// Sums over the rollups.
	Volume, Usage, Grants int64
	// UsageChecksum, GrantChecksum and VolumeChecksum depend on every key and its sum.
	UsageChecksum, GrantChecksum, VolumeChecksum uint64
	Accesses, GroupSets                          uint64
	PolicyVersions, DeadLetters                  uint64
}

// Totals reads the totals of the store.
func (s *Store) Totals(ctx context.Context) (Totals, error) {
	var t Totals
	for _, q := range []struct {
		sql string
		to  []any
	}{
		{`SELECT sum(toInt64(sign)), toInt64(sumIf(toInt64(sign), outcome != '')), sum(sign * toInt64(length(grants))), toUInt64(sum(sign * reinterpretAsInt64(cityHash64(cluster, request_key, stage, stage_delay, content, version, koffset)))) FROM %s.events`,
			[]any{&t.Events, &t.Judged, &t.GrantRows, &t.Checksum}},
		{`SELECT toInt64(count()) FROM %s.events FINAL WHERE sign = 1`, []any{&t.Rows}},
		{`SELECT sum(c), toUInt64(sum(reinterpretAsInt64(h) * c)) FROM (SELECT sum(count) AS c, cityHash64(cluster, minute, outcome, class, recorded, replayed, kpart, ingest_day) AS h FROM %s.volume GROUP BY h)`, []any{&t.Volume, &t.VolumeChecksum}},
		{`SELECT sum(c), toUInt64(sum(reinterpretAsInt64(h) * c)) FROM (SELECT sum(count) AS c, cityHash64(cluster, access, day, recorded, replayed, outcome, class, kpart, ingest_day) AS h FROM %s.access_usage GROUP BY h)`, []any{&t.Usage, &t.UsageChecksum}},
		{`SELECT sum(c), toUInt64(sum(reinterpretAsInt64(h) * c)) FROM (SELECT sum(count) AS c, cityHash64(cluster, granted, access, day, kpart, ingest_day) AS h FROM %s.grant_usage GROUP BY h)`, []any{&t.Grants, &t.GrantChecksum}},
		{`SELECT uniqExact(access) FROM %s.accesses`, []any{&t.Accesses}},
		{`SELECT uniqExact(group_set) FROM %s.group_sets`, []any{&t.GroupSets}},
		{`SELECT count() FROM %s.policy_objects FINAL`, []any{&t.PolicyVersions}},
		{`SELECT count() FROM %s.dead_letters FINAL`, []any{&t.DeadLetters}},
	} {
		if err := s.conn.QueryRow(ctx, fmt.Sprintf(q.sql, s.db)).Scan(q.to...); err != nil {
			return t, fmt.Errorf("read totals: %w", err)
		}
	}
	return t, nil
}
