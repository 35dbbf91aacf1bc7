package queries

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
)

// AuditSample is one reading of a kube-apiserver's audit counters, which count from the start of its process.
type AuditSample struct {
	Cluster, APIServer string
	Taken              time.Time // by the clock of who asked
	// Earliest and Latest bound the moment of the reading by the apiserver's own clock, which is the one that its events are stamped by.
	Earliest, Latest time.Time
	Started          time.Time // of its process
	Events           int64     // handed to its audit backends, each stage of a request one
	WebhookErrors    int64     // events its webhook backend gave up on
	BufferErrors     int64     // events that found its buffer full
	LogErrors        int64     // events its log backend could not write
	Rejected         int64     // requests refused because they could not be audited
}

const auditSamplesQuery = `SELECT apiserver, toUnixTimestamp64Micro(taken), toUnixTimestamp64Micro(earliest), toUnixTimestamp64Micro(latest), toUnixTimestamp64Micro(started),
    events, webhook_errors, buffer_errors, log_errors, rejected
FROM %s.audit_samples FINAL
WHERE cluster = {cluster:String} AND taken >= fromUnixTimestamp64Micro({from:Int64}) AND taken < fromUnixTimestamp64Micro({to:Int64})
ORDER BY apiserver, taken`

// AuditSamples returns the readings of a cluster's apiservers taken in a range, by apiserver and time.
func (rd *Reader) AuditSamples(ctx context.Context, cluster string, from, to time.Time) ([]AuditSample, error) {
	return statement.Collect(ctx, rd.at, auditSamplesQuery, span(cluster, from, to), func(a *AuditSample) ([]any, func()) {
		var at [4]int64
		return []any{&a.APIServer, &at[0], &at[1], &at[2], &at[3], &a.Events, &a.WebhookErrors, &a.BufferErrors, &a.LogErrors,
				&a.Rejected}, func() {
				a.Cluster = cluster
				a.Taken, a.Earliest, a.Latest, a.Started = codec.FromMicro(at[0]), codec.FromMicro(at[1]), codec.FromMicro(at[2]),
					codec.FromMicro(at[3])
			}
	})
}

// span returns the parameters of a cluster and a stretch of time in microseconds.
func span(cluster string, from, to time.Time) clickhouse.Parameters {
	return clickhouse.Parameters{"cluster": statement.Text(cluster), "from": fmt.Sprint(from.UnixMicro()), "to": fmt.Sprint(to.UnixMicro()),
		"day": fmt.Sprint(codec.Day(from.Add(-24 * time.Hour)))}
}

// Received counts the events of an apiserver whose stage lies between two cuts of time.
type Received struct {
	APIServer string
	Cut       time.Time // the one the stretch begins with
	Events    int64
}

// An event's stage may come hours after its request (watches), so that only the day of its arrival bounds what is read.
const receivedQuery = `SELECT apiserver, roundDown(stage_us, {cuts:Array(Int64)}) AS cut, sum(toInt64(sign)) AS n
FROM (
    SELECT apiserver, sign, toUnixTimestamp64Micro(request_received) + stage_delay AS stage_us
    FROM %s.events
    WHERE cluster = {cluster:String} AND ingest_day >= toDate({day:UInt16})
)
WHERE stage_us >= {from:Int64} AND stage_us < {to:Int64}
GROUP BY apiserver, cut
HAVING n != 0
ORDER BY apiserver, cut`

// Received counts the events of a cluster between ascending cuts, at least two; the last one
// ends the last stretch. Stretches without events are left out.
func (rd *Reader) Received(ctx context.Context, cluster string, cuts []time.Time) ([]Received, error) {
	if len(cuts) < 2 {
		return nil, nil
	}
	return statement.Collect(ctx, rd.at, receivedQuery, cutSpan(cluster, cuts), func(r *Received) ([]any, func()) {
		var cut int64
		return []any{&r.APIServer, &cut, &r.Events}, func() { r.Cut = codec.FromMicro(cut) }
	})
}

