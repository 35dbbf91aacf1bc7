-- Who asked what of the store: the page, the API, commands, SQL clients. Repeats of a
-- question within a minute are one row with their sum.
CREATE TABLE IF NOT EXISTS {{.Database}}.query_log{{.OnCluster}}
(
    minute DateTime('UTC') COMMENT 'when it was answered' CODEC(Delta(4), ZSTD(1)),
    day Date COMMENT 'of minute: retention counts from it' CODEC(ZSTD(1)),
    door LowCardinality(String) COMMENT 'page, socket, sql, direct (a command on the store itself)',
    caller LowCardinality(String) COMMENT 'user id of the process, or the name given with the credential',
    address LowCardinality(String) COMMENT 'of the caller, without port; empty on the socket',
    question LowCardinality(String) COMMENT 'route of the API, or sql',
    detail String COMMENT 'parameters or statement, cut after 4096 bytes' CODEC(ZSTD(3)),
    status LowCardinality(String) COMMENT 'ok, refused (the caller''s mistake), failed',
    count SimpleAggregateFunction(sum, Int64) COMMENT 'questions',
    bytes SimpleAggregateFunction(sum, Int64) COMMENT 'of the answers',
    micros SimpleAggregateFunction(sum, Int64) COMMENT 'microseconds that answering took'
)
ENGINE = {{.Replicated}}AggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (minute, day, door, caller, address, question, detail, status)
SETTINGS non_replicated_deduplication_window = 1000
