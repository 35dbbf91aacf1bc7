-- What kube-apiservers say of their own audit events in their metrics, one row a reading: what
-- was sent, to compare with what came (docs/completeness.md).
CREATE TABLE IF NOT EXISTS {{.Database}}.audit_samples{{.OnCluster}}
(
    cluster LowCardinality(String),
    apiserver LowCardinality(String) COMMENT 'as named in the endpoint, may be empty',
    day Date COMMENT 'of taken: retention counts from it' CODEC(ZSTD(1)),
    taken DateTime64(6, 'UTC') COMMENT 'when it was asked, by the clock of who asked' CODEC(Delta(8), ZSTD(1)),
    earliest DateTime64(6, 'UTC') COMMENT 'by the clock of the apiserver the reading lies between this' CODEC(Delta(8), ZSTD(1)),
    latest DateTime64(6, 'UTC') COMMENT 'and this' CODEC(Delta(8), ZSTD(1)),
    started DateTime64(6, 'UTC') COMMENT 'start of its process, from which its counters count' CODEC(ZSTD(1)),
    events Int64 COMMENT 'handed to its audit backends since' CODEC(Delta(8), ZSTD(1)),
    webhook_errors Int64 COMMENT 'events its webhook backend gave up on' CODEC(ZSTD(1)),
    buffer_errors Int64 COMMENT 'events that found its buffer full' CODEC(ZSTD(1)),
    log_errors Int64 COMMENT 'events its log backend could not write' CODEC(ZSTD(1)),
    rejected Int64 COMMENT 'requests refused because they could not be audited' CODEC(ZSTD(1))
)
ENGINE = {{.Replicated}}ReplacingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (cluster, apiserver, taken)
SETTINGS non_replicated_deduplication_window = 1000
