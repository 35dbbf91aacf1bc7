-- Who touched an object, and how, by the hour: the only table that has requests by object. Its names are clients' to
-- choose, so it is partitioned as events are and goes with them. Objects are read by few rows of many parts: small granules.
CREATE TABLE IF NOT EXISTS {{.Database}}.objects{{.OnCluster}}
(
    cluster LowCardinality(String),
    resource LowCardinality(String) COMMENT 'of the object a request names; empty: none',
    namespace LowCardinality(String),
    name String COMMENT 'empty: a collection' CODEC(ZSTD(1)),
    slot DateTime('UTC') COMMENT 'hour of requests, its begin' CODEC(ZSTD(1)),
    user_name LowCardinality(String) COMMENT 'who authenticated',
    verb LowCardinality(String),
    subresource LowCardinality(String),
    recorded LowCardinality(String),
    kpart Int32 CODEC(ZSTD(1)),
    ingest_day Date CODEC(ZSTD(1)),
    imported UInt8 COMMENT '1: the events came by import' CODEC(ZSTD(1)),
    count SimpleAggregateFunction(sum, Int64) COMMENT 'requests' CODEC(T64, ZSTD(1)),
    first_seen SimpleAggregateFunction(min, DateTime64(6, 'UTC')) CODEC(ZSTD(1)),
    last_seen SimpleAggregateFunction(max, DateTime64(6, 'UTC')) CODEC(ZSTD(1))
)
ENGINE = {{.Replicated}}AggregatingMergeTree
PARTITION BY (ingest_day, imported)
PRIMARY KEY (cluster, resource, namespace, name)
ORDER BY (cluster, resource, namespace, name, slot, user_name, verb, subresource, recorded, kpart, ingest_day, imported)
SETTINGS non_replicated_deduplication_window = 1000, index_granularity = 1024
