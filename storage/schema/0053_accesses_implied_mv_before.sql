DROP VIEW IF EXISTS {{.Database}}.accesses_implied_mv{{.OnCluster}}
