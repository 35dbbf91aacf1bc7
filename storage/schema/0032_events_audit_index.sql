-- The next file renames the column it is on.
ALTER TABLE {{.Database}}.events{{.OnCluster}} DROP INDEX IF EXISTS by_audit_id
