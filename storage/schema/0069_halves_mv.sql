CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Database}}.halves_mv{{.OnCluster}} TO {{.Database}}.halves AS
SELECT cluster, minute, kpart, ingest_day, toUInt8(source = 'import') AS imported, sum(toInt64(sign)) AS count,
    sum(toInt64(sign) * if(stage IN ('RequestReceived', 'ResponseStarted'), 1, -1) * reinterpretAsInt64(cityHash64(request_key))) AS digest,
    max(now()) AS changed
FROM {{.Database}}.events
WHERE stage IN ('RequestReceived', 'ResponseStarted') OR outcome = '' OR verb = 'watch' AND code < 400
GROUP BY cluster, minute, kpart, ingest_day, imported
