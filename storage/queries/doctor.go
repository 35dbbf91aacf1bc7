package queries

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
)

// LogTraits describes the audit log of a range: what its audit policy records, and how far the clocks of sender and receiver are apart.
type LogTraits struct {
	Events   int64
	Live     int64 // events that came by webhook
	Reads    int64 // of get, list and watch
	Received int64 // events of the stage RequestReceived, which say nothing
	Complete int64 // events of the stage ResponseComplete

	PolicyWrites int64 // successful writes to RBAC objects
	PolicyBlind  int64 // of them recorded without the body that tells what they wrote
	SecretBodies int64 // requests about Secrets, tokens and token reviews recorded with bodies
	Truncated    int64 // events whose bodies the apiserver cut off

	// MinDelay and MedianDelay are from an event's stage to its arrival here, of the live ones. Below zero the sender's clock is ahead.
	MinDelay, MedianDelay time.Duration
}

// A create, an update and a collection's deletion need a body to be known; after a patch only
// the answer tells. A delete names its object in the URI.
const logTraitsQuery = `SELECT sum(toInt64(sign)), toInt64(sumIf(toInt64(sign), source = 'webhook')),
    toInt64(sumIf(toInt64(sign), verb IN ('get', 'list', 'watch'))),
    toInt64(sumIf(toInt64(sign), stage = 'RequestReceived')), toInt64(sumIf(toInt64(sign), stage = 'ResponseComplete')),
    toInt64(sumIf(toInt64(sign), policy_write)), toInt64(sumIf(toInt64(sign), policy_write AND (level = 'Metadata' AND verb != 'delete' OR level = 'Request' AND verb = 'patch'))),
    toInt64(sumIf(toInt64(sign), level IN ('Request', 'RequestResponse') AND (object_api_group = '' AND object_resource = 'secrets' OR object_resource = 'tokenreviews' OR object_subresource = 'token'))),
    toInt64(sumIf(toInt64(sign), has(annotations.keys, 'audit.k8s.io/truncated'))),
    toInt64(minIf(delay, source = 'webhook')), toInt64(ifNotFinite(quantileTDigestIf(0.5)(toFloat64(delay), source = 'webhook'), 0))
FROM (
    SELECT sign, source, verb, stage, level, object_api_group, object_resource, object_subresource, annotations.keys,
        object_api_group = 'rbac.authorization.k8s.io' AND verb IN ('create', 'update', 'patch', 'delete', 'deletecollection')
            AND code >= 200 AND code < 300 AND position(request_uri, 'dryRun=') = 0 AS policy_write,
        toUnixTimestamp64Micro(ingested) - toUnixTimestamp64Micro(request_received) - stage_delay AS delay
    FROM %s.events
    WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32}
)`

// LogTraits reads the traits of the events of a cluster in a range.
func (rd *Reader) LogTraits(ctx context.Context, cluster string, from, to time.Time) (LogTraits, error) {
	rows, err := statement.Collect(ctx, rd.at, logTraitsQuery, window(cluster, from, to), func(t *LogTraits) ([]any, func()) {
		var least, median int64
		to := []any{&t.Events, &t.Live, &t.Reads, &t.Received, &t.Complete, &t.PolicyWrites, &t.PolicyBlind, &t.SecretBodies, &t.Truncated,
			&least, &median}
		return to, func() {
			if t.Live > 0 {
				t.MinDelay, t.MedianDelay = time.Duration(least)*time.Microsecond, time.Duration(median)*time.Microsecond
			}
		}
	})
	if err != nil || len(rows) == 0 {
		return LogTraits{}, err
	}
	return rows[0], nil
}

// Letters counts the dead letters of a cluster and reason.
type Letters struct {
	Cluster, Reason string
	Count           int64
	Last            time.Time // received
}

const lettersQuery = `SELECT cluster, reason, toInt64(count()) AS n, toUnixTimestamp64Micro(max(received))
FROM %s.dead_letters FINAL
WHERE toUnixTimestamp64Micro(received) >= {since:Int64}
GROUP BY cluster, reason
ORDER BY n DESC, cluster, reason`

// DeadLetters counts the dead letters received since a time, most first.
func (rd *Reader) DeadLetters(ctx context.Context, since time.Time) ([]Letters, error) {
	return statement.Collect(ctx, rd.at, lettersQuery, clickhouse.Parameters{"since": fmt.Sprint(since.UnixMicro())},
		func(l *Letters) ([]any, func()) {
			var last int64
			return []any{&l.Cluster, &l.Reason, &l.Count, &last}, func() { l.Last = codec.FromMicro(last) }
		})
}

// ConfigUse counts the requests of an hour that were judged by one configuration.
type ConfigUse struct {
	Cluster, APIServer string
	Hour               time.Time // of the requests: its beginning
	Config             string    // as Verdict.Config
	Requests           int64
}

// It reads four narrow columns, and answers with some rows an hour.
const configUseQuery = `SELECT cluster, apiserver, toUnixTimestamp(toStartOfHour(minute)) AS hour, config_version, sum(toInt64(sign)) AS n
FROM %s.events
WHERE outcome != '' AND ({cluster:String} = '' OR cluster = {cluster:String})
GROUP BY cluster, apiserver, hour, config_version
HAVING n > 0
ORDER BY cluster, hour, apiserver, config_version`

// ConfigUse returns by which configurations the stored requests of a cluster were judged, of
// every cluster for "", by cluster and then the oldest hour first.
func (rd *Reader) ConfigUse(ctx context.Context, cluster string) ([]ConfigUse, error) {
	used, err := statement.Collect(ctx, rd.at, configUseQuery, clickhouse.Parameters{"cluster": statement.Text(cluster)},
		func(u *ConfigUse) ([]any, func()) {
			var hour uint32
			return []any{&u.Cluster, &u.APIServer, &hour, &u.Config, &u.Requests}, func() { u.Hour = time.Unix(int64(hour), 0).UTC() }
		})
	if err != nil {
		return nil, fmt.Errorf("read configurations of stored requests: %w", err)
	}
	return used, nil
}
