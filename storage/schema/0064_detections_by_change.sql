-- Who works out findings asks every few seconds for the slots whose marks changed, and for all there is of those slots. Parts are written
-- in the order of time: one that holds no change, or no slot, of the time that is asked about is not read.
ALTER TABLE {{.Database}}.detections{{.OnCluster}}
    ADD INDEX IF NOT EXISTS by_changed changed TYPE minmax GRANULARITY 1,
    ADD INDEX IF NOT EXISTS by_slot slot TYPE minmax GRANULARITY 1
