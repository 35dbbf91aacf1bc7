CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Database}}.arrivals_mv{{.OnCluster}} TO {{.Database}}.arrivals AS
SELECT cluster, ingested, apiserver, source, day, kpart, ingest_day, toUInt8(source = 'import') AS imported, sum(toInt64(sign)) AS count
FROM {{.Database}}.events
GROUP BY cluster, ingested, apiserver, source, day, kpart, ingest_day, imported
