-- What a finding is worked out from, and whether it still is one.
ALTER TABLE {{.Database}}.findings{{.OnCluster}}
    ADD COLUMN IF NOT EXISTS requests Int64 CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS span DateTime('UTC') COMMENT 'begin of the stretch of time it was worked out in',
    ADD COLUMN IF NOT EXISTS withdrawn UInt8 COMMENT 'its requests were corrected away'
