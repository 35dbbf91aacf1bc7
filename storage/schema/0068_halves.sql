-- Whether requests that have several stages have all of them, by the minute: a beginning adds a hash of the request, an end
-- takes it away. Only minutes whose digest is not 0 are looked at closely. It goes with its events.
CREATE TABLE IF NOT EXISTS {{.Database}}.halves{{.OnCluster}}
(
    cluster LowCardinality(String),
    minute DateTime('UTC') COMMENT 'of the request',
    kpart Int32,
    ingest_day Date,
    imported UInt8 COMMENT '1: the events came by import',
    count SimpleAggregateFunction(sum, Int64) COMMENT 'events: beginnings, later stages, and ends of watches',
    digest SimpleAggregateFunction(sum, Int64) COMMENT 'sum over them; 0: every beginning has its end',
    changed SimpleAggregateFunction(max, DateTime('UTC')) COMMENT 'when it was last added to'
)
ENGINE = {{.Replicated}}AggregatingMergeTree
PARTITION BY (ingest_day, imported)
ORDER BY (cluster, minute, kpart, ingest_day, imported)
SETTINGS non_replicated_deduplication_window = 1000
