CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Database}}.accesses_mv{{.OnCluster}} TO {{.Database}}.accesses AS
SELECT cluster, access, if(group_set = 18446744073709551614, '(other)', events.subject) AS subject, group_set, if(access_path = '(other)', access_path, attr_verb) AS verb,
    if(access_path = '(other)', '', attr_api_group) AS api_group, if(access_path = '(other)', '', attr_resource) AS resource,
    if(access_path = '(other)', '', attr_subresource) AS subresource, if(access_path = '(other)', '', attr_namespace) AS namespace,
    access_name AS name, access_path AS path, max(ingest_day) AS seen
FROM {{.Database}}.events
WHERE outcome != ''
GROUP BY cluster, access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path
