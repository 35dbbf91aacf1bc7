CREATE DATABASE IF NOT EXISTS `retrial_local` ON CLUSTER `main`;

CREATE TABLE IF NOT EXISTS `retrial_local`.schema_version ON CLUSTER `main` (
    version UInt32, name String, digest String, applied DateTime('UTC') DEFAULT now()
) ENGINE = ReplicatedReplacingMergeTree ORDER BY version;

-- One row per audit event (one per stage of a request), with the verdict on the row of the
-- request's first stage stored. Rows are only ever added: a correction adds the old row
-- with sign -1 and the new one with sign +1. Aggregate with sum(sign); list with FINAL.
-- Sorted by minute and then by what repeats, which is what makes it compress; a request is
-- found again by (cluster, minute, request_key).
CREATE TABLE IF NOT EXISTS `retrial_local`.events ON CLUSTER `main`
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
ENGINE = ReplicatedVersionedCollapsingMergeTree(sign, version)
PARTITION BY (ingest_day, source = 'import')
PRIMARY KEY (cluster, minute, user_name)
ORDER BY (cluster, minute, user_name, verb, request_uri, request_received, request_key, stage, stage_delay)
SETTINGS non_replicated_deduplication_window = 1000, min_bytes_for_wide_part = 268435456
;

-- Every distinct access: who (name and group set) did what to which resource or path. It
-- has no counts, so an access that was taken back by a correction may stay: harmless.
CREATE TABLE IF NOT EXISTS `retrial_local`.accesses ON CLUSTER `main`
(
    access UInt64,
    subject LowCardinality(String),
    group_set UInt64,
    verb LowCardinality(String),
    api_group LowCardinality(String),
    resource LowCardinality(String),
    subresource LowCardinality(String),
    namespace LowCardinality(String),
    name LowCardinality(String) COMMENT '* stands for a generated part',
    path LowCardinality(String) COMMENT 'non-resource requests',
    seen SimpleAggregateFunction(max, Date) COMMENT 'last ingest day: retention counts from it'
)
ENGINE = ReplicatedAggregatingMergeTree
ORDER BY (access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path)
SETTINGS non_replicated_deduplication_window = 1000
;

CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.accesses_mv ON CLUSTER `main` TO `retrial_local`.accesses AS
SELECT access, subject, group_set, attr_verb AS verb, attr_api_group AS api_group, attr_resource AS resource,
    attr_subresource AS subresource, attr_namespace AS namespace, access_name AS name, access_path AS path,
    max(ingest_day) AS seen
FROM `retrial_local`.events
WHERE outcome != ''
GROUP BY access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path
;

-- Group sets, interned: most requests of a subject carry the same groups.
CREATE TABLE IF NOT EXISTS `retrial_local`.group_sets ON CLUSTER `main`
(
    group_set UInt64,
    groups Array(String) COMMENT 'sorted, each once',
    seen SimpleAggregateFunction(max, Date)
)
ENGINE = ReplicatedAggregatingMergeTree
ORDER BY (group_set, groups)
SETTINGS non_replicated_deduplication_window = 1000
;

CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.group_sets_mv ON CLUSTER `main` TO `retrial_local`.group_sets AS
SELECT group_set, arraySort(arrayDistinct(arrayMap(g -> toString(g), any(if(bitAnd(shape, 1) = 1, impersonated_groups, user_groups))))) AS groups,
    max(ingest_day) AS seen
FROM `retrial_local`.events
WHERE outcome != ''
GROUP BY group_set
;

-- Usage by day: how often each access was made and what came of it. kpart and ingest_day
-- are dimensions so that the owner of a Kafka partition can make the rows of one partition
-- and day equal to its events again, whatever a crash left.
CREATE TABLE IF NOT EXISTS `retrial_local`.access_usage ON CLUSTER `main`
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
ENGINE = ReplicatedAggregatingMergeTree
PARTITION BY toYYYYMM(ingest_day)
ORDER BY (cluster, access, day, recorded, replayed, outcome, class, kpart, ingest_day)
SETTINGS non_replicated_deduplication_window = 1000
;

CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.access_usage_mv ON CLUSTER `main` TO `retrial_local`.access_usage AS
SELECT cluster, day, access, recorded, replayed, outcome, class, kpart, ingest_day,
    sum(toInt64(sign)) AS count, min(request_received) AS first_seen, max(request_received) AS last_seen
FROM `retrial_local`.events
WHERE outcome != ''
GROUP BY cluster, day, access, recorded, replayed, outcome, class, kpart, ingest_day
;

-- Which grant made which access possible, by day: least privilege reads this, never events.
CREATE TABLE IF NOT EXISTS `retrial_local`.grant_usage ON CLUSTER `main`
(
    cluster LowCardinality(String),
    day Date COMMENT 'of the request',
    granted LowCardinality(String) COMMENT 'JSON array, as in events.grants',
    access UInt64 COMMENT 'key of accesses',
    kpart Int32,
    ingest_day Date,
    count SimpleAggregateFunction(sum, Int64),
    first_seen SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    last_seen SimpleAggregateFunction(max, DateTime64(6, 'UTC')),
    binding_kind String ALIAS JSONExtractString(granted, 1),
    binding_namespace String ALIAS JSONExtractString(granted, 2),
    binding String ALIAS JSONExtractString(granted, 3),
    role_kind String ALIAS JSONExtractString(granted, 4),
    role String ALIAS JSONExtractString(granted, 5),
    subject_kind String ALIAS JSONExtractString(granted, 6),
    subject_namespace String ALIAS JSONExtractString(granted, 7),
    subject String ALIAS JSONExtractString(granted, 8),
    rule Int64 ALIAS JSONExtractInt(granted, 9)
)
ENGINE = ReplicatedAggregatingMergeTree
PARTITION BY toYYYYMM(ingest_day)
ORDER BY (cluster, granted, access, day, kpart, ingest_day)
SETTINGS non_replicated_deduplication_window = 1000
;

CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.grant_usage_mv ON CLUSTER `main` TO `retrial_local`.grant_usage AS
SELECT cluster, day, granted, access, kpart, ingest_day,
    sum(toInt64(sign)) AS count, min(request_received) AS first_seen, max(request_received) AS last_seen
FROM `retrial_local`.events
ARRAY JOIN grants AS granted
GROUP BY cluster, day, granted, access, kpart, ingest_day
;

