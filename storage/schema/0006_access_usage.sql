-- Usage by day: how often each access was made and what came of it. kpart and ingest_day
-- are dimensions so that the owner of a Kafka partition can make the rows of one partition
-- and day equal to its events again, whatever a crash left.
CREATE TABLE IF NOT EXISTS {{.Database}}.access_usage{{.OnCluster}}
(
    cluster LowCardinality(String),
    day Date COMMENT 'of the request',
    access UInt64 COMMENT 'key of accesses',
    recorded LowCardinality(String),
    replayed LowCardinality(String),
    outcome LowCardinality(String),
    class LowCardinality(String),
    kpart Int32,
    ingest_day Date,
    count SimpleAggregateFunction(sum, Int64) COMMENT 'requests; a sum over all rows of a key',
    first_seen SimpleAggregateFunction(min, DateTime64(6, 'UTC')) COMMENT 'bound: a correction does not narrow it',
    last_seen SimpleAggregateFunction(max, DateTime64(6, 'UTC')) COMMENT 'bound: a correction does not narrow it'
)
ENGINE = {{.Replicated}}AggregatingMergeTree
PARTITION BY toYYYYMM(ingest_day)
ORDER BY (cluster, access, day, recorded, replayed, outcome, class, kpart, ingest_day)
SETTINGS non_replicated_deduplication_window = 1000
