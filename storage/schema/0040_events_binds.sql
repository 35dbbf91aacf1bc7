-- Which role a binding gives that is patched, or was recorded without its bodies.
ALTER TABLE {{.Database}}.events{{.OnCluster}}
    ADD COLUMN IF NOT EXISTS binds Array(LowCardinality(String)) COMMENT 'of a write of a binding: the roles that it gives, or may give, as the replica knows; ? for any'
