CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Database}}.accesses_implied_mv{{.OnCluster}} TO {{.Database}}.accesses AS
SELECT cluster, item_access AS access, if(group_set = 18446744073709551614, '(other)', if(requestor = '', effective, user_name)) AS subject,
    if(requestor = '', effective_set, toUInt64OrZero(requestor)) AS group_set,
    if(path = '(other)', path, JSONExtractString(item, 5)) AS verb, if(path = '(other)', '', JSONExtractString(item, 7)) AS api_group,
    if(path = '(other)', '', JSONExtractString(item, 9)) AS resource, if(path = '(other)', '', JSONExtractString(item, 10)) AS subresource,
    if(path = '(other)', '', JSONExtractString(item, 11)) AS namespace, JSONExtractString(item, 16) AS name, path, max(ingest_day) AS seen
FROM (
    SELECT cluster, subject AS effective, group_set AS effective_set, user_name, ingest_day, item, item_access, JSONExtractString(item, 20) AS requestor, JSONExtractString(item, 17) AS path
    FROM {{.Database}}.events
    ARRAY JOIN implied AS item, implied_access AS item_access
    WHERE recorded != 'forbid' AND item_access != 0
)
GROUP BY cluster, access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path