-- Events per minute: the first page and a month's rate without touching events.
CREATE TABLE IF NOT EXISTS `retrial_local`.volume ON CLUSTER `main`
(
    cluster LowCardinality(String),
    minute DateTime('UTC') COMMENT 'of the request',
    recorded LowCardinality(String),
    replayed LowCardinality(String),
    outcome LowCardinality(String) COMMENT 'empty: later stages of a request',
    class LowCardinality(String),
    kpart Int32,
    ingest_day Date,
    count SimpleAggregateFunction(sum, Int64) COMMENT 'events'
)
ENGINE = ReplicatedAggregatingMergeTree
PARTITION BY toYYYYMM(ingest_day)
ORDER BY (cluster, minute, outcome, class, recorded, replayed, kpart, ingest_day)
SETTINGS non_replicated_deduplication_window = 1000
;

CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.volume_mv ON CLUSTER `main` TO `retrial_local`.volume AS
SELECT cluster, minute, recorded, replayed, outcome, class, kpart, ingest_day, sum(toInt64(sign)) AS count
FROM `retrial_local`.events
GROUP BY cluster, minute, recorded, replayed, outcome, class, kpart, ingest_day
;

-- The history of every object the replica keeps: what State is rebuilt from. An observation
-- is one row however often it is delivered; the row has the place it was read from last.
CREATE TABLE IF NOT EXISTS `retrial_local`.policy_objects ON CLUSTER `main`
(
    cluster LowCardinality(String),
    resource LowCardinality(String),
    namespace LowCardinality(String),
    name String CODEC(ZSTD(1)),
    uid String CODEC(ZSTD(1)),
    resource_version String CODEC(ZSTD(1)),
    deleted UInt8,
    observation String COMMENT 'JSON, as replay/state writes it' CODEC(ZSTD(3)),
    observed DateTime64(6, 'UTC') COMMENT 'near when it was true; order is by resource_version' CODEC(ZSTD(1)),
    epoch UInt32,
    kpart Int32,
    koffset Int64,
    idx Int32
)
ENGINE = ReplicatedReplacingMergeTree
ORDER BY (cluster, resource, namespace, name, uid, resource_version, deleted, cityHash64(observation))
SETTINGS non_replicated_deduplication_window = 1000
;

-- What could not become an event or be processed: visible, never retried for ever.
CREATE TABLE IF NOT EXISTS `retrial_local`.dead_letters ON CLUSTER `main`
(
    cluster LowCardinality(String),
    source LowCardinality(String),
    reason LowCardinality(String),
    detail String CODEC(ZSTD(1)),
    digest String COMMENT 'of the original bytes' CODEC(ZSTD(1)),
    size Int64 COMMENT 'of the original bytes' CODEC(ZSTD(1)),
    prefix String COMMENT 'redacted beginning of the original bytes' CODEC(ZSTD(3)),
    received DateTime64(6, 'UTC') CODEC(ZSTD(1)),
    ingest_day Date,
    epoch UInt32,
    kpart Int32,
    koffset Int64
)
ENGINE = ReplicatedReplacingMergeTree
PARTITION BY toYYYYMM(ingest_day)
ORDER BY (epoch, kpart, koffset)
SETTINGS non_replicated_deduplication_window = 1000
;

-- What detections report. The newest row of a key stands.
CREATE TABLE IF NOT EXISTS `retrial_local`.findings ON CLUSTER `main`
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
ENGINE = ReplicatedReplacingMergeTree(updated)
ORDER BY (cluster, finding, key)
SETTINGS non_replicated_deduplication_window = 1000
;

-- Small facts about this installation: retention horizons and the like.
CREATE TABLE IF NOT EXISTS `retrial_local`.meta ON CLUSTER `main`
(
    key String,
    value String,
    updated DateTime64(6, 'UTC')
)
ENGINE = ReplicatedReplacingMergeTree(updated)
ORDER BY key
;

-- Who asked what of the store: the page, the API, commands, SQL clients. Repeats of a
-- question within a minute are one row with their sum.
CREATE TABLE IF NOT EXISTS `retrial_local`.query_log ON CLUSTER `main`
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
ENGINE = ReplicatedAggregatingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (minute, day, door, caller, address, question, detail, status)
SETTINGS non_replicated_deduplication_window = 1000
;

-- Which detection rules select the request. They stand in the row that has the verdict and
-- are corrected with it.
ALTER TABLE `retrial_local`.events ON CLUSTER `main`
    ADD COLUMN IF NOT EXISTS hits Array(LowCardinality(String)) COMMENT 'detection rules that select the request: rule, or rule/ and what it counts for',
    ADD COLUMN IF NOT EXISTS hit_keys Array(UInt64) COMMENT 'per rule the hash of the group; 0 stands for xxHash64(audit_id)' CODEC(ZSTD(1))
;

-- Marks of detection rules by stretches of request time. The digest tells whoever works out
-- findings which stretches changed; for rules that look for something new, each key has rows
-- of its own by day. kpart and ingest_day are dimensions as in access_usage.
CREATE TABLE IF NOT EXISTS `retrial_local`.detections ON CLUSTER `main`
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
ENGINE = ReplicatedAggregatingMergeTree
PARTITION BY toYYYYMM(ingest_day)
ORDER BY (cluster, rule, key, slot, kpart, ingest_day)
SETTINGS non_replicated_deduplication_window = 1000
;

CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.detections_mv ON CLUSTER `main` TO `retrial_local`.detections AS
SELECT cluster, substringIndex(hit, '/', 1) AS rule,
    if(endsWith(hit, '/first'), toStartOfDay(minute), toStartOfTenMinutes(minute)) AS slot,
    if(endsWith(hit, '/first'), hit_key, 0) AS key, kpart, ingest_day,
    sum(toInt64(sign)) AS count,
    sum(toInt64(sign) * reinterpretAsInt64(cityHash64(request_key, version, hit, hit_key))) AS digest,
    max(now()) AS changed
FROM `retrial_local`.events
ARRAY JOIN hits AS hit, hit_keys AS hit_key
GROUP BY cluster, rule, slot, key, kpart, ingest_day
;

-- What a finding is worked out from, and whether it still is one.
ALTER TABLE `retrial_local`.findings ON CLUSTER `main`
    ADD COLUMN IF NOT EXISTS requests Int64 CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS span DateTime('UTC') COMMENT 'begin of the stretch of time it was worked out in',
    ADD COLUMN IF NOT EXISTS withdrawn UInt8 COMMENT 'its requests were corrected away'
