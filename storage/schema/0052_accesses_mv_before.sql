-- Questions are about one cluster, and accesses were of all: their table gives way to one that begins with
-- the cluster. What is inserted until that has its views is taken from events when the store is opened.
DROP VIEW IF EXISTS {{.Database}}.accesses_mv{{.OnCluster}}
