-- What it has is given to its clusters when the store is opened; then it is dropped.
RENAME TABLE IF EXISTS {{.Database}}.accesses TO {{.Database}}.accesses_before{{.OnCluster}}