;

-- Which marks the findings of a rule and a stretch of time were worked out from: where
-- whoever works them out next begins.
CREATE TABLE IF NOT EXISTS `retrial_local`.detections_done ON CLUSTER `main`
(
    cluster LowCardinality(String),
    rule LowCardinality(String),
    span DateTime('UTC'),
    digest Int64,
    updated DateTime64(6, 'UTC')
)
ENGINE = ReplicatedReplacingMergeTree(updated)
ORDER BY (cluster, rule, span)
SETTINGS non_replicated_deduplication_window = 1000
;

-- The rest of a verdict: how the identity comes about, what every authorizer answered, what
-- was asked behind the authorization filter, what a review answered. Nearly all of it is
-- empty, or the same from row to row.
ALTER TABLE `retrial_local`.events ON CLUSTER `main`
    ADD COLUMN IF NOT EXISTS evidence Array(String) COMMENT 'for each of identity: what contradicts what' CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS explained Array(LowCardinality(String)) COMMENT 'authenticators that can have produced the identity, in order',
    ADD COLUMN IF NOT EXISTS credential LowCardinality(String) COMMENT 'JTI=…, X509SHA256=…, Secret=…; empty: the event does not tell',
    ADD COLUMN IF NOT EXISTS chain LowCardinality(String) COMMENT 'JSON array of [authorizer, answer, reason]; a number for a reason is the place of the grant whose reason it is',
    ADD COLUMN IF NOT EXISTS implied Array(String) COMMENT 'checks behind the filter, each a JSON array: check, replayed, recorded, covered; verb, resource request, group, version, resource, subresource, namespace, name, path, selectors; folded name and path; missing' CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS implied_access Array(UInt64) COMMENT 'for each of implied: key of accesses' CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS implied_grants Array(Array(LowCardinality(String))) COMMENT 'for each of implied: grants, as in grants',
    ADD COLUMN IF NOT EXISTS review String COMMENT 'JSON: the answer of a review beside the replica''s' CODEC(ZSTD(1)),
    ADD INDEX IF NOT EXISTS by_credential credential TYPE bloom_filter(0.01) GRANULARITY 1
;

-- Checks behind the authorization filter are usage too: what a subject needs besides the
-- request that shows. They are counted beside the requests, under the access they would be.
ALTER TABLE `retrial_local`.access_usage ON CLUSTER `main`
    ADD COLUMN IF NOT EXISTS implied LowCardinality(String) COMMENT 'empty: requests; else a check behind them, by name',
    ADD COLUMN IF NOT EXISTS covered UInt8 COMMENT 'of a check: it passes without the verb',
    MODIFY ORDER BY (cluster, access, day, recorded, replayed, outcome, class, kpart, ingest_day, implied, covered)
;

-- Grants that let a check behind the authorization filter pass are used by it.
ALTER TABLE `retrial_local`.grant_usage ON CLUSTER `main`
    ADD COLUMN IF NOT EXISTS implied LowCardinality(String) COMMENT 'empty: requests; else a check behind them, by name',
    MODIFY ORDER BY (cluster, granted, access, day, kpart, ingest_day, implied)
;

CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.accesses_implied_mv ON CLUSTER `main` TO `retrial_local`.accesses AS
SELECT item_access AS access, if(requestor = '', effective, user_name) AS subject, if(requestor = '', effective_set, toUInt64OrZero(requestor)) AS group_set,
    JSONExtractString(item, 5) AS verb, JSONExtractString(item, 7) AS api_group, JSONExtractString(item, 9) AS resource, JSONExtractString(item, 10) AS subresource,
    JSONExtractString(item, 11) AS namespace, JSONExtractString(item, 16) AS name, JSONExtractString(item, 17) AS path, max(ingest_day) AS seen
FROM (
    SELECT subject AS effective, group_set AS effective_set, user_name, ingest_day, item, item_access, JSONExtractString(item, 20) AS requestor
    FROM `retrial_local`.events
    ARRAY JOIN implied AS item, implied_access AS item_access
    WHERE recorded != 'forbid' AND item_access != 0
)
GROUP BY access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path
;

-- A request that was refused came to none of its checks; one that cannot be put into a
-- question has no access.
CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.access_usage_implied_mv ON CLUSTER `main` TO `retrial_local`.access_usage AS
SELECT cluster, day, item_access AS access, JSONExtractString(item, 3) AS recorded, JSONExtractString(item, 2) AS replayed, outcome, class,
    kpart, ingest_day, JSONExtractString(item, 1) AS implied, toUInt8(JSONExtractInt(item, 4)) AS covered,
    sum(toInt64(sign)) AS count, min(request_received) AS first_seen, max(request_received) AS last_seen
FROM (
    SELECT cluster, day, outcome, class, kpart, ingest_day, sign, request_received, item, item_access
    FROM `retrial_local`.events
    ARRAY JOIN implied AS item, implied_access AS item_access
    WHERE recorded != 'forbid' AND item_access != 0
)
GROUP BY cluster, day, access, recorded, replayed, outcome, class, kpart, ingest_day, implied, covered
;

CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.grant_usage_implied_mv ON CLUSTER `main` TO `retrial_local`.grant_usage AS
SELECT cluster, day, granted, item_access AS access, kpart, ingest_day, JSONExtractString(item, 1) AS implied,
    sum(toInt64(sign)) AS count, min(request_received) AS first_seen, max(request_received) AS last_seen
FROM (
    SELECT cluster, day, kpart, ingest_day, sign, request_received, item, item_access, arrayJoin(item_grants) AS granted
    FROM `retrial_local`.events
    ARRAY JOIN implied AS item, implied_access AS item_access, implied_grants AS item_grants
    WHERE recorded != 'forbid' AND item_access != 0
)
GROUP BY cluster, day, granted, access, kpart, ingest_day, implied
;

-- Who acts as another is asked about by the groups of his own.
CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.group_sets_implied_mv ON CLUSTER `main` TO `retrial_local`.group_sets AS
SELECT toUInt64OrZero(requestor) AS group_set, arraySort(arrayDistinct(arrayMap(g -> toString(g), any(user_groups)))) AS groups, max(ingest_day) AS seen
FROM (
    SELECT user_groups, ingest_day, JSONExtractString(item, 20) AS requestor
    FROM `retrial_local`.events
    ARRAY JOIN implied AS item
    WHERE recorded != 'forbid' AND requestor != ''
)
GROUP BY group_set
;

