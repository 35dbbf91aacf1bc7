-- Whoever may ask for anything, or act as anybody, makes up keys of first-seen rules: those beyond what is
-- kept of a user's and a cluster's day are marked in the row, and have key 1.
ALTER TABLE {{.Database}}.detections_mv{{.OnCluster}} MODIFY QUERY
SELECT cluster, substringIndex(hit, '/', 1) AS rule,
    if(endsWith(hit, '/first'), toStartOfDay(minute), toStartOfTenMinutes(minute)) AS slot,
    if(endsWith(hit, '/first'), if(bitAnd(shape, 32) = 32, 1, hit_key), 0) AS key, kpart, ingest_day,
    sum(toInt64(sign)) AS count,
    sum(toInt64(sign) * reinterpretAsInt64(cityHash64(request_key, version, hit, hit_key))) AS digest,
    max(now()) AS changed
FROM {{.Database}}.events
ARRAY JOIN hits AS hit, hit_keys AS hit_key
GROUP BY cluster, rule, slot, key, kpart, ingest_day
