-- Rollups may be made later than events are stored: which rows they lack is told by the number of the
-- insert. 0 stands for rows that were counted as they came.
ALTER TABLE {{.Database}}.events{{.OnCluster}}
    ADD COLUMN IF NOT EXISTS batch UInt64 COMMENT 'number of the insert, where rollups are made later; else 0' CODEC(Delta(8), ZSTD(1)),
    ADD INDEX IF NOT EXISTS by_batch batch TYPE minmax GRANULARITY 1
