CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Database}}.refused_mv{{.OnCluster}} TO {{.Database}}.refused AS
SELECT cluster, minute, request_received, request_key, subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace,
    attr_name, attr_path, access_path AS path, recorded, replayed, outcome, class, code,
    admission_plugins[indexOf(arrayMap((o, c) -> o IN ('rejected', 'match') OR c != 0, admission_outcomes, admission_codes), 1)] AS plugin,
    admission_names[indexOf(arrayMap((o, c) -> o IN ('rejected', 'match') OR c != 0, admission_outcomes, admission_codes), 1)] AS plugin_name,
    JSONExtractString(arrayFirst(i -> JSONExtractString(i, 3) = 'forbid', implied), 1) AS refused_check, audit_text, audit_uuid, user_name,
    if(bitAnd(shape, 1) = 1, impersonated_groups, user_groups) AS groups, missing, kpart, ingest_day, toUInt8(source = 'import') AS imported,
    sum(toInt64(sign)) AS count
FROM {{.Database}}.events
WHERE outcome != '' AND (recorded = 'forbid' OR code IN (401, 403) OR admission = 'rejected')
GROUP BY cluster, minute, request_received, request_key, subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace,
    attr_name, attr_path, path, recorded, replayed, outcome, class, code, plugin, plugin_name, refused_check, audit_text, audit_uuid, user_name, groups, missing, kpart,
    ingest_day, imported
