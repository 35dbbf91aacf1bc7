CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Database}}.grant_usage_mv{{.OnCluster}} TO {{.Database}}.grant_usage AS
SELECT cluster, day, granted, access, kpart, ingest_day,
    sum(toInt64(sign)) AS count, min(request_received) AS first_seen, max(request_received) AS last_seen
FROM {{.Database}}.events
ARRAY JOIN grants AS granted
GROUP BY cluster, day, granted, access, kpart, ingest_day
