CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Database}}.unmatched_mv{{.OnCluster}} TO {{.Database}}.unmatched AS
SELECT cluster, toStartOfTenMinutes(minute) AS slot, outcome, class, subject, apiserver, if(outcome = 'indeterminate', '', events.cause) AS cause,
    arrayDistinct(arrayMap(m -> splitByString(' (path to ', m)[1], events.missing)) AS missing, recorded, recorded_reason, replayed,
    code, config_version, kpart, ingest_day, toUInt8(source = 'import') AS imported, sum(toInt64(sign)) AS count,
    min(request_received) AS first_seen, max(request_received) AS last_seen
FROM {{.Database}}.events
WHERE outcome NOT IN ('', 'match', 'not_judged')
GROUP BY cluster, slot, outcome, class, subject, apiserver, cause, missing, recorded, recorded_reason, replayed, code, config_version,
    kpart, ingest_day, imported
