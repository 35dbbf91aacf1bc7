CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Database}}.objects_mv{{.OnCluster}} TO {{.Database}}.objects AS
SELECT cluster, object_resource AS resource, object_namespace AS namespace, object_name AS name, toStartOfHour(minute) AS slot, user_name, verb,
    object_subresource AS subresource, recorded, kpart, ingest_day, toUInt8(source = 'import') AS imported, sum(toInt64(sign)) AS count,
    min(request_received) AS first_seen, max(request_received) AS last_seen
FROM {{.Database}}.events
WHERE outcome != ''
GROUP BY cluster, resource, namespace, name, slot, user_name, verb, subresource, recorded, kpart, ingest_day, imported
