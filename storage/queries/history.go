package queries

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
)

// Recording says what is stored of a cluster's requests in a range.
type Recording struct {
	First, Last time.Time // of the requests; zero when there is none
	Requests    int64
	Classes     []Share // the requests by outcome and class
	Truncated   int64   // whose bodies were cut off before they came here
	Dropped     int64   // that only the rollups know: their events are past retention
	DeadLetters int64   // of the cluster, whenever they came
}

// wereCut selects the requests whose bodies were cut off before they came here.
const wereCut = `(has(annotations.keys, 'audit.k8s.io/truncated') OR has(annotations.keys, 'retrial.io/stripped-bytes'))`

const recordingQuery = `SELECT outcome, class, sum(toInt64(sign)) AS requests,
    toInt64(sumIf(toInt64(sign), ` + wereCut + `)),
    min(toUnixTimestamp64Micro(request_received)), max(toUnixTimestamp64Micro(request_received))
FROM %s.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND outcome != ''
GROUP BY outcome, class
HAVING requests > 0
ORDER BY requests DESC, outcome, class`

const keptQuery = `SELECT (SELECT sum(count) FROM %[1]s.volume WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND outcome != ''),
    (SELECT toInt64(count()) FROM %[1]s.dead_letters FINAL WHERE cluster = {cluster:String})`

// Recording sums up the minutes from from to to; zero bounds leave the range open.
func (rd *Reader) Recording(ctx context.Context, cluster string, from, to time.Time) (Recording, error) {
	var out Recording
	p := minutes(cluster, from, to)
	type line struct {
		Share
		truncated, first, last int64
	}
	list, err := statement.Collect(ctx, rd.at, recordingQuery, p, func(l *line) ([]any, func()) {
		return []any{&l.Outcome, &l.Class, &l.Requests, &l.truncated, &l.first, &l.last}, nil
	})
	if err != nil {
		return out, fmt.Errorf("sum up the requests of cluster %q: %w", cluster, err)
	}
	for _, l := range list {
		out.Requests, out.Truncated = out.Requests+l.Requests, out.Truncated+l.truncated
		out.Classes = append(out.Classes, l.Share)
		if first := codec.FromMicro(l.first); out.First.IsZero() || first.Before(out.First) {
			out.First = first
		}
		if last := codec.FromMicro(l.last); last.After(out.Last) {
			out.Last = last
		}
	}
	type kept struct{ volume, dead int64 }
	rest, err := statement.Collect(ctx, rd.at, keptQuery, p, func(k *kept) ([]any, func()) { return []any{&k.volume, &k.dead}, nil })
	if err != nil {
		return out, fmt.Errorf("sum up the requests of cluster %q: %w", cluster, err)
	}
	for _, k := range rest {
		out.Dropped, out.DeadLetters = max(k.volume-out.Requests, 0), k.dead
	}
	return out, nil
}

// minutes returns the parameters of a cluster and the minutes a range touches; zero bounds leave it open.
func minutes(cluster string, from, to time.Time) clickhouse.Parameters {
	p := clickhouse.Parameters{"cluster": statement.Text(cluster), "first_minute": "0", "last_minute": fmt.Sprint(uint32(1<<32 - 1))}
	if !from.IsZero() {
		p["first_minute"] = fmt.Sprint(codec.Minute(from))
	}
	if !to.IsZero() {
		p["last_minute"] = fmt.Sprint(codec.Minute(to.Add(-time.Microsecond)))
	}
	return p
}

// Writes whose checks depend on their content. Those of roles and bindings are told by the verdict; those about certificates may need the
// bodies (implied.SignerOf).
const (
	contentWrite = `attr_is_resource = 1 AND attr_verb IN ('create', 'update', 'patch') AND recorded = 'allow' AND ` +
		`outcome IN ('match', 'ambiguous')`
	roleWrite   = `(attr_api_group = 'rbac.authorization.k8s.io' AND ` + contentWrite + `)`
	signerWrite = `(attr_api_group = 'certificates.k8s.io' AND ` + contentWrite + `)`
)

