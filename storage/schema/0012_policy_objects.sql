-- The history of every object the replica keeps: what State is rebuilt from. An observation
-- is one row however often it is delivered; the row has the place it was read from last.
CREATE TABLE IF NOT EXISTS {{.Database}}.policy_objects{{.OnCluster}}
(
    cluster LowCardinality(String),
    resource LowCardinality(String),
    namespace LowCardinality(String),
    name String CODEC(ZSTD(1)),
    uid String CODEC(ZSTD(1)),
    resource_version String CODEC(ZSTD(1)),
    deleted UInt8,
    observation String COMMENT 'JSON, as replay/state writes it' CODEC(ZSTD(3)),
    observed DateTime64(6, 'UTC') COMMENT 'near when it was true; order is by resource_version' CODEC(ZSTD(1)),
    epoch UInt32,
    kpart Int32,
    koffset Int64,
    idx Int32
)
ENGINE = {{.Replicated}}ReplacingMergeTree
ORDER BY (cluster, resource, namespace, name, uid, resource_version, deleted, cityHash64(observation))
SETTINGS non_replicated_deduplication_window = 1000
