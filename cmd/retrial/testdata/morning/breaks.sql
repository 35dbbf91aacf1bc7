-- What was allowed by nothing but the ClusterRoleBinding a-bot1: distinct accesses, by what was asked for, and their requests.
SELECT concat(subject, ' ', attr_verb, ' ', attr_api_group, '/', attr_resource, '/', attr_subresource, ' ', attr_namespace, '/', attr_name, attr_path),
    toInt64(count())
FROM (SELECT * FROM events FINAL WHERE sign = 1 AND cluster = {cluster})
WHERE outcome = 'match' AND recorded = 'allow' AND notEmpty(grants)
    AND arrayAll(g -> JSONExtractString(g, 1) = 'ClusterRoleBinding' AND JSONExtractString(g, 3) = 'a-bot1', grants)
GROUP BY ALL
