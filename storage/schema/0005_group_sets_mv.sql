CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Database}}.group_sets_mv{{.OnCluster}} TO {{.Database}}.group_sets AS
SELECT group_set, arraySort(arrayDistinct(arrayMap(g -> toString(g), any(if(bitAnd(shape, 1) = 1, impersonated_groups, user_groups))))) AS groups,
    max(ingest_day) AS seen
FROM {{.Database}}.events
WHERE outcome != ''
GROUP BY group_set
