-- Which detection rules select the request. They stand in the row that has the verdict and
-- are corrected with it.
ALTER TABLE {{.Database}}.events{{.OnCluster}}
    ADD COLUMN IF NOT EXISTS hits Array(LowCardinality(String)) COMMENT 'detection rules that select the request: rule, or rule/ and what it counts for',
    ADD COLUMN IF NOT EXISTS hit_keys Array(UInt64) COMMENT 'per rule the hash of the group; 0 stands for xxHash64(audit_id)' CODEC(ZSTD(1))
