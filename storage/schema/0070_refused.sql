-- Requests that were refused, each with what is told of it: few of the events, and a row of theirs would be read of nearly every
-- granule. A row whose count is not 1 was taken back. It goes with its events.
CREATE TABLE IF NOT EXISTS {{.Database}}.refused{{.OnCluster}}
(
    cluster LowCardinality(String),
    minute DateTime('UTC') CODEC(ZSTD(1)),
    request_received DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    request_key FixedString(16) CODEC(ZSTD(1)),
    subject LowCardinality(String),
    attr_verb LowCardinality(String),
    attr_is_resource UInt8 CODEC(ZSTD(1)),
    attr_api_group LowCardinality(String),
    attr_resource LowCardinality(String),
    attr_subresource LowCardinality(String),
    attr_namespace LowCardinality(String),
    attr_name String CODEC(ZSTD(1)),
    attr_path String CODEC(ZSTD(1)),
    path LowCardinality(String) COMMENT 'attr_path, long tails folded to *',
    recorded LowCardinality(String),
    replayed LowCardinality(String),
    outcome LowCardinality(String),
    class LowCardinality(String),
    code Int32 CODEC(ZSTD(1)),
    plugin LowCardinality(String) COMMENT 'of admission, that refused it',
    plugin_name LowCardinality(String) COMMENT 'policy, webhook or quota of the plugin',
    refused_check LowCardinality(String) COMMENT 'behind the authorization filter, that refused it',
    audit_text String COMMENT 'the audit ID when it is no UUID' CODEC(ZSTD(1)),
    audit_uuid UUID COMMENT 'the audit ID when it is a UUID, else zero' CODEC(NONE),
    audit_id String ALIAS if(audit_uuid = toUUID('00000000-0000-0000-0000-000000000000'), audit_text, toString(audit_uuid)),
    user_name LowCardinality(String) COMMENT 'who authenticated',
    groups Array(LowCardinality(String)) COMMENT 'it was authorized with',
    missing Array(LowCardinality(String)),
    kpart Int32 CODEC(ZSTD(1)),
    ingest_day Date CODEC(ZSTD(1)),
    imported UInt8 COMMENT '1: the event came by import' CODEC(ZSTD(1)),
    count SimpleAggregateFunction(sum, Int64) CODEC(T64, ZSTD(1))
)
ENGINE = {{.Replicated}}AggregatingMergeTree
PARTITION BY (ingest_day, imported)
PRIMARY KEY (cluster, minute)
ORDER BY (cluster, minute, request_received, request_key, subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace, attr_name, attr_path, path, recorded, replayed, outcome, class, code, plugin, plugin_name, refused_check, audit_text, audit_uuid, user_name, groups, missing, kpart, ingest_day, imported)
SETTINGS non_replicated_deduplication_window = 1000
