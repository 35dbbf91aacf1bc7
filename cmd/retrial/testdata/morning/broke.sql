-- Which write took away the right to what was refused: of each refused request, the grant that would allow it and that ended last before.
-- Refusals of one subject, verb, resource and namespace are told by their first. One line a change: the object, and the refused requests.
WITH
    versions AS (
        SELECT resource, namespace AS ns, name, JSONExtractRaw(observation, 'object') AS object,
            min(parseDateTime64BestEffort(JSONExtractString(observation, 'notAfter'), 6, 'UTC')) AS at
        FROM policy_objects FINAL
        WHERE cluster = {cluster} AND resource LIKE '%.rbac.authorization.k8s.io' AND name != ''
            AND (deleted OR JSONHas(observation, 'object'))
        GROUP BY resource, ns, name, uid, resource_version, deleted, object),
    lives AS (
        SELECT *, leadInFrame(at, 1, toDateTime64('2100-01-01', 6, 'UTC')) OVER (PARTITION BY resource, ns, name ORDER BY at
            ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS until
        FROM versions),
    bindings AS (
        SELECT concat(if(ns = '', 'ClusterRoleBinding/', concat('RoleBinding/', ns, '/')), name) AS binding, ns AS scope, at AS b_at,
            until AS b_until, JSONExtractString(object, 'roleRef', 'kind') AS kind, JSONExtractString(object, 'roleRef', 'name') AS role,
            arrayJoin(JSONExtractArrayRaw(object, 'subjects')) AS s, JSONExtractString(s, 'namespace') AS space,
            multiIf(JSONExtractString(s, 'kind') = 'Group', 'group:',
                JSONExtractString(s, 'kind') = 'User', 'user:',
                concat('user:system:serviceaccount:', if(space = '', ns, space), ':')) || JSONExtractString(s, 'name') AS who
        FROM lives WHERE resource LIKE '%rolebindings.%' AND object != ''),
    roles AS (
        SELECT concat(if(ns = '', 'ClusterRole/', concat('Role/', ns, '/')), name) AS of, ns AS r_ns, name AS r_name, at AS r_at,
            until AS r_until, arrayJoin(JSONExtractArrayRaw(object, 'rules')) AS rule,
            JSONExtract(rule, 'verbs', 'Array(String)') AS verbs, JSONExtract(rule, 'apiGroups', 'Array(String)') AS groups,
            JSONExtract(rule, 'resources', 'Array(String)') AS resources, JSONExtract(rule, 'resourceNames', 'Array(String)') AS names,
            JSONExtract(rule, 'nonResourceURLs', 'Array(String)') AS urls
        FROM lives WHERE match(resource, '^(cluster)?roles[.]') AND object != ''),
    granted AS (
        SELECT *, greatest(b_at, r_at) AS begin, least(b_until, r_until) AS end, if(b_until <= r_until, binding, of) AS ended_by
        FROM bindings INNER JOIN roles ON role = r_name AND if(kind = 'Role', scope, '') = r_ns
        WHERE begin < end),
    refused AS (
        SELECT *, count() OVER same AS alike, row_number() OVER (same ORDER BY request_received, request_key) AS nth
        FROM events FINAL
        WHERE sign = 1 AND cluster = {cluster} AND recorded = 'forbid' AND replayed = 'forbid' AND outcome NOT IN ('', 'indeterminate')
            AND class != 'impersonation-refused' AND subject NOT IN ('', 'system:anonymous') AND {foreign}
            AND request_received >= parseDateTime64BestEffort({from}, 6, 'UTC')
        WINDOW same AS (PARTITION BY subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace,
            access_path, outcome, class, code)),
    firsts AS (
        SELECT *, arrayJoin(arrayPushBack(arrayMap(g -> concat('group:', g), if(impersonated_name != '', impersonated_groups, user_groups)),
            concat('user:', subject))) AS me
        FROM refused WHERE nth = 1),
    lost AS (
        SELECT any(alike) AS requests, max(end) AS last,
            arrayMap(x -> x.2, arrayFilter(x -> x.1 = last, groupUniqArray((end, ended_by)))) AS changes
        FROM firsts INNER JOIN granted ON me = who
        WHERE end <= request_received AND (scope = '' OR attr_is_resource AND scope = attr_namespace)
            AND (has(verbs, '*') OR has(verbs, attr_verb))
            AND if(attr_is_resource,
                (has(groups, '*') OR has(groups, attr_api_group)) AND (empty(names) OR has(names, attr_name))
                    AND (has(resources, '*')
                        OR has(resources, if(attr_subresource = '', attr_resource, attr_resource || '/' || attr_subresource))
                        OR attr_subresource != '' AND has(resources, '*/' || attr_subresource)),
                arrayExists(u -> u IN ('*', attr_path) OR endsWith(u, '*') AND startsWith(attr_path, trimRight(u, '*')), urls))
        GROUP BY request_key)
SELECT change, toInt64(sum(requests)) FROM (SELECT arrayJoin(changes) AS change, last, requests FROM lost) GROUP BY change, last
