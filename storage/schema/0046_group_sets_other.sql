-- What is not told apart is no set of the groups of whoever came first.
ALTER TABLE {{.Database}}.group_sets_mv{{.OnCluster}} MODIFY QUERY
SELECT group_set, if(group_set >= 18446744073709551614, ['(other)'], arraySort(arrayDistinct(arrayMap(g -> toString(g), any(if(bitAnd(shape, 1) = 1, impersonated_groups, user_groups)))))) AS groups,
    max(ingest_day) AS seen
FROM {{.Database}}.events
WHERE outcome != ''
GROUP BY group_set