-- Requests to judge stored requests again, and how far each Kafka partition has come. The row
-- of the request itself has no partition (-1).
CREATE TABLE IF NOT EXISTS `retrial_local`.rejudges ON CLUSTER `main`
(
    cluster LowCardinality(String),
    id String,
    kpart Int32,
    version UInt64 COMMENT 'grows with every step',
    content String COMMENT 'JSON' CODEC(ZSTD(1)),
    written DateTime DEFAULT now()
)
ENGINE = ReplicatedReplacingMergeTree(version)
ORDER BY (cluster, id, kpart)
SETTINGS non_replicated_deduplication_window = 1000
;

-- What kube-apiservers say of their own audit events in their metrics, one row a reading: what
-- was sent, to compare with what came (docs/completeness.md).
CREATE TABLE IF NOT EXISTS `retrial_local`.audit_samples ON CLUSTER `main`
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
ENGINE = ReplicatedReplacingMergeTree
PARTITION BY toYYYYMM(day)
ORDER BY (cluster, apiserver, taken)
SETTINGS non_replicated_deduplication_window = 1000
;

-- Texts that repeat from row to row are kept once a part, and numbers by codecs that suit
-- them; measured in docs/storage.md. Parts from before are rewritten in the background and
-- read all the while.
ALTER TABLE `retrial_local`.events ON CLUSTER `main`
    MODIFY COLUMN IF EXISTS ingested DateTime64(6, 'UTC') CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS koffset Int64 CODEC(T64, ZSTD(1)),
    MODIFY COLUMN IF EXISTS content FixedString(16) COMMENT 'hash of the canonical redacted event, the second half zero' CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS request_received DateTime64(6, 'UTC') CODEC(T64, ZSTD(1)),
    MODIFY COLUMN IF EXISTS request_uri LowCardinality(String) CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS user_extra Map(LowCardinality(String), Array(LowCardinality(String))) CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS impersonated_extra Map(LowCardinality(String), Array(LowCardinality(String))) CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS annotations Map(LowCardinality(String), LowCardinality(String)) CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS object_name LowCardinality(String) CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS object_uid LowCardinality(String) CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS response_status LowCardinality(String) COMMENT 'JSON as recorded' CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS recorded_reason LowCardinality(String) CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS attr_name LowCardinality(String) CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS access_name LowCardinality(String) COMMENT 'attr_name, generated parts folded to *' CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS attr_namespace LowCardinality(String) CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS object_namespace LowCardinality(String) CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS cause LowCardinality(String) CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS missing Array(LowCardinality(String)) CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS credential LowCardinality(String) COMMENT 'JTI=…, X509SHA256=…, Secret=…; empty: the event does not tell' CODEC(ZSTD(1)),
    MODIFY COLUMN IF EXISTS chain LowCardinality(String) COMMENT 'JSON array of [authorizer, answer, reason]; a number for a reason is the place of the grant whose reason it is' CODEC(ZSTD(1))
SETTINGS alter_sync = 0
;

-- The next file renames the column it is on.
ALTER TABLE `retrial_local`.events ON CLUSTER `main` DROP INDEX IF EXISTS by_audit_id
;

-- An audit ID is a UUID unless a client chose otherwise: sixteen bytes, which the next file
-- adds. This column is for those that are not, and has those of the rows from before.
ALTER TABLE `retrial_local`.events ON CLUSTER `main` RENAME COLUMN IF EXISTS audit_id TO audit_text
;

-- Look for an ID in both columns, each by its index: audit_uuid = 'x' OR audit_text = 'x'.
-- audit_id, which is made of them, has none.
ALTER TABLE `retrial_local`.events ON CLUSTER `main`
    MODIFY COLUMN IF EXISTS audit_text String COMMENT 'the audit ID when it is no UUID' CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS audit_uuid UUID COMMENT 'the audit ID when it is a UUID, else zero' CODEC(NONE) AFTER audit_text,
    ADD COLUMN IF NOT EXISTS audit_id String ALIAS if(audit_uuid = toUUID('00000000-0000-0000-0000-000000000000'), audit_text, toString(audit_uuid)) COMMENT 'chosen by the client when it sends Audit-ID: not unique' AFTER audit_uuid,
    ADD INDEX IF NOT EXISTS by_audit_uuid audit_uuid TYPE bloom_filter(0.01) GRANULARITY 4,
    ADD INDEX IF NOT EXISTS by_audit_text audit_text TYPE bloom_filter(0.01) GRANULARITY 4
;

-- Requests by subject and user agent in ten minutes: who was busiest, without touching events.
CREATE TABLE IF NOT EXISTS `retrial_local`.activity ON CLUSTER `main`
(
    cluster LowCardinality(String),
    slot DateTime('UTC') COMMENT 'ten minutes of requests, its begin',
    subject LowCardinality(String),
    user_agent LowCardinality(String),
    recorded LowCardinality(String),
    outcome LowCardinality(String),
    kpart Int32,
    ingest_day Date,
    count SimpleAggregateFunction(sum, Int64) COMMENT 'requests'
)
ENGINE = ReplicatedAggregatingMergeTree
PARTITION BY toYYYYMM(ingest_day)
ORDER BY (cluster, slot, subject, user_agent, recorded, outcome, kpart, ingest_day)
SETTINGS non_replicated_deduplication_window = 1000
;

CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.activity_mv ON CLUSTER `main` TO `retrial_local`.activity AS
SELECT cluster, toStartOfTenMinutes(minute) AS slot, subject, user_agent, recorded, outcome, kpart, ingest_day, sum(toInt64(sign)) AS count
FROM `retrial_local`.events
WHERE outcome != ''
GROUP BY cluster, slot, subject, user_agent, recorded, outcome, kpart, ingest_day
;

-- What is beyond a subject's accesses of a day is one access, whatever was asked for.
ALTER TABLE `retrial_local`.accesses_mv ON CLUSTER `main` MODIFY QUERY
SELECT access, subject, group_set, if(access_path = '(other)', access_path, attr_verb) AS verb, if(access_path = '(other)', '', attr_api_group) AS api_group,
    if(access_path = '(other)', '', attr_resource) AS resource, if(access_path = '(other)', '', attr_subresource) AS subresource,
    if(access_path = '(other)', '', attr_namespace) AS namespace, access_name AS name, access_path AS path, max(ingest_day) AS seen
FROM `retrial_local`.events
WHERE outcome != ''
GROUP BY access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path
;

