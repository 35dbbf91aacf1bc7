package storage

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// trimLimits bound the contents in policy_objects: whoever may write one object may write it any number of times, a megabyte each.
// docs/adr/0076.
type trimLimits struct {
	object  int64 // bytes of observations of one object, as JSON
	cluster int64 // bytes of a cluster's large observations
	large   int64 // what is large
	growth  int64 // of the table, uncompressed, before it is looked at again
}

var usualTrim = trimLimits{object: 16 << 20, cluster: 1 << 30, large: 8 << 10, growth: 64 << 20} //nolint:gochecknoglobals // constant

// trimPart bounds the bytes that are read, written without contents and deleted at a time.
const trimPart = 16 << 20

// policyCut selects the observations of an object that lose their contents.
type policyCut struct {
	cluster, resource, namespace, name string

	before int64 // in microseconds: observed earlier
	least  int64 // and of so many bytes
	spare  int64 // but for the one observed then
}

// withContent is the condition for observations that say what an object held, or may have held. Forgetting a write whose answer was lost
// leaves an outline, which is small and marked.
const withContent = "name != '' AND deleted = 0 AND JSONHas(observation, 'object') AND NOT (JSONHas(observation, 'object', 'forgotten') " +
	"AND length(observation) <= 2048)"

// isCertain is the condition for those that say for certain what an object held.
const isCertain = "NOT JSONHas(observation, 'unknown') AND NOT JSONHas(observation, 'patch')"

// trimPolicy replaces old observations with what forget leaves of them: the oldest of an object that exceeds its share, and the oldest
// large ones of a cluster that has too much. The newest content of an object always stays, and so does the newest content that the object
// certainly held: a writer whose answers are lost must not make existing objects unknown. After a crash some observations may be stored in
// both forms, which say the same, until the next trim.
func (s *Store) trimPolicy(ctx context.Context, forget func(observation []byte) ([]byte, error)) error {
	s.trimming.Lock()
	defer s.trimming.Unlock()
	size, err := s.policyBytes(ctx)
	if err != nil || size < s.trimAt {
		return err
	}
	cuts, err := s.objectCuts(ctx)
	if err == nil {
		var more []policyCut
		more, err = s.clusterCuts(ctx)
		cuts = append(cuts, more...)
	}
	if err != nil {
		return fmt.Errorf("find old contents of policy: %w", err)
	}
	for _, c := range cuts {
		n, err := s.forgetContents(ctx, c, forget)
		if err != nil {
			return fmt.Errorf("forget old contents of %s %s/%s of cluster %q: %w", c.resource, c.namespace, c.name, c.cluster, err)
		}
		if n > 0 {
			s.metrics.forgotten.WithLabelValues(c.cluster).Add(float64(n))
			s.cfg.Log.Warn("old contents of a policy object forgotten: it was written too often", zap.String("cluster", c.cluster),
				zap.String("resource", c.resource),
				zap.String("namespace", c.namespace), zap.String("name", c.name), zap.Int("versions", n),
				zap.Time("before", codec.FromMicro(c.before)))
		}
	}
	if size, err = s.policyBytes(ctx); err == nil {
		s.trimAt = size + s.trim.growth
	}
	return err
}

// policyBytes returns the bytes of policy_objects before compression.
func (s *Store) policyBytes(ctx context.Context) (n int64, err error) {
	err = s.conn.QueryRow(statement.Params(ctx, clickhouse.Parameters{"db": statement.Text(s.localDatabase())}),
		"SELECT toInt64(sum(data_uncompressed_bytes)) FROM "+s.parts()+
			" WHERE active AND database = {db:String} AND table = 'policy_objects'").Scan(&n)
	return n, err
}

// objectCuts returns the cuts of objects that exceed their share: down to three quarters of it.
func (s *Store) objectCuts(ctx context.Context) ([]policyCut, error) {
	const of = " OVER (PARTITION BY cluster, resource, namespace, name"
	return s.cuts(ctx, `SELECT cluster, resource, namespace, name, before, toInt64(0), newest
FROM
(
    SELECT cluster, resource, namespace, name, at, newest, min(if(newer <= {enough:Int64} OR place = 1, at, {endless:Int64}))`+of+`) AS before
    FROM
    (
        SELECT cluster, resource, namespace, name, at, total, newest,
            sum(bytes)`+of+` ORDER BY at DESC, version DESC ROWS UNBOUNDED PRECEDING) AS newer, row_number()`+of+` ORDER BY at DESC, version DESC) AS place
        FROM
        (
            SELECT cluster, resource, namespace, name, toUInt64OrZero(resource_version) AS version, toUnixTimestamp64Micro(observed) AS at, length(observation) AS bytes,
                sum(bytes)`+of+`) AS total, maxIf(at, `+isCertain+`)`+of+`) AS newest
            FROM %[1]s.policy_objects FINAL
            WHERE (cluster, resource, namespace, name) IN (SELECT cluster, resource, namespace, name FROM %[1]s.policy_objects GROUP BY cluster, resource, namespace, name HAVING sum(length(observation)) > {limit:Int64})
                AND `+withContent+`
        )
    )
    WHERE total > {limit:Int64}
)
WHERE at < before AND at != newest
GROUP BY cluster, resource, namespace, name, before, newest`, s.trim.object)
}

