-- Requests whose verdict is not a match, by all that the verdict says and by subject, in ten minutes:
-- what does not match, nearly without touching events. It is partitioned as events are and goes with them,
-- because verdicts have words of clients in them, and because examples are read from events.
CREATE TABLE IF NOT EXISTS {{.Database}}.unmatched{{.OnCluster}}
(
    cluster LowCardinality(String),
    slot DateTime('UTC') COMMENT 'ten minutes of requests, its begin',
    outcome LowCardinality(String) COMMENT 'drift, ambiguous, indeterminate',
    class LowCardinality(String),
    subject LowCardinality(String),
    apiserver LowCardinality(String),
    cause LowCardinality(String) COMMENT 'empty where outcome is indeterminate: missing says the same',
    missing Array(LowCardinality(String)) COMMENT 'without the object that a path to was looked for',
    recorded LowCardinality(String),
    recorded_reason LowCardinality(String),
    replayed LowCardinality(String),
    code Int32,
    config_version LowCardinality(String),
    kpart Int32,
    ingest_day Date,
    imported UInt8 COMMENT '1: the events came by import',
    count SimpleAggregateFunction(sum, Int64) COMMENT 'requests',
    first_seen SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    last_seen SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = {{.Replicated}}AggregatingMergeTree
PARTITION BY (ingest_day, imported)
ORDER BY (cluster, slot, outcome, class, subject, apiserver, cause, missing, recorded, recorded_reason, replayed, code, config_version, kpart, ingest_day, imported)
SETTINGS non_replicated_deduplication_window = 1000
