-- Texts that repeat from row to row are kept once a part, and numbers by codecs that suit
-- them; measured in docs/storage.md. Parts from before are rewritten in the background and
-- read all the while.
ALTER TABLE {{.Database}}.events{{.OnCluster}}
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