// FromLog counts the events of an apiserver whose stage lies between two cuts of time and that
// came from a log before any webhook brought them.
type FromLog struct {
	APIServer string
	Cut       time.Time // the one the stretch begins with
	Events    int64
	Last      time.Time // arrival of the last of them
}

const fromLogQuery = `SELECT apiserver, roundDown(stage_us, {cuts:Array(Int64)}) AS cut, sum(toInt64(sign)) AS n, max(arrived)
FROM (
    SELECT apiserver, sign, toUnixTimestamp64Micro(request_received) + stage_delay AS stage_us, toUnixTimestamp64Micro(ingested) AS arrived
    FROM %s.events
    WHERE cluster = {cluster:String} AND ingest_day >= toDate({day:UInt16}) AND source IN ('log', 'import')
)
WHERE stage_us >= {from:Int64} AND stage_us < {to:Int64}
GROUP BY apiserver, cut
HAVING n > 0
ORDER BY apiserver, cut`

// FromLog counts the events of a cluster that came from a log first between ascending cuts, at least two, as [Store.Received] counts all.
func (rd *Reader) FromLog(ctx context.Context, cluster string, cuts []time.Time) ([]FromLog, error) {
	if len(cuts) < 2 {
		return nil, nil
	}
	return statement.Collect(ctx, rd.at, fromLogQuery, cutSpan(cluster, cuts), func(r *FromLog) ([]any, func()) {
		var cut, last int64
		return []any{&r.APIServer, &cut, &r.Events, &last}, func() { r.Cut, r.Last = codec.FromMicro(cut), codec.FromMicro(last) }
	})
}

// cutSpan returns the parameters of a cluster and cuts of time.
func cutSpan(cluster string, cuts []time.Time) clickhouse.Parameters {
	at := make([]int64, len(cuts))
	for i, c := range cuts {
		at[i] = c.UnixMicro()
	}
	p := span(cluster, cuts[0], cuts[len(cuts)-1])
	p["cuts"] = statement.Numbers(at[:len(at)-1])
	return p
}

// ServerVolume is how many events of an apiserver a stretch of time has.
type ServerVolume struct {
	APIServer string
	Events    int64
}

const serverVolumeQuery = `SELECT apiserver, sum(toInt64(sign)) AS n
FROM %s.events
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32}
GROUP BY apiserver
HAVING n != 0
ORDER BY apiserver`

// ServerVolumes counts events by apiserver, of whole minutes. It reads the events of the range: ask for short ones.
func (rd *Reader) ServerVolumes(ctx context.Context, cluster string, from, to time.Time) ([]ServerVolume, error) {
	return statement.Collect(ctx, rd.at, serverVolumeQuery, window(cluster, from, to), func(v *ServerVolume) ([]any, func()) {
		return []any{&v.APIServer, &v.Events}, nil
	})
}

// LetterCount says how many items received in a minute became dead letters.
type LetterCount struct {
	Minute time.Time
	Items  int64
}

// A letter may stand for many items of one list, and says for how many.
const letterCountQuery = `SELECT toInt64(toUnixTimestamp(toStartOfMinute(received))) AS at, sum(greatest(1, toInt64OrZero(extract(detail, '^([0-9]+) more items ')))) AS n
FROM %s.dead_letters FINAL
WHERE cluster = {cluster:String} AND ingest_day >= toDate({day:UInt16}) AND received >= fromUnixTimestamp64Micro({from:Int64}) AND received < fromUnixTimestamp64Micro({to:Int64})
GROUP BY at
ORDER BY at`

// LetterCounts counts what became dead letters of a cluster, by the minute it was received in.
func (rd *Reader) LetterCounts(ctx context.Context, cluster string, from, to time.Time) ([]LetterCount, error) {
	return statement.Collect(ctx, rd.at, letterCountQuery, span(cluster, from, to), func(l *LetterCount) ([]any, func()) {
		var at int64
		return []any{&at, &l.Items}, func() { l.Minute = time.Unix(at, 0).UTC() }
	})
}

