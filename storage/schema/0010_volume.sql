-- Events per minute: the first page and a month's rate without touching events.
CREATE TABLE IF NOT EXISTS {{.Database}}.volume{{.OnCluster}}
(
    cluster LowCardinality(String),
    minute DateTime('UTC') COMMENT 'of the request',
    recorded LowCardinality(String),
    replayed LowCardinality(String),
    outcome LowCardinality(String) COMMENT 'empty: later stages of a request',
    class LowCardinality(String),
    kpart Int32,
    ingest_day Date,
    count SimpleAggregateFunction(sum, Int64) COMMENT 'events'
)
ENGINE = {{.Replicated}}AggregatingMergeTree
PARTITION BY toYYYYMM(ingest_day)
ORDER BY (cluster, minute, outcome, class, recorded, replayed, kpart, ingest_day)
SETTINGS non_replicated_deduplication_window = 1000
