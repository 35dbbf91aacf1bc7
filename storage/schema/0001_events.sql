-- One row per audit event (one per stage of a request), with the verdict on the row of the
-- request's first stage stored. Rows are only ever added: a correction adds the old row
-- with sign -1 and the new one with sign +1. Aggregate with sum(sign); list with FINAL.
-- Sorted by minute and then by what repeats, which is what makes it compress; a request is
-- found again by (cluster, minute, request_key).
CREATE TABLE IF NOT EXISTS {{.Database}}.events{{.OnCluster}}
(
    -- where the row comes from
    cluster LowCardinality(String) COMMENT 'from the endpoint or the client certificate, never the payload',
    source LowCardinality(String) COMMENT 'webhook, import, ...',
    apiserver LowCardinality(String) COMMENT 'as named in the endpoint, may be empty',
    ingested DateTime64(6, 'UTC') COMMENT 'when the receiver took it' CODEC(Delta(8), ZSTD(1)),
    ingest_day Date COMMENT 'day of ingested: retention counts from it' CODEC(ZSTD(1)),
    epoch UInt32 COMMENT 'of the Kafka topic' CODEC(ZSTD(1)),
    kpart Int32 COMMENT 'Kafka partition; its owner alone corrects the row' CODEC(ZSTD(1)),
    koffset Int64 COMMENT 'Kafka offset' CODEC(Delta(8), ZSTD(1)),
    request_key FixedString(16) COMMENT 'identity of the request; the event key follows from it, stage and stage time' CODEC(ZSTD(1)),
    content FixedString(16) COMMENT 'hash of the canonical redacted event' CODEC(ZSTD(1)),
    size UInt32 COMMENT 'bytes of the canonical redacted event' CODEC(ZSTD(1)),
    sign Int8 COMMENT '+1 stands, -1 takes back the row equal to it' CODEC(ZSTD(1)),
    version UInt64 COMMENT 'fingerprint of what a correction can change; pairs +1 with its -1' CODEC(ZSTD(1)),
    row_revision UInt64 COMMENT 'policy revision of the row' CODEC(ZSTD(1)),

    -- the event
    level LowCardinality(String),
    audit_id String COMMENT 'chosen by the client when it sends Audit-ID: not unique' CODEC(ZSTD(1)),
    stage LowCardinality(String),
    request_uri String CODEC(ZSTD(1)),
    verb LowCardinality(String),
    user_name LowCardinality(String),
    user_uid LowCardinality(String),
    user_groups Array(LowCardinality(String)) COMMENT 'in recorded order',
    user_extra Map(LowCardinality(String), Array(String)) CODEC(ZSTD(1)),
    impersonated_name LowCardinality(String),
    impersonated_uid LowCardinality(String),
    impersonated_groups Array(LowCardinality(String)),
    impersonated_extra Map(LowCardinality(String), Array(String)) CODEC(ZSTD(1)),
    impersonation_constraint LowCardinality(String),
    source_ips Array(LowCardinality(String)) COMMENT 'all but the last are the client''s word',
    user_agent LowCardinality(String),
    object_resource LowCardinality(String),
    object_namespace LowCardinality(String),
    object_name String CODEC(ZSTD(1)),
    object_uid String CODEC(ZSTD(1)),
    object_api_group LowCardinality(String),
    object_api_version LowCardinality(String),
    object_resource_version String CODEC(ZSTD(1)),
    object_subresource LowCardinality(String),
    code Int32 COMMENT 'HTTP status, 0 when none is recorded' CODEC(ZSTD(1)),
    status_reason LowCardinality(String),
    response_status String COMMENT 'JSON as recorded' CODEC(ZSTD(1)),
    request_object String COMMENT 'JSON, redacted' CODEC(ZSTD(3)),
    response_object String COMMENT 'JSON, redacted' CODEC(ZSTD(3)),
    request_received DateTime64(6, 'UTC') CODEC(Delta(8), ZSTD(1)),
    stage_delay Int64 COMMENT 'microseconds from request_received to the stage' CODEC(ZSTD(1)),
    annotations Map(LowCardinality(String), String) CODEC(ZSTD(1)),
    unknown_at Array(LowCardinality(String)) COMMENT 'object the unknown member sits in: event, user, impersonatedUser, ...',
    unknown_name Array(LowCardinality(String)),
    unknown_value Array(String) COMMENT 'JSON' CODEC(ZSTD(1)),
    shape UInt8 COMMENT 'bits: optional objects that are present (see columns.go)' CODEC(ZSTD(1)),
    minute DateTime('UTC') COMMENT 'of request_received, clamped to what the type holds' CODEC(Delta(4), ZSTD(1)),
    day Date COMMENT 'of request_received, clamped' CODEC(ZSTD(1)),
    stage_time DateTime64(6, 'UTC') ALIAS addMicroseconds(request_received, stage_delay),
    subject LowCardinality(String) COMMENT 'whom the request was authorized as: the impersonated user when there is one',

    -- the verdict; outcome is empty on the rows of a request's later stages
    outcome LowCardinality(String) COMMENT 'match, drift, ambiguous, indeterminate, not_judged',
    class LowCardinality(String),
    cause LowCardinality(String),
    recorded LowCardinality(String) COMMENT 'allow, forbid, none',
    recorded_reason String CODEC(ZSTD(1)),
    replayed LowCardinality(String),
    authorizer LowCardinality(String),
    grants Array(LowCardinality(String)) COMMENT 'each a JSON array: binding kind, namespace, name; role kind, name; subject kind, namespace, name; rule',
    errors Array(LowCardinality(String)),
    missing Array(LowCardinality(String)),
    attr_verb LowCardinality(String),
    attr_is_resource UInt8 CODEC(ZSTD(1)),
    attr_api_group LowCardinality(String),
    attr_api_version LowCardinality(String),
    attr_resource LowCardinality(String),
    attr_subresource LowCardinality(String),
    attr_namespace LowCardinality(String),
    attr_name String CODEC(ZSTD(1)),
    attr_path String CODEC(ZSTD(1)),
    attr_label_selector String CODEC(ZSTD(1)),
    attr_field_selector String CODEC(ZSTD(1)),
    impersonation LowCardinality(String) COMMENT 'replayed decision of the second check; empty: none was needed',
    impersonation_mode LowCardinality(String),
    impersonation_grants Array(LowCardinality(String)),
    impersonation_missing Array(LowCardinality(String)),
    identity Array(LowCardinality(String)) COMMENT 'contradictions in the recorded identity',
    admission LowCardinality(String),
    admission_plugin LowCardinality(String),
    admission_namespace_lifecycle LowCardinality(String),
    policy_revision UInt64 CODEC(ZSTD(1)),
    engine_version LowCardinality(String),
    config_version LowCardinality(String),

    -- the access, for the rollups; empty where outcome is
    access UInt64 COMMENT 'key of accesses' CODEC(ZSTD(1)),
    access_name LowCardinality(String) COMMENT 'attr_name, generated parts folded to *',
    access_path LowCardinality(String) COMMENT 'attr_path, long tails folded to *',
    group_set UInt64 COMMENT 'key of group_sets: the subject''s groups as a set' CODEC(ZSTD(1)),

    INDEX by_audit_id audit_id TYPE bloom_filter(0.01) GRANULARITY 4
)
ENGINE = {{.Replicated}}VersionedCollapsingMergeTree(sign, version)
PARTITION BY (ingest_day, source = 'import')
PRIMARY KEY (cluster, minute, user_name)
ORDER BY (cluster, minute, user_name, verb, request_uri, request_received, request_key, stage, stage_delay)
SETTINGS non_replicated_deduplication_window = 1000, min_bytes_for_wide_part = 268435456
