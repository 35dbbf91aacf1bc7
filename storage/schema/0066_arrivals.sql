-- Events by the post they came with: what an apiserver sent, and when, without touching events. Names of apiservers are
-- whatever a path says, so it is partitioned as events are and goes with them.
CREATE TABLE IF NOT EXISTS {{.Database}}.arrivals{{.OnCluster}}
(
    cluster LowCardinality(String),
    ingested DateTime64(6, 'UTC') COMMENT 'when the receiver took the post' CODEC(Delta(8), ZSTD(1)),
    apiserver LowCardinality(String),
    source LowCardinality(String) COMMENT 'webhook, log, import',
    day Date COMMENT 'of the requests' CODEC(ZSTD(1)),
    kpart Int32 CODEC(ZSTD(1)),
    ingest_day Date CODEC(ZSTD(1)),
    imported UInt8 COMMENT '1: the events came by import' CODEC(ZSTD(1)),
    count SimpleAggregateFunction(sum, Int64) COMMENT 'events' CODEC(T64, ZSTD(1))
)
ENGINE = {{.Replicated}}AggregatingMergeTree
PARTITION BY (ingest_day, imported)
ORDER BY (cluster, ingested, apiserver, source, day, kpart, ingest_day, imported)
SETTINGS non_replicated_deduplication_window = 1000
