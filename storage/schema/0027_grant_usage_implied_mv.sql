CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Database}}.grant_usage_implied_mv{{.OnCluster}} TO {{.Database}}.grant_usage AS
SELECT cluster, day, granted, item_access AS access, kpart, ingest_day, JSONExtractString(item, 1) AS implied,
    sum(toInt64(sign)) AS count, min(request_received) AS first_seen, max(request_received) AS last_seen
FROM (
    SELECT cluster, day, kpart, ingest_day, sign, request_received, item, item_access, arrayJoin(item_grants) AS granted
    FROM {{.Database}}.events
    ARRAY JOIN implied AS item, implied_access AS item_access, implied_grants AS item_grants
    WHERE recorded != 'forbid' AND item_access != 0
)
GROUP BY cluster, day, granted, access, kpart, ingest_day, implied