// Sender says what arrived from one apiserver in a range.
type Sender struct {
	APIServer   string
	Events      int64     // that stand, however they came first
	Webhook     int64     // of them by webhook
	Log         int64     // of them from a log, followed or imported
	Posts       int64     // by webhook
	First, Last time.Time // arrival by webhook; zero when there was none
}

const sendersQuery = `SELECT apiserver, sum(n), toInt64(sumIf(n, source = 'webhook')), toInt64(sumIf(n, source IN ('log', 'import'))),
    toInt64(countIf(source = 'webhook')), toUnixTimestamp64Micro(minIf(ingested, source = 'webhook')), toUnixTimestamp64Micro(maxIf(ingested, source = 'webhook'))
FROM (
    SELECT apiserver, source, ingested, sum(count) AS n
    FROM %s.arrivals
    WHERE cluster = {cluster:String} AND ingest_day >= toDate({day:UInt16}) AND ingested >= fromUnixTimestamp64Micro({from:Int64}) AND ingested < fromUnixTimestamp64Micro({to:Int64})
    GROUP BY apiserver, source, ingested
    HAVING n > 0
)
GROUP BY apiserver
ORDER BY apiserver`

// Senders returns the apiservers from which something arrived in a range.
func (rd *Reader) Senders(ctx context.Context, cluster string, from, to time.Time) ([]Sender, error) {
	return statement.Collect(ctx, rd.at, sendersQuery, span(cluster, from, to), func(x *Sender) ([]any, func()) {
		var first, last int64
		return []any{&x.APIServer, &x.Events, &x.Webhook, &x.Log, &x.Posts, &first, &last}, func() {
			if x.Posts > 0 {
				x.First, x.Last = codec.FromMicro(first), codec.FromMicro(last)
			}
		}
	})
}

// Pause is a stretch in which nothing of an apiserver happened, or nothing of it arrived.
type Pause struct {
	APIServer     string
	Before, After time.Time // of the last event before it and the first behind it
}

// Whole seconds are compared, then their first and last event: a pause within two seconds is not seen.
const pausesQuery = `SELECT apiserver, before, after FROM (
    SELECT apiserver, first AS after, lagInFrame(last, 1, 0) OVER (PARTITION BY apiserver ORDER BY second ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS before
    FROM (
        SELECT apiserver, intDiv(at, 1000000) AS second, min(at) AS first, max(at) AS last
        FROM (
            %s
        )
        WHERE at >= {from:Int64} AND at < {to:Int64}
        GROUP BY apiserver, second
        HAVING sum(n) > 0
    )
)
WHERE before > 0
ORDER BY apiserver, after - before DESC, after
LIMIT {limit:UInt32} BY apiserver`

// What pauses lie between: events by their own time, and posts of a webhook by their arrival.
const (
	eventTimes = `SELECT apiserver, toInt64(sign) AS n, toUnixTimestamp64Micro(request_received) + stage_delay AS at
            FROM %s.events
            WHERE cluster = {cluster:String} AND ingest_day >= toDate({day:UInt16})`
	postTimes = `SELECT apiserver, count AS n, toUnixTimestamp64Micro(ingested) AS at
            FROM %s.arrivals
            WHERE cluster = {cluster:String} AND ingest_day >= toDate({day:UInt16}) AND source = 'webhook'`
)

// Pauses returns the longest stretches of a range without an event of an apiserver, longest
// first: by the events' own time, or with arrivals by the time webhook posts arrived.
func (rd *Reader) Pauses(ctx context.Context, cluster string, from, to time.Time, arrivals bool, limit int) ([]Pause, error) {
	p := span(cluster, from, to)
	p["limit"] = fmt.Sprint(limit)
	times := eventTimes
	if arrivals {
		times = postTimes
	}
	return statement.Collect(ctx, rd.at, fmt.Sprintf(pausesQuery, times), p, func(h *Pause) ([]any, func()) {
		var before, after int64
		return []any{&h.APIServer, &before, &after}, func() { h.Before, h.After = codec.FromMicro(before), codec.FromMicro(after) }
	})
}