// Conditions that find the granules which have such writes.
const (
	inRoles   = `object_resource IN ('roles', 'clusterroles', 'rolebindings', 'clusterrolebindings') AND `
	inSigners = `object_resource IN ('certificatesigningrequests', 'clustertrustbundles', 'podcertificaterequests') AND `
)

// refusedAsAnother are refused requests of those who were allowed to act as who was refused; %[1]s is the database and %[2]s a condition on
// who asked.
const refusedAsAnother = `bitAnd(shape, 1) = 1 AND recorded = 'forbid' AND impersonation = 'allow' AND outcome IN ('match', 'ambiguous') ` +
	`AND minute IN (SELECT minute FROM %[1]s.refused WHERE cluster = {cluster:String} AND recorded = 'forbid' AND ` +
	`user_name != subject%[2]s)%[2]s`

// What is read besides the keys: a code matters where a websocket was refused, where a write created, and where content decides.
const (
	answer = `if(` + roleWrite + ` OR attr_is_resource = 1 AND code IN (201, 403) AND (attr_verb IN ('patch', 'update') OR ` +
		`attr_resource = 'pods'), code, 0) AS answer`
	answerAndBodies = `code AS answer, request_key, stage, stage_delay, content, any(response_status), any(request_object), ` +
		`any(response_object)`
)

const aboutSubjects = " AND (subject IN {subjects:Array(String)} OR user_name IN {subjects:Array(String)})"

// historyQuery groups requests. It may use as much disk as it needs, and little memory.
const historyQuery = `SELECT %[2]s,
    %[3]s,
    any(recorded_reason), any(impersonation_grants), sum(toInt64(sign)) AS requests,
    min(toUnixTimestamp64Micro(request_received)), max(toUnixTimestamp64Micro(request_received))
FROM %[1]s.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND outcome != ''%[4]s
GROUP BY ALL
HAVING requests > 0
SETTINGS max_bytes_before_external_group_by = 268435456`

// History visits the requests of a cluster of the minutes from from to to, grouped and in no order; zero bounds leave the range open. With
// subjects, it visits only requests made as them, or by them as somebody else. It streams, day by day.
func (rd *Reader) History(ctx context.Context, cluster string, from, to time.Time, subjects []string, visit func(codec.Alike) error) error {
	p := minutes(cluster, from, to)
	days, err := statement.Collect(ctx, rd.at, `SELECT DISTINCT intDiv(toUInt32(minute), 86400) AS day FROM %s.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} ORDER BY day`, p,
		func(d *uint32) ([]any, func()) { return []any{d}, nil })
	if err != nil {
		return fmt.Errorf("history of cluster %q: %w", cluster, err)
	}
	about := ""
	if len(subjects) > 0 {
		about = aboutSubjects
	}
	for _, d := range days {
		day := minutes(cluster, time.Unix(int64(d)*86400, 0), time.Unix(int64(d)*86400+86400, 0))
		if !from.IsZero() && codec.Minute(from) > d*86400 {
			day["first_minute"] = p["first_minute"]
		}
		if !to.IsZero() && uint64(codec.Minute(to.Add(-time.Microsecond))) < uint64(d)*86400+86400 {
			day["last_minute"] = p["last_minute"]
		}
		if len(subjects) > 0 {
			day["subjects"] = statement.Texts(subjects)
		}
		if err := rd.alike(ctx, answer, " AND NOT "+signerWrite+about, day, false, visit); err != nil {
			return fmt.Errorf("history of cluster %q: %w", cluster, err)
		}
		if err := rd.alike(ctx, answerAndBodies, " AND "+signerWrite+about, day, true, visit); err != nil {
			return fmt.Errorf("history of cluster %q: %w", cluster, err)
		}
	}
	return nil
}

