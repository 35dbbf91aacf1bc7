-- The rest of a verdict: how the identity comes about, what every authorizer answered, what
-- was asked behind the authorization filter, what a review answered. Nearly all of it is
-- empty, or the same from row to row.
ALTER TABLE {{.Database}}.events{{.OnCluster}}
    ADD COLUMN IF NOT EXISTS evidence Array(String) COMMENT 'for each of identity: what contradicts what' CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS explained Array(LowCardinality(String)) COMMENT 'authenticators that can have produced the identity, in order',
    ADD COLUMN IF NOT EXISTS credential LowCardinality(String) COMMENT 'JTI=…, X509SHA256=…, Secret=…; empty: the event does not tell',
    ADD COLUMN IF NOT EXISTS chain LowCardinality(String) COMMENT 'JSON array of [authorizer, answer, reason]; a number for a reason is the place of the grant whose reason it is',
    ADD COLUMN IF NOT EXISTS implied Array(String) COMMENT 'checks behind the filter, each a JSON array: check, replayed, recorded, covered; verb, resource request, group, version, resource, subresource, namespace, name, path, selectors; folded name and path; missing' CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS implied_access Array(UInt64) COMMENT 'for each of implied: key of accesses' CODEC(ZSTD(1)),
    ADD COLUMN IF NOT EXISTS implied_grants Array(Array(LowCardinality(String))) COMMENT 'for each of implied: grants, as in grants',
    ADD COLUMN IF NOT EXISTS review String COMMENT 'JSON: the answer of a review beside the replica''s' CODEC(ZSTD(1)),
    ADD INDEX IF NOT EXISTS by_credential credential TYPE bloom_filter(0.01) GRANULARITY 1
