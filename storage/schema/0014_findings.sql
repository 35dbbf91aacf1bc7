-- What detections report. The newest row of a key stands.
CREATE TABLE IF NOT EXISTS {{.Database}}.findings{{.OnCluster}}
(
    cluster LowCardinality(String),
    finding LowCardinality(String) COMMENT 'name of the detection',
    key String COMMENT 'what makes it the same finding again' CODEC(ZSTD(1)),
    severity LowCardinality(String),
    subject String CODEC(ZSTD(1)),
    audit_id String CODEC(ZSTD(1)),
    first_seen DateTime64(6, 'UTC') CODEC(ZSTD(1)),
    last_seen DateTime64(6, 'UTC') CODEC(ZSTD(1)),
    detail String COMMENT 'JSON' CODEC(ZSTD(1)),
    updated DateTime64(6, 'UTC')
)
ENGINE = {{.Replicated}}ReplacingMergeTree(updated)
ORDER BY (cluster, finding, key)
SETTINGS non_replicated_deduplication_window = 1000
