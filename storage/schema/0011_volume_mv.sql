CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Database}}.volume_mv{{.OnCluster}} TO {{.Database}}.volume AS
SELECT cluster, minute, recorded, replayed, outcome, class, kpart, ingest_day, sum(toInt64(sign)) AS count
FROM {{.Database}}.events
GROUP BY cluster, minute, recorded, replayed, outcome, class, kpart, ingest_day