ALTER TABLE `retrial_local`.accesses_implied_mv ON CLUSTER `main` MODIFY QUERY
SELECT item_access AS access, if(requestor = '', effective, user_name) AS subject, if(requestor = '', effective_set, toUInt64OrZero(requestor)) AS group_set,
    if(path = '(other)', path, JSONExtractString(item, 5)) AS verb, if(path = '(other)', '', JSONExtractString(item, 7)) AS api_group,
    if(path = '(other)', '', JSONExtractString(item, 9)) AS resource, if(path = '(other)', '', JSONExtractString(item, 10)) AS subresource,
    if(path = '(other)', '', JSONExtractString(item, 11)) AS namespace, JSONExtractString(item, 16) AS name, path, max(ingest_day) AS seen
FROM (
    SELECT subject AS effective, group_set AS effective_set, user_name, ingest_day, item, item_access, JSONExtractString(item, 20) AS requestor, JSONExtractString(item, 17) AS path
    FROM `retrial_local`.events
    ARRAY JOIN implied AS item, implied_access AS item_access
    WHERE recorded != 'forbid' AND item_access != 0
)
GROUP BY access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path
;

-- Whoever reaches the apiserver names user agents as he likes: those of refused requests of
-- nobody in particular are not told apart.
ALTER TABLE `retrial_local`.activity_mv ON CLUSTER `main` MODIFY QUERY
SELECT cluster, toStartOfTenMinutes(minute) AS slot, subject, if(subject IN ('', 'system:anonymous') AND recorded != 'allow', '(other)', events.user_agent) AS user_agent,
    recorded, outcome, kpart, ingest_day, sum(toInt64(sign)) AS count
FROM `retrial_local`.events
WHERE outcome != ''
GROUP BY cluster, slot, subject, user_agent, recorded, outcome, kpart, ingest_day
;

-- Which role a binding gives that is patched, or was recorded without its bodies.
ALTER TABLE `retrial_local`.events ON CLUSTER `main`
    ADD COLUMN IF NOT EXISTS binds Array(LowCardinality(String)) COMMENT 'of a write of a binding: the roles that it gives, or may give, as the replica knows; ? for any'
;

-- Whoever may make requests names user agents as he likes: those of a subject beyond what is counted
-- by itself in a day are marked in the row.
ALTER TABLE `retrial_local`.activity_mv ON CLUSTER `main` MODIFY QUERY
SELECT cluster, toStartOfTenMinutes(minute) AS slot, subject,
    if(bitAnd(shape, 16) = 16 OR subject IN ('', 'system:anonymous') AND recorded != 'allow', '(other)', events.user_agent) AS user_agent,
    recorded, outcome, kpart, ingest_day, sum(toInt64(sign)) AS count
FROM `retrial_local`.events
WHERE outcome != ''
GROUP BY cluster, slot, subject, user_agent, recorded, outcome, kpart, ingest_day
;

-- What each admission plugin answered, a list instead of a column a plugin. Of rows from before
-- it is made of the columns there were, which are still written.
ALTER TABLE `retrial_local`.events ON CLUSTER `main`
    ADD COLUMN IF NOT EXISTS admission_plugins Array(LowCardinality(String))
        DEFAULT arrayConcat(if(admission_namespace_lifecycle != '' OR admission_plugin = 'NamespaceLifecycle', ['NamespaceLifecycle'], []),
            if(admission_plugin NOT IN ('', 'NamespaceLifecycle'), [toString(admission_plugin)], []))
        COMMENT 'admission plugins: the one that refused the request, and those that were evaluated again',
    ADD COLUMN IF NOT EXISTS admission_names Array(LowCardinality(String))
        DEFAULT arrayMap(x -> '', admission_plugins)
        COMMENT 'for each of admission_plugins: the policy, webhook or quota that decided; empty for none',
    ADD COLUMN IF NOT EXISTS admission_outcomes Array(LowCardinality(String))
        DEFAULT arrayMap(x -> if(x = 'NamespaceLifecycle' AND admission_namespace_lifecycle != '', toString(admission_namespace_lifecycle), 'rejected'), admission_plugins)
        COMMENT 'for each of admission_plugins: rejected, pass, match, drift, ambiguous, indeterminate',
    ADD COLUMN IF NOT EXISTS admission_reasons Array(String)
        DEFAULT arrayMap(x -> '', admission_plugins)
        COMMENT 'for each of admission_plugins: what it said or would have said, or what is not known' CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS admission_codes Array(Int32)
        DEFAULT arrayMap(x -> if(x = admission_plugin, code, 0), admission_plugins)
        COMMENT 'for each of admission_plugins: the response code where it refused the request, else 0' CODEC(ZSTD(1))
;

-- Whoever may act as others makes up subjects and groups: sets of groups beyond those of a subject's
-- day have the last key there is, and subjects beyond those of a cluster's the one before.
ALTER TABLE `retrial_local`.accesses_mv ON CLUSTER `main` MODIFY QUERY
SELECT access, if(group_set = 18446744073709551614, '(other)', events.subject) AS subject, group_set, if(access_path = '(other)', access_path, attr_verb) AS verb,
    if(access_path = '(other)', '', attr_api_group) AS api_group, if(access_path = '(other)', '', attr_resource) AS resource,
    if(access_path = '(other)', '', attr_subresource) AS subresource, if(access_path = '(other)', '', attr_namespace) AS namespace,
    access_name AS name, access_path AS path, max(ingest_day) AS seen
FROM `retrial_local`.events
WHERE outcome != ''
GROUP BY access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path
;

ALTER TABLE `retrial_local`.accesses_implied_mv ON CLUSTER `main` MODIFY QUERY
SELECT item_access AS access, if(group_set = 18446744073709551614, '(other)', if(requestor = '', effective, user_name)) AS subject,
    if(requestor = '', effective_set, toUInt64OrZero(requestor)) AS group_set,
    if(path = '(other)', path, JSONExtractString(item, 5)) AS verb, if(path = '(other)', '', JSONExtractString(item, 7)) AS api_group,
    if(path = '(other)', '', JSONExtractString(item, 9)) AS resource, if(path = '(other)', '', JSONExtractString(item, 10)) AS subresource,
    if(path = '(other)', '', JSONExtractString(item, 11)) AS namespace, JSONExtractString(item, 16) AS name, path, max(ingest_day) AS seen
