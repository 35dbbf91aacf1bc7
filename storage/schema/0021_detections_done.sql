-- Which marks the findings of a rule and a stretch of time were worked out from: where
-- whoever works them out next begins.
CREATE TABLE IF NOT EXISTS {{.Database}}.detections_done{{.OnCluster}}
(
    cluster LowCardinality(String),
    rule LowCardinality(String),
    span DateTime('UTC'),
    digest Int64,
    updated DateTime64(6, 'UTC')
)
ENGINE = {{.Replicated}}ReplacingMergeTree(updated)
ORDER BY (cluster, rule, span)
SETTINGS non_replicated_deduplication_window = 1000
