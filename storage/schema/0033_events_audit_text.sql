-- An audit ID is a UUID unless a client chose otherwise: sixteen bytes, which the next file
-- adds. This column is for those that are not, and has those of the rows from before.
ALTER TABLE {{.Database}}.events{{.OnCluster}} RENAME COLUMN IF EXISTS audit_id TO audit_text
