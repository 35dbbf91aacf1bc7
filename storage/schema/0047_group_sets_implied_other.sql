ALTER TABLE {{.Database}}.group_sets_implied_mv{{.OnCluster}} MODIFY QUERY
SELECT toUInt64OrZero(requestor) AS group_set, if(group_set >= 18446744073709551614, ['(other)'], arraySort(arrayDistinct(arrayMap(g -> toString(g), any(user_groups))))) AS groups, max(ingest_day) AS seen
FROM (
    SELECT user_groups, ingest_day, JSONExtractString(item, 20) AS requestor
    FROM {{.Database}}.events
    ARRAY JOIN implied AS item, implied_access AS item_access
    WHERE recorded != 'forbid' AND requestor != '' AND item_access != 0
)
GROUP BY group_set
