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

// SubjectUsage is what one subject did, from the rollups. They count by day: a range
// covers the days (UTC) it touches. Generated names are folded to *.
type SubjectUsage struct {
	Groups      [][]string // sets the subject was seen with, each sorted
	OtherGroups int64      // requests with others, which are not told apart
	First, Last time.Time  // zero when there is no request
	Requests    int64
	Forbidden   int64 // recorded as refused
	Drift       int64
	Folded      int64 // not counted by name, or at all by what was asked for: see Other
	// Untold counts the cluster's requests of subjects that are not told apart: some may be of this one.
	Untold int64
	Uses   []Use // most requests first
	More   bool  // there are more than were asked for
	Grants []GrantUse
}

// Use is one distinct thing a subject asked for.
type Use struct {
	Verb, Group, Resource, Subresource, Namespace, Name, Path string

	// Implied names the check behind other requests that this is, empty for requests of its
	// own; Covered checks pass without the verb. Requests then counts the checks.
	Implied string
	Covered bool

	Requests           int64
	Allowed, Forbidden int64 // as recorded; the rest has no recorded decision
	First, Last        time.Time
}

// GrantUse is a grant that made requests possible.
type GrantUse struct {
	Grant    verdict.Grant
	Requests int64
	Implied  int64 // checks behind other requests that it let pass
	Last     time.Time
}

// ofSubject are the accesses of a subject, setsOfSubject its sets of groups. Their table has one row or more of each.
const (
	ofSubject     = `SELECT access FROM %[1]s.accesses WHERE cluster = {cluster:String} AND subject = {subject:String}`
	setsOfSubject = `SELECT group_set FROM %[1]s.accesses WHERE cluster = {cluster:String} AND subject = {subject:String}`
)

const subjectSetsQuery = `SELECT a.group_set, any(g.groups), sum(u.count) AS requests, toInt64(sumIf(u.count, recorded = 'forbid')), toInt64(sumIf(u.count, outcome = 'drift')), toInt64(sumIf(u.count, a.folded)),
    toUnixTimestamp64Micro(min(first_seen)), toUnixTimestamp64Micro(max(last_seen))
FROM %[1]s.access_usage AS u
INNER JOIN (SELECT access, any(group_set) AS group_set, any(name) = '` + codec.Other + `' OR any(path) = '` + codec.Other + `' AS folded FROM %[1]s.accesses WHERE cluster = {cluster:String} AND subject = {subject:String} GROUP BY access) AS a ON a.access = u.access
LEFT JOIN (SELECT group_set, any(groups) AS groups FROM %[1]s.group_sets WHERE group_set IN (` + setsOfSubject + `) GROUP BY group_set) AS g ON g.group_set = a.group_set
WHERE u.cluster = {cluster:String} AND toUInt16(u.day) BETWEEN {from_day:UInt16} AND {to_day:UInt16} AND u.implied = '' AND u.access IN (` + ofSubject + `)
GROUP BY a.group_set
HAVING requests > 0
ORDER BY requests DESC, a.group_set`

const subjectUsesQuery = `SELECT a.verb, a.api_group, a.resource, a.subresource, a.namespace, a.name, a.path, u.implied, u.covered,
    sum(u.count) AS requests, toInt64(sumIf(u.count, recorded = 'allow')), toInt64(sumIf(u.count, recorded = 'forbid')),
    toUnixTimestamp64Micro(min(first_seen)), toUnixTimestamp64Micro(max(last_seen))
FROM %[1]s.access_usage AS u
INNER JOIN (SELECT access, any(verb) AS verb, any(api_group) AS api_group, any(resource) AS resource, any(subresource) AS subresource, any(namespace) AS namespace, any(name) AS name, any(path) AS path
    FROM %[1]s.accesses WHERE cluster = {cluster:String} AND subject = {subject:String} GROUP BY access) AS a ON a.access = u.access
WHERE u.cluster = {cluster:String} AND toUInt16(u.day) BETWEEN {from_day:UInt16} AND {to_day:UInt16} AND u.access IN (` + ofSubject + `)
GROUP BY a.verb, a.api_group, a.resource, a.subresource, a.namespace, a.name, a.path, u.implied, u.covered
HAVING requests > 0
ORDER BY requests DESC, a.api_group, a.resource, a.subresource, a.namespace, a.name, a.path, a.verb, u.implied, u.covered
LIMIT {limit:UInt32}`

const subjectGrantsQuery = `SELECT granted, toInt64(sumIf(count, implied = '')) AS requests, toInt64(sumIf(count, implied != '')) AS checks, toUnixTimestamp64Micro(max(last_seen))
FROM %[1]s.grant_usage
WHERE cluster = {cluster:String} AND toUInt16(day) BETWEEN {from_day:UInt16} AND {to_day:UInt16} AND access IN (` + ofSubject + `)
GROUP BY granted
HAVING requests + checks > 0
ORDER BY requests DESC, checks DESC, granted`

