-- Which grant made which access possible, by day: least privilege reads this, never events.
CREATE TABLE IF NOT EXISTS {{.Database}}.grant_usage{{.OnCluster}}
(
    cluster LowCardinality(String),
    day Date COMMENT 'of the request',
    granted LowCardinality(String) COMMENT 'JSON array, as in events.grants',
    access UInt64 COMMENT 'key of accesses',
    kpart Int32,
    ingest_day Date,
    count SimpleAggregateFunction(sum, Int64),
    first_seen SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    last_seen SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    binding_kind String ALIAS JSONExtractString(granted, 1),
    binding_namespace String ALIAS JSONExtractString(granted, 2),
    binding String ALIAS JSONExtractString(granted, 3),
    role_kind String ALIAS JSONExtractString(granted, 4),
    role String ALIAS JSONExtractString(granted, 5),
    subject_kind String ALIAS JSONExtractString(granted, 6),
    subject_namespace String ALIAS JSONExtractString(granted, 7),
    subject String ALIAS JSONExtractString(granted, 8),
    rule Int64 ALIAS JSONExtractInt(granted, 9)
)
ENGINE = {{.Replicated}}AggregatingMergeTree
PARTITION BY toYYYYMM(ingest_day)
ORDER BY (cluster, granted, access, day, kpart, ingest_day)
SETTINGS non_replicated_deduplication_window = 1000
