-- Look for an ID in both columns, each by its index: audit_uuid = 'x' OR audit_text = 'x'.
-- audit_id, which is made of them, has none.
ALTER TABLE {{.Database}}.events{{.OnCluster}}
    MODIFY COLUMN IF EXISTS audit_text String COMMENT 'the audit ID when it is no UUID' CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS audit_uuid UUID COMMENT 'the audit ID when it is a UUID, else zero' CODEC(NONE) AFTER audit_text,
    ADD COLUMN IF NOT EXISTS audit_id String ALIAS if(audit_uuid = toUUID('00000000-0000-0000-0000-000000000000'), audit_text, toString(audit_uuid)) COMMENT 'chosen by the client when it sends Audit-ID: not unique' AFTER audit_uuid,
    ADD INDEX IF NOT EXISTS by_audit_uuid audit_uuid TYPE bloom_filter(0.01) GRANULARITY 4,
    ADD INDEX IF NOT EXISTS by_audit_text audit_text TYPE bloom_filter(0.01) GRANULARITY 4
