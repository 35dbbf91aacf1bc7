-- Who acts as another is asked about by the groups of his own.
CREATE MATERIALIZED VIEW IF NOT EXISTS {{.Database}}.group_sets_implied_mv{{.OnCluster}} TO {{.Database}}.group_sets AS
SELECT toUInt64OrZero(requestor) AS group_set, arraySort(arrayDistinct(arrayMap(g -> toString(g), any(user_groups)))) AS groups, max(ingest_day) AS seen
FROM (
    SELECT user_groups, ingest_day, JSONExtractString(item, 20) AS requestor
    FROM {{.Database}}.events
    ARRAY JOIN implied AS item
    WHERE recorded != 'forbid' AND requestor != ''
)
GROUP BY group_set
