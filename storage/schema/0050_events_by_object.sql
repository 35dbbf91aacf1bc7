-- Which granules an object is in: the name alone is in most of them where every namespace has one
-- of that name.
ALTER TABLE {{.Database}}.events{{.OnCluster}}
    ADD INDEX IF NOT EXISTS by_object cityHash64(object_resource, object_namespace, object_name) TYPE bloom_filter(0.01) GRANULARITY 1
