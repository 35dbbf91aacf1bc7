-- Requests to judge stored requests again, and how far each Kafka partition has come. The row
-- of the request itself has no partition (-1).
CREATE TABLE IF NOT EXISTS {{.Database}}.rejudges{{.OnCluster}}
(
    cluster LowCardinality(String),
    id String,
    kpart Int32,
    version UInt64 COMMENT 'grows with every step',
    content String COMMENT 'JSON' CODEC(ZSTD(1)),
    written DateTime DEFAULT now()
)
ENGINE = {{.Replicated}}ReplacingMergeTree(version)
ORDER BY (cluster, id, kpart)
SETTINGS non_replicated_deduplication_window = 1000
