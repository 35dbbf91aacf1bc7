-- Requests by subject and user agent in ten minutes: who was busiest, without touching events.
CREATE TABLE IF NOT EXISTS {{.Database}}.activity{{.OnCluster}}
(
    cluster LowCardinality(String),
    slot DateTime('UTC') COMMENT 'ten minutes of requests, its begin',
    subject LowCardinality(String),
    user_agent LowCardinality(String),
    recorded LowCardinality(String),
    outcome LowCardinality(String),
    kpart Int32,
    ingest_day Date,
    count SimpleAggregateFunction(sum, Int64) COMMENT 'requests'
)
ENGINE = {{.Replicated}}AggregatingMergeTree
PARTITION BY toYYYYMM(ingest_day)
ORDER BY (cluster, slot, subject, user_agent, recorded, outcome, kpart, ingest_day)
SETTINGS non_replicated_deduplication_window = 1000
