-- Marks of detection rules by stretches of request time. The digest tells whoever works out
-- findings which stretches changed; for rules that look for something new, each key has rows
-- of its own by day. kpart and ingest_day are dimensions as in access_usage.
CREATE TABLE IF NOT EXISTS {{.Database}}.detections{{.OnCluster}}
(
    cluster LowCardinality(String),
    rule LowCardinality(String),
    slot DateTime('UTC') COMMENT 'begin: of ten minutes, with a key of a day',
    key UInt64 COMMENT 'group hash of first-seen rules, else 0',
    kpart Int32,
    ingest_day Date,
    count SimpleAggregateFunction(sum, Int64) COMMENT 'requests',
    digest SimpleAggregateFunction(sum, Int64) COMMENT 'sum of hashes of the standing rows',
    changed SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'by the clock of the store'
)
ENGINE = {{.Replicated}}AggregatingMergeTree
PARTITION BY toYYYYMM(ingest_day)
ORDER BY (cluster, rule, key, slot, kpart, ingest_day)
SETTINGS non_replicated_deduplication_window = 1000
