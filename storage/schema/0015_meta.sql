-- Small facts about this installation: retention horizons and the like.
CREATE TABLE IF NOT EXISTS {{.Database}}.meta{{.OnCluster}}
(
    key String,
    value String,
    updated DateTime64(6, 'UTC')
)
ENGINE = {{.Replicated}}ReplacingMergeTree(updated)
ORDER BY key
