-- Group sets, interned: most requests of a subject carry the same groups.
CREATE TABLE IF NOT EXISTS {{.Database}}.group_sets{{.OnCluster}}
(
    group_set UInt64,
    groups Array(String) COMMENT 'sorted, each once',
    seen SimpleAggregateFunction(max, Date)
)
ENGINE = {{.Replicated}}AggregatingMergeTree
ORDER BY (group_set, groups)
SETTINGS non_replicated_deduplication_window = 1000
