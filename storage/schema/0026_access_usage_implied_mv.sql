-- A request that was refused came to none of its checks; one that cannot be put into a
-- question has no access.
CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Database}}.access_usage_implied_mv{{.OnCluster}} TO {{.Database}}.access_usage AS
SELECT cluster, day, item_access AS access, JSONExtractString(item, 3) AS recorded, JSONExtractString(item, 2) AS replayed, outcome, class,
    kpart, ingest_day, JSONExtractString(item, 1) AS implied, toUInt8(JSONExtractInt(item, 4)) AS covered,
    sum(toInt64(sign)) AS count, min(request_received) AS first_seen, max(request_received) AS last_seen
FROM (
    SELECT cluster, day, outcome, class, kpart, ingest_day, sign, request_received, item, item_access
    FROM {{.Database}}.events
    ARRAY JOIN implied AS item, implied_access AS item_access
    WHERE recorded != 'forbid' AND item_access != 0
)
GROUP BY cluster, day, access, recorded, replayed, outcome, class, kpart, ingest_day, implied, covered