// Unpaired is a request of which a stage is missing.
type Unpaired struct {
	APIServer           string
	AuditID, User, Verb string
	URI                 string
	Received            time.Time
	// Missing is the stage that did not come: ResponseComplete of a request that began, or ResponseStarted of a watch that ended.
	Missing string
	Code    int32
}

// Minutes in which beginnings and ends of requests do not make up for each other; most of the others have no request of which a stage is
// missing, by a digest that could be 0 by chance once in 2^64 times.
const unevenQuery = `SELECT toUInt32(minute), sum(count)
FROM %s.halves
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32}
GROUP BY minute
HAVING sum(digest) != 0
ORDER BY minute`

// Only requests with an early stage are looked at closely: they are few. A failed login has
// one stage and no end (its code is 401, of an unreadable time-out 400).
const unpairedQuery = `SELECT apiserver, id, user_name, did, request_uri, received, missing, status FROM (
    SELECT any(apiserver) AS apiserver, any(audit_id) AS id, any(user_name) AS user_name, any(verb) AS did, any(request_uri) AS request_uri,
        toUnixTimestamp64Micro(any(request_received)) AS received, max(code) AS status,
        if(sumIf(toInt64(sign), stage IN ('ResponseComplete', 'Panic')) > 0, 'ResponseStarted', 'ResponseComplete') AS missing,
        sumIf(toInt64(sign), stage IN ('RequestReceived', 'ResponseStarted')) AS begun, sumIf(toInt64(sign), stage IN ('ResponseComplete', 'Panic')) AS ended
    FROM %[1]s.events
    WHERE cluster = {cluster:String} AND minute IN {minutes:Array(UInt32)} AND (request_key IN (
        SELECT request_key FROM %[1]s.events
        WHERE cluster = {cluster:String} AND minute IN {minutes:Array(UInt32)} AND stage IN ('RequestReceived', 'ResponseStarted')
    ) OR verb = 'watch' AND stage = 'ResponseComplete' AND code < 400)
    GROUP BY request_key
    HAVING begun > 0 AND ended <= 0 AND status NOT IN (400, 401) OR begun <= 0 AND ended > 0
)
ORDER BY received, id
LIMIT {limit:UInt32}`

// closely is of how many stages the requests are looked at closely at a time.
const closely = 100_000

// Unpaired returns requests of a range that began and did not end, and watches that ended without having begun, the oldest first. It looks
// at the minutes that have any, from the oldest on, until there are enough.
func (rd *Reader) Unpaired(ctx context.Context, cluster string, from, to time.Time, limit int) (out []Unpaired, err error) {
	type minute struct {
		begin  uint32
		stages int64
	}
	uneven, err := statement.Collect(ctx, rd.at, unevenQuery, window(cluster, from, to),
		func(m *minute) ([]any, func()) { return []any{&m.begin, &m.stages}, nil })
	if err != nil {
		return nil, err
	}
	for len(uneven) > 0 && len(out) < limit {
		var minutes []uint32
		for stages := int64(0); len(uneven) > 0 && stages < closely; uneven = uneven[1:] {
			minutes, stages = append(minutes, uneven[0].begin), stages+uneven[0].stages
		}
		more, err := rd.unpaired(ctx, cluster, minutes, limit-len(out))
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// unpaired returns those of some minutes.
func (rd *Reader) unpaired(ctx context.Context, cluster string, minutes []uint32, limit int) ([]Unpaired, error) {
	p := clickhouse.Parameters{"cluster": statement.Text(cluster), "minutes": statement.Numbers(minutes), "limit": fmt.Sprint(limit)}
	return statement.Collect(ctx, rd.at, unpairedQuery, p, func(u *Unpaired) ([]any, func()) {
		var received int64
		return []any{&u.APIServer, &u.AuditID, &u.User, &u.Verb, &u.URI, &received, &u.Missing, &u.Code}, func() {
			u.Received = codec.FromMicro(received)
		}
	})
}
