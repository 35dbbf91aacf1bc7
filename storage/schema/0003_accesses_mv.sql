CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Database}}.accesses_mv{{.OnCluster}} TO {{.Database}}.accesses AS
SELECT access, subject, group_set, attr_verb AS verb, attr_api_group AS api_group, attr_resource AS resource,
    attr_subresource AS subresource, attr_namespace AS namespace, access_name AS name, access_path AS path,
    max(ingest_day) AS seen
FROM {{.Database}}.events
WHERE outcome != ''
GROUP BY access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path
