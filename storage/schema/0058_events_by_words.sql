-- Which granules have requests that lists are filtered by: of what comes seldom, or not at all,
-- nearly all are passed over. What a granule has of such words is kept up to a bound, as clients can
-- make some up; of subjects it is a filter whose size follows from how many there are.
ALTER TABLE {{.Database}}.events{{.OnCluster}}
    ADD INDEX IF NOT EXISTS by_words (verb, object_resource, recorded, outcome, class) TYPE set(1024) GRANULARITY 1,
    ADD INDEX IF NOT EXISTS by_subject subject TYPE bloom_filter(0.01) GRANULARITY 1
