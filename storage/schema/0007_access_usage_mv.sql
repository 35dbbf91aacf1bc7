CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Database}}.access_usage_mv{{.OnCluster}} TO {{.Database}}.access_usage AS
SELECT cluster, day, access, recorded, replayed, outcome, class, kpart, ingest_day,
    sum(toInt64(sign)) AS count, min(request_received) AS first_seen, max(request_received) AS last_seen
FROM {{.Database}}.events
WHERE outcome != ''
GROUP BY cluster, day, access, recorded, replayed, outcome, class, kpart, ingest_day