FROM (
    SELECT subject AS effective, group_set AS effective_set, user_name, ingest_day, item, item_access, JSONExtractString(item, 20) AS requestor, JSONExtractString(item, 17) AS path
    FROM `retrial_local`.events
    ARRAY JOIN implied AS item, implied_access AS item_access
    WHERE recorded != 'forbid' AND item_access != 0
)
GROUP BY access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path
;

ALTER TABLE `retrial_local`.activity_mv ON CLUSTER `main` MODIFY QUERY
SELECT cluster, toStartOfTenMinutes(minute) AS slot, if(group_set = 18446744073709551614, '(other)', events.subject) AS subject,
    if(bitAnd(shape, 16) = 16 OR events.subject IN ('', 'system:anonymous') AND recorded != 'allow', '(other)', events.user_agent) AS user_agent,
    recorded, outcome, kpart, ingest_day, sum(toInt64(sign)) AS count
FROM `retrial_local`.events
WHERE outcome != ''
GROUP BY cluster, slot, subject, user_agent, recorded, outcome, kpart, ingest_day
;

-- What is not told apart is no set of the groups of whoever came first.
ALTER TABLE `retrial_local`.group_sets_mv ON CLUSTER `main` MODIFY QUERY
SELECT group_set, if(group_set >= 18446744073709551614, ['(other)'], arraySort(arrayDistinct(arrayMap(g -> toString(g), any(if(bitAnd(shape, 1) = 1, impersonated_groups, user_groups)))))) AS groups,
    max(ingest_day) AS seen
FROM `retrial_local`.events
WHERE outcome != ''
GROUP BY group_set
;

ALTER TABLE `retrial_local`.group_sets_implied_mv ON CLUSTER `main` MODIFY QUERY
SELECT toUInt64OrZero(requestor) AS group_set, if(group_set >= 18446744073709551614, ['(other)'], arraySort(arrayDistinct(arrayMap(g -> toString(g), any(user_groups))))) AS groups, max(ingest_day) AS seen
FROM (
    SELECT user_groups, ingest_day, JSONExtractString(item, 20) AS requestor
    FROM `retrial_local`.events
    ARRAY JOIN implied AS item, implied_access AS item_access
    WHERE recorded != 'forbid' AND requestor != '' AND item_access != 0
)
GROUP BY group_set
;

-- Whoever may ask for anything, or act as anybody, makes up keys of first-seen rules: those beyond what is
-- kept of a user's and a cluster's day are marked in the row, and have key 1.
ALTER TABLE `retrial_local`.detections_mv ON CLUSTER `main` MODIFY QUERY
SELECT cluster, substringIndex(hit, '/', 1) AS rule,
    if(endsWith(hit, '/first'), toStartOfDay(minute), toStartOfTenMinutes(minute)) AS slot,
    if(endsWith(hit, '/first'), if(bitAnd(shape, 32) = 32, 1, hit_key), 0) AS key, kpart, ingest_day,
    sum(toInt64(sign)) AS count,
    sum(toInt64(sign) * reinterpretAsInt64(cityHash64(request_key, version, hit, hit_key))) AS digest,
    max(now()) AS changed
FROM `retrial_local`.events
ARRAY JOIN hits AS hit, hit_keys AS hit_key
GROUP BY cluster, rule, slot, key, kpart, ingest_day
;

-- Rollups may be made later than events are stored: which rows they lack is told by the number of the
-- insert. 0 stands for rows that were counted as they came.
ALTER TABLE `retrial_local`.events ON CLUSTER `main`
    ADD COLUMN IF NOT EXISTS batch UInt64 COMMENT 'number of the insert, where rollups are made later; else 0' CODEC(Delta(8), ZSTD(1)),
    ADD INDEX IF NOT EXISTS by_batch batch TYPE minmax GRANULARITY 1
;

-- Which granules an object is in: the name alone is in most of them where every namespace has one
-- of that name.
ALTER TABLE `retrial_local`.events ON CLUSTER `main`
    ADD INDEX IF NOT EXISTS by_object cityHash64(object_resource, object_namespace, object_name) TYPE bloom_filter(0.01) GRANULARITY 1
;

-- Parts from before get the index in the background, and are read without it until then.
ALTER TABLE `retrial_local`.events ON CLUSTER `main` MATERIALIZE INDEX by_object
;

-- Questions are about one cluster, and accesses were of all: their table gives way to one that begins with
-- the cluster. What is inserted until that has its views is taken from events when the store is opened.
DROP VIEW IF EXISTS `retrial_local`.accesses_mv ON CLUSTER `main`
;

DROP VIEW IF EXISTS `retrial_local`.accesses_implied_mv ON CLUSTER `main`
;

-- What it has is given to its clusters when the store is opened; then it is dropped.
RENAME TABLE IF EXISTS `retrial_local`.accesses TO `retrial_local`.accesses_before ON CLUSTER `main`
;

-- Every distinct access of a cluster: who (name and group set) did what to which resource or path. It
-- has no counts, so an access that was taken back by a correction may stay: harmless.
CREATE TABLE IF NOT EXISTS `retrial_local`.accesses ON CLUSTER `main`
(
    cluster LowCardinality(String),
    access UInt64 COMMENT 'of several clusters where these have the same',
    subject LowCardinality(String),
    group_set UInt64,
    verb LowCardinality(String),
    api_group LowCardinality(String),
    resource LowCardinality(String),
    subresource LowCardinality(String),
    namespace LowCardinality(String),
    name LowCardinality(String) COMMENT '* stands for a generated part',
    path LowCardinality(String) COMMENT 'non-resource requests',
    seen SimpleAggregateFunction(max, Date) COMMENT 'last ingest day'
)
ENGINE = ReplicatedAggregatingMergeTree
ORDER BY (cluster, subject, access, group_set, verb, api_group, resource, subresource, namespace, name, path)
SETTINGS non_replicated_deduplication_window = 1000
;

CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.accesses_mv ON CLUSTER `main` TO `retrial_local`.accesses AS
SELECT cluster, access, if(group_set = 18446744073709551614, '(other)', events.subject) AS subject, group_set, if(access_path = '(other)', access_path, attr_verb) AS verb,
    if(access_path = '(other)', '', attr_api_group) AS api_group, if(access_path = '(other)', '', attr_resource) AS resource,
    if(access_path = '(other)', '', attr_subresource) AS subresource, if(access_path = '(other)', '', attr_namespace) AS namespace,
    access_name AS name, access_path AS path, max(ingest_day) AS seen
