-- Grants that let a check behind the authorization filter pass are used by it.
ALTER TABLE {{.Database}}.grant_usage{{.OnCluster}}
    ADD COLUMN IF NOT EXISTS implied LowCardinality(String) COMMENT 'empty: requests; else a check behind them, by name',
    MODIFY ORDER BY (cluster, granted, access, day, kpart, ingest_day, implied)
