-- Whoever may make requests names user agents as he likes: those of a subject beyond what is counted
-- by itself in a day are marked in the row.
ALTER TABLE {{.Database}}.activity_mv{{.OnCluster}} MODIFY QUERY
SELECT cluster, toStartOfTenMinutes(minute) AS slot, subject,
    if(bitAnd(shape, 16) = 16 OR subject IN ('', 'system:anonymous') AND recorded != 'allow', '(other)', events.user_agent) AS user_agent,
    recorded, outcome, kpart, ingest_day, sum(toInt64(sign)) AS count
FROM {{.Database}}.events
WHERE outcome != ''
GROUP BY cluster, slot, subject, user_agent, recorded, outcome, kpart, ingest_day
