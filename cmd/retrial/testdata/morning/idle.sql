-- The service accounts that a binding gives everything, and that no request and no check behind one was let pass for by that binding.
WITH
    newest AS (
        SELECT resource, namespace, name, argMax(deleted, observed) AS gone,
            argMaxIf(observation, observed, JSONHas(observation, 'object')) AS text
        FROM policy_objects FINAL WHERE cluster = {cluster} GROUP BY resource, namespace, name),
    almighty AS (
        SELECT namespace, name FROM newest
        WHERE NOT gone AND match(resource, '^(cluster)?roles[.]') AND arrayExists(r ->
            has(JSONExtract(r, 'verbs', 'Array(String)'), '*') AND has(JSONExtract(r, 'apiGroups', 'Array(String)'), '*')
                AND has(JSONExtract(r, 'resources', 'Array(String)'), '*') AND empty(JSONExtract(r, 'resourceNames', 'Array(String)')),
            JSONExtractArrayRaw(text, 'object', 'rules'))),
    held AS (
        SELECT namespace AS scope, name AS binding, JSONExtractString(text, 'object', 'roleRef', 'name') AS role,
            if(JSONExtractString(text, 'object', 'roleRef', 'kind') = 'Role', namespace, '') AS of,
            arrayJoin(JSONExtractArrayRaw(text, 'object', 'subjects')) AS s,
            JSONExtractString(s, 'namespace') AS space, JSONExtractString(s, 'name') AS account
        FROM newest
        WHERE NOT gone AND resource LIKE '%rolebindings.%' AND NOT startsWith(name, 'system:') AND NOT startsWith(namespace, 'kube-')),
    used AS (
        SELECT DISTINCT JSONExtractString(g, 2) AS scope, JSONExtractString(g, 3) AS binding, JSONExtractString(g, 7) AS space,
            JSONExtractString(g, 8) AS account
        FROM (SELECT arrayJoin(arrayConcat(grants, arrayFlatten(implied_grants))) AS g FROM events FINAL
            WHERE sign = 1 AND cluster = {cluster})
        WHERE JSONExtractString(g, 6) = 'ServiceAccount')
SELECT DISTINCT concat('sa/', space, ':', account), toInt64(1)
FROM held
WHERE JSONExtractString(s, 'kind') = 'ServiceAccount' AND (of, role) IN (SELECT namespace, name FROM almighty)
    AND (scope, binding, space, account) NOT IN (SELECT scope, binding, space, account FROM used)
