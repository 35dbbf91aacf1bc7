-- Checks behind the authorization filter are usage too: what a subject needs besides the
-- request that shows. They are counted beside the requests, under the access they would be.
ALTER TABLE {{.Database}}.access_usage{{.OnCluster}}
    ADD COLUMN IF NOT EXISTS implied LowCardinality(String) COMMENT 'empty: requests; else a check behind them, by name',
    ADD COLUMN IF NOT EXISTS covered UInt8 COMMENT 'of a check: it passes without the verb',
    MODIFY ORDER BY (cluster, access, day, recorded, replayed, outcome, class, kpart, ingest_day, implied, covered)
