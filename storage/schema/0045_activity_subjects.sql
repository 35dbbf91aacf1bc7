ALTER TABLE {{.Database}}.activity_mv{{.OnCluster}} MODIFY QUERY
SELECT cluster, toStartOfTenMinutes(minute) AS slot, if(group_set = 18446744073709551614, '(other)', events.subject) AS subject,
    if(bitAnd(shape, 16) = 16 OR events.subject IN ('', 'system:anonymous') AND recorded != 'allow', '(other)', events.user_agent) AS user_agent,
    recorded, outcome, kpart, ingest_day, sum(toInt64(sign)) AS count
FROM {{.Database}}.events
WHERE outcome != ''
GROUP BY cluster, slot, subject, user_agent, recorded, outcome, kpart, ingest_day