FROM `retrial_local`.events
WHERE outcome != ''
GROUP BY cluster, access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path
;

CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.accesses_implied_mv ON CLUSTER `main` TO `retrial_local`.accesses AS
SELECT cluster, item_access AS access, if(group_set = 18446744073709551614, '(other)', if(requestor = '', effective, user_name)) AS subject,
    if(requestor = '', effective_set, toUInt64OrZero(requestor)) AS group_set,
    if(path = '(other)', path, JSONExtractString(item, 5)) AS verb, if(path = '(other)', '', JSONExtractString(item, 7)) AS api_group,
    if(path = '(other)', '', JSONExtractString(item, 9)) AS resource, if(path = '(other)', '', JSONExtractString(item, 10)) AS subresource,
    if(path = '(other)', '', JSONExtractString(item, 11)) AS namespace, JSONExtractString(item, 16) AS name, path, max(ingest_day) AS seen
FROM (
    SELECT cluster, subject AS effective, group_set AS effective_set, user_name, ingest_day, item, item_access, JSONExtractString(item, 20) AS requestor, JSONExtractString(item, 17) AS path
    FROM `retrial_local`.events
    ARRAY JOIN implied AS item, implied_access AS item_access
    WHERE recorded != 'forbid' AND item_access != 0
)
GROUP BY cluster, access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path
;

-- Which granules have requests that lists are filtered by: of what comes seldom, or not at all,
-- nearly all are passed over. What a granule has of such words is kept up to a bound, as clients can
-- make some up; of subjects it is a filter whose size follows from how many there are.
ALTER TABLE `retrial_local`.events ON CLUSTER `main`
    ADD INDEX IF NOT EXISTS by_words (verb, object_resource, recorded, outcome, class) TYPE set(1024) GRANULARITY 1,
    ADD INDEX IF NOT EXISTS by_subject subject TYPE bloom_filter(0.01) GRANULARITY 1
;

-- Parts from before get the indexes in the background, and are read without them until then.
ALTER TABLE `retrial_local`.events ON CLUSTER `main` MATERIALIZE INDEX by_words, MATERIALIZE INDEX by_subject
;

-- Requests whose verdict is not a match, by all that the verdict says and by subject, in ten minutes:
-- what does not match, nearly without touching events. It is partitioned as events are and goes with them,
-- because verdicts have words of clients in them, and because examples are read from events.
CREATE TABLE IF NOT EXISTS `retrial_local`.unmatched ON CLUSTER `main`
(
    cluster LowCardinality(String),
    slot DateTime('UTC') COMMENT 'ten minutes of requests, its begin',
    outcome LowCardinality(String) COMMENT 'drift, ambiguous, indeterminate',
    class LowCardinality(String),
    subject LowCardinality(String),
    apiserver LowCardinality(String),
    cause LowCardinality(String) COMMENT 'empty where outcome is indeterminate: missing says the same',
    missing Array(LowCardinality(String)) COMMENT 'without the object that a path to was looked for',
    recorded LowCardinality(String),
    recorded_reason LowCardinality(String),
    replayed LowCardinality(String),
    code Int32,
    config_version LowCardinality(String),
    kpart Int32,
    ingest_day Date,
    imported UInt8 COMMENT '1: the events came by import',
    count SimpleAggregateFunction(sum, Int64) COMMENT 'requests',
    first_seen SimpleAggregateFunction(min, DateTime64(6, 'UTC')),
    last_seen SimpleAggregateFunction(max, DateTime64(6, 'UTC'))
)
ENGINE = ReplicatedAggregatingMergeTree
PARTITION BY (ingest_day, imported)
ORDER BY (cluster, slot, outcome, class, subject, apiserver, cause, missing, recorded, recorded_reason, replayed, code, config_version, kpart, ingest_day, imported)
SETTINGS non_replicated_deduplication_window = 1000
;

CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.unmatched_mv ON CLUSTER `main` TO `retrial_local`.unmatched AS
SELECT cluster, toStartOfTenMinutes(minute) AS slot, outcome, class, subject, apiserver, if(outcome = 'indeterminate', '', events.cause) AS cause,
    arrayDistinct(arrayMap(m -> splitByString(' (path to ', m)[1], events.missing)) AS missing, recorded, recorded_reason, replayed,
    code, config_version, kpart, ingest_day, toUInt8(source = 'import') AS imported, sum(toInt64(sign)) AS count,
    min(request_received) AS first_seen, max(request_received) AS last_seen
FROM `retrial_local`.events
WHERE outcome NOT IN ('', 'match', 'not_judged')
GROUP BY cluster, slot, outcome, class, subject, apiserver, cause, missing, recorded, recorded_reason, replayed, code, config_version,
    kpart, ingest_day, imported
;

-- Who touched an object, and how, by the hour: the only table that has requests by object. Its names are clients' to
-- choose, so it is partitioned as events are and goes with them. Objects are read by few rows of many parts: small granules.
CREATE TABLE IF NOT EXISTS `retrial_local`.objects ON CLUSTER `main`
(
    cluster LowCardinality(String),
    resource LowCardinality(String) COMMENT 'of the object a request names; empty: none',
    namespace LowCardinality(String),
    name String COMMENT 'empty: a collection' CODEC(ZSTD(1)),
    slot DateTime('UTC') COMMENT 'hour of requests, its begin' CODEC(ZSTD(1)),
    user_name LowCardinality(String) COMMENT 'who authenticated',
    verb LowCardinality(String),
    subresource LowCardinality(String),
    recorded LowCardinality(String),
    kpart Int32 CODEC(ZSTD(1)),
    ingest_day Date CODEC(ZSTD(1)),
    imported UInt8 COMMENT '1: the events came by import' CODEC(ZSTD(1)),
    count SimpleAggregateFunction(sum, Int64) COMMENT 'requests' CODEC(T64, ZSTD(1)),
    first_seen SimpleAggregateFunction(min, DateTime64(6, 'UTC')) CODEC(ZSTD(1)),
    last_seen SimpleAggregateFunction(max, DateTime64(6, 'UTC')) CODEC(ZSTD(1))
)
ENGINE = ReplicatedAggregatingMergeTree
PARTITION BY (ingest_day, imported)
PRIMARY KEY (cluster, resource, namespace, name)
ORDER BY (cluster, resource, namespace, name, slot, user_name, verb, subresource, recorded, kpart, ingest_day, imported)
SETTINGS non_replicated_deduplication_window = 1000, index_granularity = 1024
;

CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.objects_mv ON CLUSTER `main` TO `retrial_local`.objects AS
SELECT cluster, object_resource AS resource, object_namespace AS namespace, object_name AS name, toStartOfHour(minute) AS slot, user_name, verb,
    object_subresource AS subresource, recorded, kpart, ingest_day, toUInt8(source = 'import') AS imported, sum(toInt64(sign)) AS count,
    min(request_received) AS first_seen, max(request_received) AS last_seen
FROM `retrial_local`.events
WHERE outcome != ''
GROUP BY cluster, resource, namespace, name, slot, user_name, verb, subresource, recorded, kpart, ingest_day, imported
;

-- Who works out findings asks every few seconds for the slots whose marks changed, and for all there is of those slots. Parts are written
-- in the order of time: one that holds no change, or no slot, of the time that is asked about is not read.
ALTER TABLE `retrial_local`.detections ON CLUSTER `main`
    ADD INDEX IF NOT EXISTS by_changed changed TYPE minmax GRANULARITY 1,
    ADD INDEX IF NOT EXISTS by_slot slot TYPE minmax GRANULARITY 1
;

-- Parts from before get the indexes in the background, and are read without them until then. Of past months nothing is merged any more,
-- so their parts would never get them.
ALTER TABLE `retrial_local`.detections ON CLUSTER `main` MATERIALIZE INDEX by_changed, MATERIALIZE INDEX by_slot
;

-- Events by the post they came with: what an apiserver sent, and when, without touching events. Names of apiservers are
-- whatever a path says, so it is partitioned as events are and goes with them.
CREATE TABLE IF NOT EXISTS `retrial_local`.arrivals ON CLUSTER `main`
(
    cluster LowCardinality(String),
    ingested DateTime64(6, 'UTC') COMMENT 'when the receiver took the post' CODEC(Delta(8), ZSTD(1)),
    apiserver LowCardinality(String),
    source LowCardinality(String) COMMENT 'webhook, log, import',
    day Date COMMENT 'of the requests' CODEC(ZSTD(1)),
    kpart Int32 CODEC(ZSTD(1)),
    ingest_day Date CODEC(ZSTD(1)),
    imported UInt8 COMMENT '1: the events came by import' CODEC(ZSTD(1)),
    count SimpleAggregateFunction(sum, Int64) COMMENT 'events' CODEC(T64, ZSTD(1))
)
ENGINE = ReplicatedAggregatingMergeTree
PARTITION BY (ingest_day, imported)
ORDER BY (cluster, ingested, apiserver, source, day, kpart, ingest_day, imported)
SETTINGS non_replicated_deduplication_window = 1000
;

CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.arrivals_mv ON CLUSTER `main` TO `retrial_local`.arrivals AS
SELECT cluster, ingested, apiserver, source, day, kpart, ingest_day, toUInt8(source = 'import') AS imported, sum(toInt64(sign)) AS count
FROM `retrial_local`.events
GROUP BY cluster, ingested, apiserver, source, day, kpart, ingest_day, imported
;

-- Whether requests that have several stages have all of them, by the minute: a beginning adds a hash of the request, an end
-- takes it away. Only minutes whose digest is not 0 are looked at closely. It goes with its events.
CREATE TABLE IF NOT EXISTS `retrial_local`.halves ON CLUSTER `main`
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
ENGINE = ReplicatedAggregatingMergeTree
PARTITION BY (ingest_day, imported)
ORDER BY (cluster, minute, kpart, ingest_day, imported)
SETTINGS non_replicated_deduplication_window = 1000
;

CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.halves_mv ON CLUSTER `main` TO `retrial_local`.halves AS
SELECT cluster, minute, kpart, ingest_day, toUInt8(source = 'import') AS imported, sum(toInt64(sign)) AS count,
    sum(toInt64(sign) * if(stage IN ('RequestReceived', 'ResponseStarted'), 1, -1) * reinterpretAsInt64(cityHash64(request_key))) AS digest,
    max(now()) AS changed
FROM `retrial_local`.events
WHERE stage IN ('RequestReceived', 'ResponseStarted') OR outcome = '' OR verb = 'watch' AND code < 400
GROUP BY cluster, minute, kpart, ingest_day, imported
;

-- Requests that were refused, each with what is told of it: few of the events, and a row of theirs would be read of nearly every
-- granule. A row whose count is not 1 was taken back. It goes with its events.
CREATE TABLE IF NOT EXISTS `retrial_local`.refused ON CLUSTER `main`
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
ENGINE = ReplicatedAggregatingMergeTree
PARTITION BY (ingest_day, imported)
PRIMARY KEY (cluster, minute)
ORDER BY (cluster, minute, request_received, request_key, subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace, attr_name, attr_path, path, recorded, replayed, outcome, class, code, plugin, plugin_name, refused_check, audit_text, audit_uuid, user_name, groups, missing, kpart, ingest_day, imported)
SETTINGS non_replicated_deduplication_window = 1000
;

CREATE MATERIALIZED VIEW IF NOT EXISTS `retrial_local`.refused_mv ON CLUSTER `main` TO `retrial_local`.refused AS
SELECT cluster, minute, request_received, request_key, subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace,
    attr_name, attr_path, access_path AS path, recorded, replayed, outcome, class, code,
    admission_plugins[indexOf(arrayMap((o, c) -> o IN ('rejected', 'match') OR c != 0, admission_outcomes, admission_codes), 1)] AS plugin,
    admission_names[indexOf(arrayMap((o, c) -> o IN ('rejected', 'match') OR c != 0, admission_outcomes, admission_codes), 1)] AS plugin_name,
    JSONExtractString(arrayFirst(i -> JSONExtractString(i, 3) = 'forbid', implied), 1) AS refused_check, audit_text, audit_uuid, user_name,
    if(bitAnd(shape, 1) = 1, impersonated_groups, user_groups) AS groups, missing, kpart, ingest_day, toUInt8(source = 'import') AS imported,
    sum(toInt64(sign)) AS count
FROM `retrial_local`.events
WHERE outcome != '' AND (recorded = 'forbid' OR code IN (401, 403) OR admission = 'rejected')
GROUP BY cluster, minute, request_received, request_key, subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace,
    attr_name, attr_path, path, recorded, replayed, outcome, class, code, plugin, plugin_name, refused_check, audit_text, audit_uuid, user_name, groups, missing, kpart,
    ingest_day, imported
;