// clusterCuts returns the cuts of clusters with too many large contents.
func (s *Store) clusterCuts(ctx context.Context) ([]policyCut, error) {
	return s.cuts(ctx, `SELECT cluster, resource, namespace, name, before, {large:Int64}, newest
FROM
(
    SELECT cluster, resource, namespace, name, at, newest, least(min(if(newer <= {enough:Int64}, at, {endless:Int64})) OVER (PARTITION BY cluster), last) AS before
    FROM
    (
        SELECT cluster, resource, namespace, name, toUnixTimestamp64Micro(observed) AS at, length(observation) AS bytes, sum(bytes) OVER (PARTITION BY cluster) AS total,
            sum(bytes) OVER (PARTITION BY cluster ORDER BY at DESC, resource, namespace, name ROWS UNBOUNDED PRECEDING) AS newer,
            max(at) OVER (PARTITION BY cluster, resource, namespace, name) AS last,
            maxIf(at, `+isCertain+`) OVER (PARTITION BY cluster, resource, namespace, name) AS newest
        FROM %[1]s.policy_objects FINAL
        WHERE length(observation) >= {large:Int64} AND `+withContent+`
    )
    WHERE total > {limit:Int64}
)
WHERE at < before AND at != newest
GROUP BY cluster, resource, namespace, name, before, newest`, s.trim.cluster)
}

func (s *Store) cuts(ctx context.Context, query string, limit int64) ([]policyCut, error) {
	p := clickhouse.Parameters{"limit": fmt.Sprint(limit), "enough": fmt.Sprint(limit / 4 * 3), "large": fmt.Sprint(s.trim.large),
		"endless": fmt.Sprint(int64(1) << 62)}
	return statement.Collect(ctx, s.at(), query+sparing, p, func(c *policyCut) ([]any, func()) {
		return []any{&c.cluster, &c.resource, &c.namespace, &c.name, &c.before, &c.least, &c.spare}, nil
	})
}

// forgetContents replaces the observations of a cut, part by part, and returns how many.
func (s *Store) forgetContents(ctx context.Context, c policyCut, forget func([]byte) ([]byte, error)) (n int, err error) {
	const of = " cluster = {cluster:String} AND resource = {resource:String} AND namespace = {namespace:String} AND name = {name:String} " +
		"AND toUnixTimestamp64Micro(observed) < {before:Int64}" +
		" AND toUnixTimestamp64Micro(observed) != {spare:Int64} AND length(observation) >= {least:Int64} AND " + withContent
	p := clickhouse.Parameters{"cluster": statement.Text(c.cluster), "resource": statement.Text(c.resource),
		"namespace": statement.Text(c.namespace), "name": statement.Text(c.name),
		"before": fmt.Sprint(c.before), "least": fmt.Sprint(c.least), "spare": fmt.Sprint(c.spare)}
	var part []verdict.PolicyVersion
	bytes := 0
	save := func() error {
		err := s.SavePolicy(ctx, part)
		n, part, bytes = n+len(part), nil, 0
		return err
	}
	err = s.policyRows(statement.Params(ctx, p), " WHERE"+of, func(v verdict.PolicyVersion) error {
		bytes += len(v.Observation)
		if v.Observation, err = forget(v.Observation); err != nil {
			return err
		}
		if part = append(part, v); bytes < trimPart {
			return nil
		}
		return save()
	})
	if err == nil && len(part) > 0 {
		err = save()
	}
	if err != nil || n == 0 {
		return n, err
	}
	return n, s.exec(ctx, p,
		fmt.Sprintf("ALTER TABLE %s%s DELETE WHERE%s SETTINGS mutations_sync = 1", s.local("policy_objects"), s.form().OnCluster(), of))
}
