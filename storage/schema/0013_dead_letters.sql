-- What could not become an event or be processed: visible, never retried for ever.
CREATE TABLE IF NOT EXISTS {{.Database}}.dead_letters{{.OnCluster}}
(
    cluster LowCardinality(String),
    source LowCardinality(String),
    reason LowCardinality(String),
    detail String CODEC(ZSTD(1)),
    digest String COMMENT 'of the original bytes' CODEC(ZSTD(1)),
    size Int64 COMMENT 'of the original bytes' CODEC(ZSTD(1)),
    prefix String COMMENT 'redacted beginning of the original bytes' CODEC(ZSTD(3)),
    received DateTime64(6, 'UTC') CODEC(ZSTD(1)),
    ingest_day Date,
    epoch UInt32,
    kpart Int32,
    koffset Int64
)
ENGINE = {{.Replicated}}ReplacingMergeTree
PARTITION BY toYYYYMM(ingest_day)
ORDER BY (epoch, kpart, koffset)
SETTINGS non_replicated_deduplication_window = 1000
