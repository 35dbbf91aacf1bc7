-- Whoever reaches the apiserver names user agents as he likes: those of refused requests of
-- nobody in particular are not told apart.
ALTER TABLE {{.Database}}.activity_mv{{.OnCluster}} MODIFY QUERY
SELECT cluster, toStartOfTenMinutes(minute) AS slot, subject, if(subject IN ('', 'system:anonymous') AND recorded != 'allow', '(other)', events.user_agent) AS user_agent,
    recorded, outcome, kpart, ingest_day, sum(toInt64(sign)) AS count
FROM {{.Database}}.events
WHERE outcome != ''
GROUP BY cluster, slot, subject, user_agent, recorded, outcome, kpart, ingest_day