// SubjectUsage sums what a subject did in a range, zero bounds leave it open, with at most limit distinct uses.
func (rd *Reader) SubjectUsage(ctx context.Context, cluster, subject string, from, to time.Time, limit int) (SubjectUsage, error) {
	var out SubjectUsage
	p := clickhouse.Parameters{"cluster": statement.Text(cluster), "subject": statement.Text(subject), "from_day": "0", "to_day": "65535",
		"limit": fmt.Sprint(limit + 1)}
	if !from.IsZero() {
		p["from_day"] = fmt.Sprint(codec.Day(from))
	}
	if !to.IsZero() {
		p["to_day"] = fmt.Sprint(codec.Day(to.Add(-time.Microsecond)))
	}
	type set struct {
		key                                uint64
		groups                             []string
		requests, forbidden, drift, folded int64
		first, last                        int64
	}
	sets, err := statement.Collect(ctx, rd.at, subjectSetsQuery, p, func(g *set) ([]any, func()) {
		return []any{&g.key, &g.groups, &g.requests, &g.forbidden, &g.drift, &g.folded, &g.first, &g.last}, nil
	})
	if err != nil {
		return out, fmt.Errorf("usage of %q: %w", subject, err)
	}
	for _, g := range sets {
		if codec.GroupsTold(g.key) {
			out.Groups = append(out.Groups, g.groups)
		} else {
			out.OtherGroups += g.requests
		}
		out.Requests, out.Forbidden, out.Drift, out.Folded = out.Requests+g.requests, out.Forbidden+g.forbidden, out.Drift+g.drift,
			out.Folded+g.folded
		if first := codec.FromMicro(g.first); out.First.IsZero() || first.Before(out.First) {
			out.First = first
		}
		if last := codec.FromMicro(g.last); last.After(out.Last) {
			out.Last = last
		}
	}
	others, err := rd.otherDays(ctx, cluster, p["from_day"], p["to_day"])
	if err != nil {
		return out, err
	}
	out.Untold = others.requests
	out.Uses, err = statement.Collect(ctx, rd.at, subjectUsesQuery, p, func(u *Use) ([]any, func()) {
		var first, last int64
		var covered uint8
		return []any{&u.Verb, &u.Group, &u.Resource, &u.Subresource, &u.Namespace, &u.Name, &u.Path, &u.Implied, &covered, &u.Requests,
				&u.Allowed, &u.Forbidden, &first, &last},
			func() { u.First, u.Last, u.Covered = codec.FromMicro(first), codec.FromMicro(last), covered != 0 }
	})
	if err != nil {
		return out, fmt.Errorf("usage of %q: %w", subject, err)
	}
	if out.More = len(out.Uses) > limit; out.More {
		out.Uses = out.Uses[:limit]
	}
	var bad error
	out.Grants, err = statement.Collect(ctx, rd.at, subjectGrantsQuery, p, func(g *GrantUse) ([]any, func()) {
		var granted string
		var last int64
		return []any{&granted, &g.Requests, &g.Implied, &last}, func() {
			g.Last = codec.FromMicro(last)
			if bad == nil {
				g.Grant, bad = codec.DecodeGrant(granted)
			}
		}
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return out, fmt.Errorf("grants of %q: %w", subject, err)
	}
	return out, nil
}

// nearFar is by how many letters at most a subject that is called much like a name is spelt in another way.
const nearFar = 4

const nearQuery = `SELECT subject, if(length(subject) <= 128 AND length({name:String}) <= 128
    AND abs(toInt64(length(subject)) - toInt64(length({name:String}))) <= {far:UInt8},
    damerauLevenshteinDistance(lower(subject), lower({name:String})), 255) AS distance
FROM (SELECT DISTINCT toString(subject) AS subject FROM %[1]s.accesses
    WHERE cluster = {cluster:String} AND access IN (SELECT access FROM %[1]s.access_usage WHERE cluster = {cluster:String}))
WHERE distance <= {far:UInt8} OR positionCaseInsensitive(subject, {name:String}) > 0
ORDER BY least(distance, {far:UInt8} + 1), subject
LIMIT {limit:UInt32}`

// NearSubjects returns subjects with requests whose names resemble a name, the closest first, and then those that contain it.
func (rd *Reader) NearSubjects(ctx context.Context, cluster, name string, limit int) ([]string, error) {
	p := clickhouse.Parameters{"cluster": statement.Text(cluster), "name": statement.Text(name), "far": fmt.Sprint(nearFar),
		"limit": fmt.Sprint(limit)}
	out, err := statement.Collect(ctx, rd.at, nearQuery, p, func(n *string) ([]any, func()) { return []any{n, new(uint64)}, nil })
	if err != nil {
		return nil, fmt.Errorf("subjects like %q: %w", name, err)
	}
	return out, nil
}
