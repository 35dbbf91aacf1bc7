CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Database}}.activity_mv{{.OnCluster}} TO {{.Database}}.activity AS
SELECT cluster, toStartOfTenMinutes(minute) AS slot, subject, user_agent, recorded, outcome, kpart, ingest_day, sum(toInt64(sign)) AS count
FROM {{.Database}}.events
WHERE outcome != ''
GROUP BY cluster, slot, subject, user_agent, recorded, outcome, kpart, ingest_day