// Untold visits, as History does, what of all that is stored needed more than Uses tells: see Untold of a verdict. Without writes it leaves
// out those whose content decides, and looks at few events.
func (rd *Reader) Untold(ctx context.Context, cluster string, subjects []string, writes bool, visit func(codec.Alike) error) error {
	p, of, by := minutes(cluster, time.Time{}, time.Time{}), "", ""
	if len(subjects) > 0 {
		p["subjects"] = statement.Texts(subjects)
		of, by = " AND subject IN {subjects:Array(String)}", " AND user_name IN {subjects:Array(String)}"
	}
	for _, q := range [...]struct {
		also, where   string
		writes, whole bool
	}{
		{answer, fmt.Sprintf(refusedAsAnother, rd.at.Name, by), false, false},
		{answer, inRoles + roleWrite + of, true, false}, {answerAndBodies, inSigners + signerWrite + of, true, true},
	} {
		if q.writes && !writes {
			continue
		}
		if err := rd.alike(ctx, q.also, " AND "+q.where, p, q.whole, visit); err != nil {
			return fmt.Errorf("what rollups do not tell of cluster %q: %w", cluster, err)
		}
	}
	return nil
}

// alike visits requests that a condition selects, grouped.
func (rd *Reader) alike(ctx context.Context, also, where string, p clickhouse.Parameters, bodies bool,
	visit func(codec.Alike) error) error {
	ctx, cancel := context.WithCancel(statement.Params(ctx, p))
	defer cancel()
	res, err := rd.at.Conn.Query(ctx, fmt.Sprintf(historyQuery, rd.at.Name, codec.AlikeKeys, also, where))
	if err != nil {
		return err
	}
	defer res.Close()
	scan := codec.NewAlikeScan(bodies)
	for res.Next() {
		if err := res.Scan(scan.Targets()...); err != nil {
			return err
		}
		a, err := scan.Alike()
		if err != nil {
			return err
		}
		if err := visit(a); err != nil {
			return err
		}
	}
	return res.Err()
}

const policyQuery = `SELECT argMax(observation, toUInt64OrZero(resource_version))
FROM %s.policy_objects
WHERE cluster = {cluster:String} AND resource IN {resources:Array(String)} AND deleted = 0 AND JSONHas(observation, 'object')
GROUP BY resource, namespace, name`

// NewestPolicy visits the newest observation with content of every object of the given
// resources, as replay/state wrote it, whether or not the object is still there.
func (rd *Reader) NewestPolicy(ctx context.Context, cluster string, resources []string, visit func(observation []byte) error) error {
	ctx, cancel := context.WithCancel(statement.Params(ctx,
		clickhouse.Parameters{"cluster": statement.Text(cluster), "resources": statement.Texts(slices.Clone(resources))}))
	defer cancel()
	res, err := rd.at.Conn.Query(ctx, strings.Replace(policyQuery, "%s", rd.at.Name, 1))
	if err != nil {
		return fmt.Errorf("newest policy of cluster %q: %w", cluster, err)
	}
	defer res.Close()
	for res.Next() {
		var observation string
		if err := res.Scan(&observation); err != nil {
			return fmt.Errorf("newest policy of cluster %q: %w", cluster, err)
		}
		if err := visit([]byte(observation)); err != nil {
			return err
		}
	}
	if err := res.Err(); err != nil {
		return fmt.Errorf("newest policy of cluster %q: %w", cluster, err)
	}
	return nil
}

const objectQuery = `SELECT argMax(observation, toUInt64OrZero(resource_version))
FROM %s.policy_objects
WHERE cluster = {cluster:String} AND resource = {resource:String} AND namespace = {namespace:String} AND name = {name:String}
    AND deleted = 0 AND JSONHas(observation, 'object')
HAVING count() > 0`

// NewestObject returns the newest observation with content of one object, nil for none.
func (rd *Reader) NewestObject(ctx context.Context, cluster, resource, namespace, name string) (observation []byte, err error) {
	p := clickhouse.Parameters{"cluster": statement.Text(cluster), "resource": statement.Text(resource),
		"namespace": statement.Text(namespace), "name": statement.Text(name)}
	list, err := statement.Collect(ctx, rd.at, objectQuery, p, func(s *string) ([]any, func()) { return []any{s}, nil })
	switch {
	case err != nil:
		return nil, fmt.Errorf("newest content of %s %s/%s of cluster %q: %w", resource, namespace, name, cluster, err)
	case len(list) == 0:
		return nil, nil
	}
	return []byte(list[0]), nil
}
