CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Database}}.detections_mv{{.OnCluster}} TO {{.Database}}.detections AS
SELECT cluster, substringIndex(hit, '/', 1) AS rule,
    if(endsWith(hit, '/first'), toStartOfDay(minute), toStartOfTenMinutes(minute)) AS slot,
    if(endsWith(hit, '/first'), hit_key, 0) AS key, kpart, ingest_day,
    sum(toInt64(sign)) AS count,
    sum(toInt64(sign) * reinterpretAsInt64(cityHash64(request_key, version, hit, hit_key))) AS digest,
    max(now()) AS changed
FROM {{.Database}}.events
ARRAY JOIN hits AS hit, hit_keys AS hit_key
GROUP BY cluster, rule, slot, key, kpart, ingest_day
