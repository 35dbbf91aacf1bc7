-- Every distinct access of a cluster: who (name and group set) did what to which resource or path. It
-- has no counts, so an access that was taken back by a correction may stay: harmless.
CREATE TABLE IF NOT EXISTS {{.Database}}.accesses{{.OnCluster}}
(
    cluster LowCardinality(String),
    access UInt64 COMMENT 'of several clusters where these have the same',
    subject LowCardinality(String),
    group_set UInt64,
    verb LowCardinality(String),
    api_group LowCardinality(String),
    resource LowCardinality(String),
    subresource LowCardinality(String),
    namespace LowCardinality(String),
    name LowCardinality(String) COMMENT '* stands for a generated part',
    path LowCardinality(String) COMMENT 'non-resource requests',
    seen SimpleAggregateFunction(max, Date) COMMENT 'last ingest day'
)
ENGINE = {{.Replicated}}AggregatingMergeTree
ORDER BY (cluster, subject, access, group_set, verb, api_group, resource, subresource, namespace, name, path)
SETTINGS non_replicated_deduplication_window = 1000
