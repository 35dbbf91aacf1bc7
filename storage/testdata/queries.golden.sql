-- Clusters
SELECT cluster, sum(count) AS events, toInt64(toUnixTimestamp(minIf(minute, count > 0))), toInt64(toUnixTimestamp(maxIf(minute, count > 0)))
FROM `retrial`.volume
GROUP BY cluster
HAVING events > 0
ORDER BY cluster;

-- Volume
SELECT intDiv(toInt64(toUnixTimestamp(minute)), {step:Int64}) * {step:Int64} AS start, recorded, outcome, sum(count) AS events
FROM `retrial`.volume
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32}
GROUP BY start, recorded, outcome
HAVING events != 0
ORDER BY start, recorded, outcome;

-- Outcomes
SELECT outcome, class, sum(count) AS requests
FROM `retrial`.volume
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32} AND outcome != ''
GROUP BY outcome, class
HAVING requests != 0
ORDER BY requests DESC, outcome, class;

-- Lacks
SELECT m, sum(toInt64(sign)) AS requests
FROM `retrial`.events
ARRAY JOIN missing AS m
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32} AND outcome = 'indeterminate'
GROUP BY m
HAVING requests > 0
ORDER BY requests DESC, m
LIMIT {limit:UInt32};

-- Overview of a short range
SELECT toInt64(sumIf(c, inside)), toInt64(sumIf(c, NOT inside)), toInt64(toUnixTimestamp(minIf(minute, lacking > 0 AND later < {most:Int64})))
FROM (
    SELECT minute, minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32} AS inside, sum(count) AS c, sumIf(count, inside AND outcome = 'indeterminate') AS lacking,
        sum(lacking) OVER (ORDER BY minute DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS later
    FROM `retrial`.volume
    WHERE cluster = {cluster:String}
    GROUP BY minute
);
SELECT intDiv(toUnixTimestamp64Micro(request_received), {step:Int64}) * {step:Int64} AS start, recorded, replayed, outcome, class, sum(toInt64(sign)) AS events
FROM `retrial`.events
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32} AND toUnixTimestamp64Micro(request_received) >= {from:Int64} AND toUnixTimestamp64Micro(request_received) < {to:Int64}
GROUP BY start, recorded, replayed, outcome, class
HAVING events != 0
ORDER BY start, recorded, outcome, replayed, class;
SELECT subject, sum(toInt64(sign)) AS requests, toInt64(sumIf(toInt64(sign), recorded = 'forbid')) AS forbidden, toInt64(sumIf(toInt64(sign), outcome = 'drift')) AS drift
FROM `retrial`.events
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32} AND toUnixTimestamp64Micro(request_received) >= {from:Int64} AND toUnixTimestamp64Micro(request_received) < {to:Int64} AND outcome != ''
GROUP BY subject
HAVING requests > 0
ORDER BY requests DESC, subject
LIMIT {limit:UInt32};

-- Overview of another time
SELECT toInt64(sumIf(c, inside)), toInt64(sumIf(c, NOT inside)), toInt64(toUnixTimestamp(minIf(minute, lacking > 0 AND later < {most:Int64})))
FROM (
    SELECT minute, minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32} AS inside, sum(count) AS c, sumIf(count, inside AND outcome = 'indeterminate') AS lacking,
        sum(lacking) OVER (ORDER BY minute DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS later
    FROM `retrial`.volume
    WHERE cluster = {cluster:String}
    GROUP BY minute
);
INSERT INTO `retrial`.access_usage (cluster, day, access, recorded, replayed, outcome, class, kpart, ingest_day, count, first_seen, last_seen) SELECT cluster, day, access, recorded, replayed, outcome, class, materialize(toInt32(0)) AS kpart, ingest_day, sum(toInt64(sign)) AS count, min(request_received) AS first_seen, max(request_received) AS last_seen
FROM (SELECT * FROM `retrial`.events WHERE batch > 0 AND batch <= 1 AND ingest_day >= toDate(0)) AS events WHERE outcome != ''
GROUP BY cluster, day, access, recorded, replayed, outcome, class, ingest_day;
INSERT INTO `retrial`.access_usage (cluster, day, access, recorded, replayed, outcome, class, kpart, ingest_day, implied, covered, count, first_seen, last_seen) SELECT cluster, day, access, recorded, replayed, outcome, class, materialize(toInt32(0)) AS kpart, ingest_day, implied, covered, sum(toInt64(sign)) AS count, min(request_received) AS first_seen, max(request_received) AS last_seen
FROM (SELECT cluster, day, item_access AS access, JSONExtractString(item, 3) AS recorded, JSONExtractString(item, 2) AS replayed, outcome, class, kpart, ingest_day,
    JSONExtractString(item, 1) AS implied, toUInt8(JSONExtractInt(item, 4)) AS covered, sign, request_received
FROM (SELECT cluster, day, outcome, class, kpart, ingest_day, sign, request_received, item, item_access FROM (SELECT * FROM `retrial`.events WHERE batch > 0 AND batch <= 1 AND ingest_day >= toDate(0)) AS events ARRAY JOIN implied AS item, implied_access AS item_access WHERE recorded != 'forbid' AND item_access != 0)) WHERE 1
GROUP BY cluster, day, access, recorded, replayed, outcome, class, ingest_day, implied, covered;
INSERT INTO `retrial`.accesses (cluster, access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path, seen) SELECT cluster, access, if(group_set = 18446744073709551614, '(other)', events.subject) AS subject, group_set,
    if(access_path = '(other)', access_path, attr_verb) AS verb, if(access_path = '(other)', '', attr_api_group) AS api_group, if(access_path = '(other)', '', attr_resource) AS resource,
    if(access_path = '(other)', '', attr_subresource) AS subresource, if(access_path = '(other)', '', attr_namespace) AS namespace, access_name AS name, access_path AS path, max(ingest_day) AS seen
FROM (SELECT * FROM `retrial`.events WHERE batch > 0 AND batch <= 1 AND ingest_day >= toDate(0)) AS events WHERE outcome != ''
GROUP BY cluster, access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path;
INSERT INTO `retrial`.accesses (cluster, access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path, seen) SELECT cluster, access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path, max(ingest_day) AS seen
FROM (SELECT cluster, item_access AS access, if(group_set = 18446744073709551614, '(other)', if(requestor = '', effective, user_name)) AS subject, if(requestor = '', effective_set, toUInt64OrZero(requestor)) AS group_set,
    if(path = '(other)', path, JSONExtractString(item, 5)) AS verb, if(path = '(other)', '', JSONExtractString(item, 7)) AS api_group, if(path = '(other)', '', JSONExtractString(item, 9)) AS resource,
    if(path = '(other)', '', JSONExtractString(item, 10)) AS subresource, if(path = '(other)', '', JSONExtractString(item, 11)) AS namespace, JSONExtractString(item, 16) AS name, path, kpart, day, ingest_day
FROM (SELECT cluster, subject AS effective, group_set AS effective_set, user_name, kpart, day, ingest_day, item, item_access, JSONExtractString(item, 20) AS requestor, JSONExtractString(item, 17) AS path FROM (SELECT * FROM `retrial`.events WHERE batch > 0 AND batch <= 1 AND ingest_day >= toDate(0)) AS events ARRAY JOIN implied AS item, implied_access AS item_access WHERE recorded != 'forbid' AND item_access != 0)) WHERE 1
GROUP BY cluster, access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path;
INSERT INTO `retrial`.activity (cluster, slot, subject, user_agent, recorded, outcome, kpart, ingest_day, count) SELECT cluster, slot, subject, user_agent, recorded, outcome, materialize(toInt32(0)) AS kpart, ingest_day, sum(toInt64(sign)) AS count
FROM (SELECT cluster, toStartOfTenMinutes(minute) AS slot, if(group_set = 18446744073709551614, '(other)', events.subject) AS subject, if(bitAnd(shape, 16) = 16 OR events.subject IN ('', 'system:anonymous') AND recorded != 'allow', '(other)', events.user_agent) AS user_agent, recorded, outcome, kpart, ingest_day, sign FROM (SELECT * FROM `retrial`.events WHERE batch > 0 AND batch <= 1 AND ingest_day >= toDate(0)) AS events WHERE outcome != '') WHERE 1
GROUP BY cluster, slot, subject, user_agent, recorded, outcome, ingest_day;
INSERT INTO `retrial`.arrivals (cluster, ingested, apiserver, source, day, kpart, ingest_day, imported, count) SELECT cluster, ingested, apiserver, source, day, materialize(toInt32(0)) AS kpart, ingest_day, imported, sum(toInt64(sign)) AS count
FROM (SELECT cluster, ingested, apiserver, source, day, kpart, ingest_day, toUInt8(source = 'import') AS imported, sign FROM (SELECT * FROM `retrial`.events WHERE batch > 0 AND batch <= 1 AND ingest_day >= toDate(0)) AS events) WHERE 1
GROUP BY cluster, ingested, apiserver, source, day, ingest_day, imported;
INSERT INTO `retrial`.grant_usage (cluster, day, granted, access, kpart, ingest_day, count, first_seen, last_seen) SELECT cluster, day, granted, access, materialize(toInt32(0)) AS kpart, ingest_day, sum(toInt64(sign)) AS count, min(request_received) AS first_seen, max(request_received) AS last_seen
FROM (SELECT * FROM `retrial`.events WHERE batch > 0 AND batch <= 1 AND ingest_day >= toDate(0)) AS events ARRAY JOIN grants AS granted WHERE 1
GROUP BY cluster, day, granted, access, ingest_day;
INSERT INTO `retrial`.grant_usage (cluster, day, granted, access, kpart, ingest_day, implied, count, first_seen, last_seen) SELECT cluster, day, granted, access, materialize(toInt32(0)) AS kpart, ingest_day, implied, sum(toInt64(sign)) AS count, min(request_received) AS first_seen, max(request_received) AS last_seen
FROM (SELECT cluster, day, granted, item_access AS access, kpart, ingest_day, JSONExtractString(item, 1) AS implied, sign, request_received
FROM (SELECT cluster, day, kpart, ingest_day, sign, request_received, item, item_access, arrayJoin(item_grants) AS granted
    FROM (SELECT * FROM `retrial`.events WHERE batch > 0 AND batch <= 1 AND ingest_day >= toDate(0)) AS events ARRAY JOIN implied AS item, implied_access AS item_access, implied_grants AS item_grants WHERE recorded != 'forbid' AND item_access != 0)) WHERE 1
GROUP BY cluster, day, granted, access, ingest_day, implied;
INSERT INTO `retrial`.group_sets (group_set, groups, seen) SELECT group_set, if(group_set >= 18446744073709551614, ['(other)'], arraySort(arrayDistinct(arrayMap(g -> toString(g), any(if(bitAnd(shape, 1) = 1, impersonated_groups, user_groups)))))) AS groups, max(ingest_day) AS seen
FROM (SELECT * FROM `retrial`.events WHERE batch > 0 AND batch <= 1 AND ingest_day >= toDate(0)) AS events WHERE outcome != ''
GROUP BY group_set;
INSERT INTO `retrial`.group_sets (group_set, groups, seen) SELECT group_set, if(group_set >= 18446744073709551614, ['(other)'], arraySort(arrayDistinct(arrayMap(g -> toString(g), any(user_groups))))) AS groups, max(ingest_day) AS seen
FROM (SELECT toUInt64OrZero(requestor) AS group_set, user_groups, kpart, day, ingest_day
FROM (SELECT user_groups, kpart, day, ingest_day, JSONExtractString(item, 20) AS requestor FROM (SELECT * FROM `retrial`.events WHERE batch > 0 AND batch <= 1 AND ingest_day >= toDate(0)) AS events ARRAY JOIN implied AS item, implied_access AS item_access WHERE recorded != 'forbid' AND item_access != 0) WHERE requestor != '') WHERE 1
GROUP BY group_set;
INSERT INTO `retrial`.halves (cluster, minute, kpart, ingest_day, imported, count, digest, changed) SELECT cluster, minute, materialize(toInt32(0)) AS kpart, ingest_day, imported, sum(toInt64(sign)) AS count, sum(toInt64(sign) * if(stage IN ('RequestReceived', 'ResponseStarted'), 1, -1) * reinterpretAsInt64(cityHash64(request_key))) AS digest, max(now()) AS changed
FROM (SELECT cluster, minute, kpart, ingest_day, toUInt8(source = 'import') AS imported, sign, stage, request_key FROM (SELECT * FROM `retrial`.events WHERE batch > 0 AND batch <= 1 AND ingest_day >= toDate(0)) AS events WHERE stage IN ('RequestReceived', 'ResponseStarted') OR outcome = '' OR verb = 'watch' AND code < 400) WHERE 1
GROUP BY cluster, minute, ingest_day, imported;
INSERT INTO `retrial`.meta (key, value, updated) SELECT 'rollups counted', '1', fromUnixTimestamp64Micro(toInt64(1));
INSERT INTO `retrial`.meta (key, value, updated) SELECT 'rollups counting', '1', fromUnixTimestamp64Micro(toInt64(1));
INSERT INTO `retrial`.objects (cluster, resource, namespace, name, slot, user_name, verb, subresource, recorded, kpart, ingest_day, imported, count, first_seen, last_seen) SELECT cluster, resource, namespace, name, slot, user_name, verb, subresource, recorded, materialize(toInt32(0)) AS kpart, ingest_day, imported, sum(toInt64(sign)) AS count, min(request_received) AS first_seen, max(request_received) AS last_seen
FROM (SELECT cluster, object_resource AS resource, object_namespace AS namespace, object_name AS name, toStartOfHour(minute) AS slot, user_name, verb, object_subresource AS subresource, recorded, kpart, ingest_day, toUInt8(source = 'import') AS imported, sign, request_received FROM (SELECT * FROM `retrial`.events WHERE batch > 0 AND batch <= 1 AND ingest_day >= toDate(0)) AS events WHERE outcome != '') WHERE 1
GROUP BY cluster, resource, namespace, name, slot, user_name, verb, subresource, recorded, ingest_day, imported;
INSERT INTO `retrial`.refused (cluster, minute, request_received, request_key, subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace, attr_name, attr_path, path, recorded, replayed, outcome, class, code, plugin, plugin_name, refused_check, audit_text, audit_uuid, user_name, groups, missing, kpart, ingest_day, imported, count) SELECT cluster, minute, request_received, request_key, subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace, attr_name, attr_path, path, recorded, replayed, outcome, class, code, plugin, plugin_name, refused_check, audit_text, audit_uuid, user_name, groups, missing, materialize(toInt32(0)) AS kpart, ingest_day, imported, sum(toInt64(sign)) AS count
FROM (SELECT cluster, minute, request_received, request_key, subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace,
    attr_name, attr_path, access_path AS path, recorded, replayed, outcome, class, code,
    admission_plugins[indexOf(arrayMap((o, c) -> o IN ('rejected', 'match') OR c != 0, admission_outcomes, admission_codes), 1)] AS plugin,
    admission_names[indexOf(arrayMap((o, c) -> o IN ('rejected', 'match') OR c != 0, admission_outcomes, admission_codes), 1)] AS plugin_name,
    JSONExtractString(arrayFirst(i -> JSONExtractString(i, 3) = 'forbid', implied), 1) AS refused_check, audit_text, audit_uuid, user_name,
    if(bitAnd(shape, 1) = 1, impersonated_groups, user_groups) AS groups, missing, kpart, ingest_day, toUInt8(source = 'import') AS imported, sign
FROM (SELECT * FROM `retrial`.events WHERE batch > 0 AND batch <= 1 AND ingest_day >= toDate(0)) AS events WHERE outcome != '' AND (recorded = 'forbid' OR code IN (401, 403) OR admission = 'rejected')) WHERE 1
GROUP BY cluster, minute, request_received, request_key, subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace, attr_name, attr_path, path, recorded, replayed, outcome, class, code, plugin, plugin_name, refused_check, audit_text, audit_uuid, user_name, groups, missing, ingest_day, imported;
INSERT INTO `retrial`.unmatched (cluster, slot, outcome, class, subject, apiserver, cause, missing, recorded, recorded_reason, replayed, code, config_version, kpart, ingest_day, imported, count, first_seen, last_seen) SELECT cluster, slot, outcome, class, subject, apiserver, cause, missing, recorded, recorded_reason, replayed, code, config_version, materialize(toInt32(0)) AS kpart, ingest_day, imported, sum(toInt64(sign)) AS count, min(request_received) AS first_seen, max(request_received) AS last_seen
FROM (SELECT cluster, toStartOfTenMinutes(minute) AS slot, outcome, class, subject, apiserver, if(outcome = 'indeterminate', '', events.cause) AS cause, arrayDistinct(arrayMap(m -> splitByString(' (path to ', m)[1], events.missing)) AS missing, recorded, recorded_reason, replayed, code, config_version, kpart, ingest_day, toUInt8(source = 'import') AS imported, sign, request_received FROM (SELECT * FROM `retrial`.events WHERE batch > 0 AND batch <= 1 AND ingest_day >= toDate(0)) AS events WHERE outcome NOT IN ('', 'match', 'not_judged')) WHERE 1
GROUP BY cluster, slot, outcome, class, subject, apiserver, cause, missing, recorded, recorded_reason, replayed, code, config_version, ingest_day, imported;
SELECT intDiv(toInt64(toUnixTimestamp(minute)) * 1000000, {step:Int64}) * {step:Int64} AS start, recorded, replayed, outcome, class, sum(count) AS events
FROM `retrial`.volume
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32}
GROUP BY start, recorded, replayed, outcome, class
HAVING events != 0
ORDER BY start, recorded, outcome, replayed, class;
SELECT subject, sum(requests) AS requests, sum(forbidden), sum(drift)
FROM
(
SELECT subject, sum(count) AS requests, sumIf(count, recorded = 'forbid') AS forbidden, sumIf(count, outcome = 'drift') AS drift
FROM `retrial`.activity
WHERE cluster = {cluster:String} AND slot >= {from_slot:UInt32} AND slot < {to_slot:UInt32}
GROUP BY subject
UNION ALL
SELECT subject, sum(toInt64(sign)), toInt64(sumIf(toInt64(sign), recorded = 'forbid')), toInt64(sumIf(toInt64(sign), outcome = 'drift'))
FROM `retrial`.events
WHERE cluster = {cluster:String} AND (minute >= {from_minute:UInt32} AND minute < {from_slot:UInt32} OR minute >= {to_slot:UInt32} AND minute < {to_minute:UInt32}) AND outcome != ''
GROUP BY subject
)
GROUP BY subject
HAVING requests > 0
ORDER BY requests DESC, subject
LIMIT {limit:UInt32};

-- Overview of all there is
SELECT toInt64(sumIf(c, inside)), toInt64(sumIf(c, NOT inside)), toInt64(toUnixTimestamp(minIf(minute, lacking > 0 AND later < {most:Int64})))
FROM (
    SELECT minute, minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32} AS inside, sum(count) AS c, sumIf(count, inside AND outcome = 'indeterminate') AS lacking,
        sum(lacking) OVER (ORDER BY minute DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS later
    FROM `retrial`.volume
    WHERE cluster = {cluster:String}
    GROUP BY minute
);
SELECT intDiv(toInt64(toUnixTimestamp(minute)) * 1000000, {step:Int64}) * {step:Int64} AS start, recorded, replayed, outcome, class, sum(count) AS events
FROM `retrial`.volume
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32}
GROUP BY start, recorded, replayed, outcome, class
HAVING events != 0
ORDER BY start, recorded, outcome, replayed, class;
SELECT subject, sum(count) AS requests, sumIf(count, recorded = 'forbid') AS forbidden, sumIf(count, outcome = 'drift') AS drift
FROM `retrial`.activity
WHERE cluster = {cluster:String} AND slot >= {from_slot:UInt32} AND slot < {to_slot:UInt32}
GROUP BY subject
HAVING requests > 0
ORDER BY requests DESC, subject
LIMIT {limit:UInt32};

-- VisitWhy
SELECT {every column} FROM `retrial`.events FINAL PREWHERE cluster = {cluster:String} AND (cluster, minute) IN (SELECT cluster, minute FROM `retrial`.events WHERE cluster = {cluster:String} AND audit_text = {id:String}) AND audit_text = {id:String} WHERE sign = 1 ORDER BY cluster, request_received, request_key, stage_delay, stage LIMIT 1000;

-- Writes
SELECT cluster, request_key, sign, audit_id, stage, request_uri, verb, user_name, impersonated_name, object_resource, object_namespace, object_name, object_api_group, object_subresource, code, toUnixTimestamp64Micro(request_received), stage_delay, shape, outcome, class, cause, recorded, replayed, authorizer, grants, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace, attr_name, hits, hit_keys FROM `retrial`.events FINAL PREWHERE minute IN {minutes:Array(UInt32)} AND cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND stage = {stage:String} AND verb IN {verbs:Array(String)} AND object_resource IN {resources:Array(String)} AND arrayExists((r, s, n, f, t) -> object_resource = r AND (object_namespace = '' OR object_namespace = s) AND (object_name = '' OR object_name = n) AND toUnixTimestamp64Micro(request_received) BETWEEN f AND t, {resources:Array(String)}, {namespaces:Array(String)}, {names:Array(String)}, {from:Array(Int64)}, {to:Array(Int64)}) WHERE sign = 1 ORDER BY request_received DESC, concat(lower(hex(request_key)), stage) DESC LIMIT {limit:UInt32};

-- SubjectUsage
SELECT a.group_set, any(g.groups), sum(u.count) AS requests, toInt64(sumIf(u.count, recorded = 'forbid')), toInt64(sumIf(u.count, outcome = 'drift')), toInt64(sumIf(u.count, a.folded)),
    toUnixTimestamp64Micro(min(first_seen)), toUnixTimestamp64Micro(max(last_seen))
FROM `retrial`.access_usage AS u
INNER JOIN (SELECT access, any(group_set) AS group_set, any(name) = '(other)' OR any(path) = '(other)' AS folded FROM `retrial`.accesses WHERE cluster = {cluster:String} AND subject = {subject:String} GROUP BY access) AS a ON a.access = u.access
LEFT JOIN (SELECT group_set, any(groups) AS groups FROM `retrial`.group_sets WHERE group_set IN (SELECT group_set FROM `retrial`.accesses WHERE cluster = {cluster:String} AND subject = {subject:String}) GROUP BY group_set) AS g ON g.group_set = a.group_set
WHERE u.cluster = {cluster:String} AND toUInt16(u.day) BETWEEN {from_day:UInt16} AND {to_day:UInt16} AND u.implied = '' AND u.access IN (SELECT access FROM `retrial`.accesses WHERE cluster = {cluster:String} AND subject = {subject:String})
GROUP BY a.group_set
HAVING requests > 0
ORDER BY requests DESC, a.group_set;
SELECT toInt64(toUnixTimestamp(min(day))), toInt64(toUnixTimestamp(max(day))), sum(requests),
    (SELECT toInt64(toUnixTimestamp(min(minute))) FROM `retrial`.events WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32})
FROM (
    SELECT toDateTime(day, 'UTC') AS day, sum(count) AS requests
    FROM `retrial`.access_usage
    WHERE cluster = {cluster:String} AND implied = '' AND access IN (SELECT access FROM `retrial`.accesses WHERE cluster = {cluster:String} AND group_set = {nobody:UInt64})
        AND toUInt16(access_usage.day) BETWEEN {from_day:UInt16} AND {to_day:UInt16}
    GROUP BY day HAVING requests > 0
);
SELECT a.verb, a.api_group, a.resource, a.subresource, a.namespace, a.name, a.path, u.implied, u.covered,
    sum(u.count) AS requests, toInt64(sumIf(u.count, recorded = 'allow')), toInt64(sumIf(u.count, recorded = 'forbid')),
    toUnixTimestamp64Micro(min(first_seen)), toUnixTimestamp64Micro(max(last_seen))
FROM `retrial`.access_usage AS u
INNER JOIN (SELECT access, any(verb) AS verb, any(api_group) AS api_group, any(resource) AS resource, any(subresource) AS subresource, any(namespace) AS namespace, any(name) AS name, any(path) AS path
    FROM `retrial`.accesses WHERE cluster = {cluster:String} AND subject = {subject:String} GROUP BY access) AS a ON a.access = u.access
WHERE u.cluster = {cluster:String} AND toUInt16(u.day) BETWEEN {from_day:UInt16} AND {to_day:UInt16} AND u.access IN (SELECT access FROM `retrial`.accesses WHERE cluster = {cluster:String} AND subject = {subject:String})
GROUP BY a.verb, a.api_group, a.resource, a.subresource, a.namespace, a.name, a.path, u.implied, u.covered
HAVING requests > 0
ORDER BY requests DESC, a.api_group, a.resource, a.subresource, a.namespace, a.name, a.path, a.verb, u.implied, u.covered
LIMIT {limit:UInt32};
SELECT granted, toInt64(sumIf(count, implied = '')) AS requests, toInt64(sumIf(count, implied != '')) AS checks, toUnixTimestamp64Micro(max(last_seen))
FROM `retrial`.grant_usage
WHERE cluster = {cluster:String} AND toUInt16(day) BETWEEN {from_day:UInt16} AND {to_day:UInt16} AND access IN (SELECT access FROM `retrial`.accesses WHERE cluster = {cluster:String} AND subject = {subject:String})
GROUP BY granted
HAVING requests + checks > 0
ORDER BY requests DESC, checks DESC, granted;

-- Events by conditions
SELECT count(), toInt64(toUnixTimestamp(max(minute))), toInt64(toUnixTimestamp(min(minute)))
FROM `retrial`.volume WHERE cluster = {cluster:String} AND minute >= {from:UInt32} AND minute <= {to:UInt32};
SELECT toUInt32(minute), request_key, toUnixTimestamp64Micro(request_received), stage FROM `retrial`.events PREWHERE cluster = {cluster:String} AND minute >= {begin:UInt32} AND minute <= {end:UInt32} AND toUnixTimestamp64Micro(request_received) >= {from:Int64} AND toUnixTimestamp64Micro(request_received) < {to:Int64} AND outcome != '' AND (startsWith(verb, {w3:String}) OR verb = {w4:String}) AND object_resource = {w5:String} AND object_namespace = {w6:String} AND NOT code IN {w7:Array(Int32)} AND object_name = {w8:String} AND (startsWith(audit_text, {w9:String}) OR audit_text = '' AND UUIDToNum(audit_uuid) BETWEEN toFixedString(unhex({w10:String}), 16) AND toFixedString(unhex({w11:String}), 16)) AND hasAny(arrayDistinct(arrayMap(h -> substringIndex(h, '/', 1), hits)), {w12:Array(LowCardinality(String))}) AND hasAny(if(bitAnd(shape, 1) = 1, impersonated_groups, user_groups), {w13:Array(LowCardinality(String))}) AND startsWith(substringIndex(request_uri, '?', 1), {w14:String}) AND cityHash64(object_resource, object_namespace, object_name) = cityHash64({of_resource:String}, {of_namespace:String}, {of_name:String}) WHERE sign = 1 ORDER BY request_received DESC, concat(lower(hex(request_key)), stage) DESC LIMIT {limit:UInt32};

-- Facets
SELECT toInt64(toUnixTimestamp(minIf(minute, later < {most:Int64}))), toInt64(toUnixTimestamp(min(minute))), toInt64(toUnixTimestamp(max(minute))), count()
FROM (
    SELECT minute, sum(count) AS c, sum(c) OVER (ORDER BY minute DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS later
    FROM `retrial`.volume
    WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32}
    GROUP BY minute
    HAVING c > 0
);
SELECT toUInt64(lacks), value, sum(n) AS requests
FROM (
    SELECT lacks, n, arrayJoin(CAST(multiIf(lacks = 1, if(empty(arrayDistinct(v0) AS list_group), [''], list_group), lacks = 2, [toString(v1)], ['']), 'Array(String)')) AS value
    FROM (
        SELECT grouping(v0, v1) AS lacks, v0, v1, sum(toInt64(sign)) AS n
        FROM (SELECT if(bitAnd(shape, 1) = 1, impersonated_groups, user_groups) AS v0, verb AS v1, sign FROM `retrial`.events PREWHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND outcome != '')
        GROUP BY GROUPING SETS ((v0), (v1), ())
        HAVING n != 0
    )
)
GROUP BY lacks, value
HAVING requests > 0
ORDER BY lacks, requests DESC, value
LIMIT {limit:UInt32} BY lacks
SETTINGS max_bytes_before_external_group_by = 268435456;

-- Histogram
SELECT toInt64(toUnixTimestamp(minIf(minute, later < {most:Int64}))), toInt64(toUnixTimestamp(min(minute))), toInt64(toUnixTimestamp(max(minute))), count()
FROM (
    SELECT minute, sum(count) AS c, sum(c) OVER (ORDER BY minute DESC ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS later
    FROM `retrial`.volume
    WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32}
    GROUP BY minute
    HAVING c > 0
);
SELECT toString(value), requests FROM (SELECT toString(code) AS value, sum(toInt64(sign)) AS requests FROM `retrial`.events PREWHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND outcome != '' GROUP BY value HAVING requests > 0 ORDER BY requests DESC, value LIMIT {limit:UInt32})
SETTINGS max_bytes_before_external_group_by = 268435456;
SELECT intDiv(toUnixTimestamp64Micro(request_received) - {begin:Int64}, {step:Int64}) AS step, transform(toString(code), {values:Array(String)}, {places:Array(UInt16)}, toUInt16(0)) AS place, sum(toInt64(sign)) AS requests FROM `retrial`.events PREWHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND outcome != '' GROUP BY step, place HAVING requests != 0;

-- Completions of subjects
SELECT value, weight FROM (SELECT toString(subject) AS value, sum(count) AS weight FROM `retrial`.activity WHERE cluster = {cluster:String} GROUP BY value)
WHERE weight > 0 AND value NOT IN ('', {other:String}) AND position(lowerUTF8(value), lowerUTF8({text:String})) > 0
ORDER BY startsWith(lowerUTF8(value), lowerUTF8({text:String})) DESC, weight DESC, value LIMIT {limit:UInt32};

-- Completions of objects' names
SELECT value, weight FROM (SELECT name AS value, sum(count) AS weight FROM `retrial`.objects WHERE cluster = {cluster:String} AND resource = {resource:String} AND ({namespace:String} = '' OR namespace = {namespace:String}) GROUP BY value)
WHERE weight > 0 AND value NOT IN ('', {other:String}) AND position(lowerUTF8(value), lowerUTF8({text:String})) > 0
ORDER BY startsWith(lowerUTF8(value), lowerUTF8({text:String})) DESC, weight DESC, value LIMIT {limit:UInt32};

-- FirstUses
SELECT subject, verb, api_group, resource, subresource, namespace, name, path, sum(n) AS requests, toInt64(sum(yes)), toInt64(sum(no)), toUnixTimestamp64Micro(min(begin)) AS first, toUnixTimestamp64Micro(max(until))
FROM (SELECT access, sum(count) AS n, sumIf(count, recorded = 'allow') AS yes, sumIf(count, recorded = 'forbid') AS no, min(first_seen) AS begin, max(last_seen) AS until
    FROM `retrial`.access_usage WHERE cluster = {cluster:String} AND implied = '' GROUP BY access HAVING n > 0) AS used
LEFT SEMI JOIN (
    SELECT access, subject, verb, api_group, resource, subresource, namespace, name, path FROM `retrial`.accesses
    PREWHERE cluster = {cluster:String} AND access IN (SELECT access FROM `retrial`.access_usage WHERE cluster = {cluster:String} AND implied = '' GROUP BY access HAVING sum(count) > 0 AND toUnixTimestamp64Micro(min(first_seen)) >= {from:Int64} AND toUnixTimestamp64Micro(min(first_seen)) < {to:Int64})
    WHERE path != '(other)' AND name != '(other)' AND (NOT startsWith(subject, 'system:') OR subject = 'system:anonymous' OR startsWith(subject, 'system:serviceaccount:') AND NOT startsWith(subject, 'system:serviceaccount:kube-')) AND (subject IN {subjects:Array(String)} OR group_set IN (SELECT group_set FROM `retrial`.group_sets WHERE hasAny(groups, {groups:Array(String)})))
    UNION ALL
    SELECT access, subject, verb, api_group, resource, subresource, namespace, name, path FROM `retrial`.accesses
    PREWHERE cluster = {cluster:String} AND subject IN (SELECT subject FROM `retrial`.accesses WHERE cluster = {cluster:String} GROUP BY subject HAVING min(group_set) != max(group_set))
    WHERE path != '(other)' AND name != '(other)' AND (subject, verb, api_group, resource, subresource, namespace, name, path) IN (SELECT subject, verb, api_group, resource, subresource, namespace, name, path FROM `retrial`.accesses
        PREWHERE cluster = {cluster:String} AND subject IN (SELECT subject FROM `retrial`.accesses WHERE cluster = {cluster:String} GROUP BY subject HAVING min(group_set) != max(group_set))
        WHERE access IN (SELECT access FROM `retrial`.access_usage WHERE cluster = {cluster:String} AND implied = '' AND access IN (SELECT access FROM `retrial`.accesses WHERE cluster = {cluster:String} AND subject IN (SELECT subject FROM `retrial`.accesses WHERE cluster = {cluster:String} GROUP BY subject HAVING min(group_set) != max(group_set))) GROUP BY access HAVING sum(count) > 0 AND toUnixTimestamp64Micro(min(first_seen)) >= {from:Int64} AND toUnixTimestamp64Micro(min(first_seen)) < {to:Int64}) AND (NOT startsWith(subject, 'system:') OR subject = 'system:anonymous' OR startsWith(subject, 'system:serviceaccount:') AND NOT startsWith(subject, 'system:serviceaccount:kube-')) AND (subject IN {subjects:Array(String)} OR group_set IN (SELECT group_set FROM `retrial`.group_sets WHERE hasAny(groups, {groups:Array(String)}))))) AS named USING (access)
GROUP BY subject, verb, api_group, resource, subresource, namespace, name, path
HAVING first >= {from:Int64} AND first < {to:Int64}
ORDER BY first, subject, verb, api_group, resource, subresource, namespace, name, path LIMIT {limit:UInt32};

-- FirstGrants
SELECT argMin(text, begin), sum(n) AS requests, toUnixTimestamp64Micro(min(begin)) AS first, toUnixTimestamp64Micro(max(until))
FROM (SELECT any(granted) AS text, sum(count) AS n, min(first_seen) AS begin, max(last_seen) AS until
    FROM `retrial`.grant_usage WHERE cluster = {cluster:String} GROUP BY granted HAVING n > 0)
WHERE {own:UInt8} OR NOT startsWith(JSONExtractString(text, 2), 'kube-') AND NOT startsWith(JSONExtractString(text, 3), 'system:')
GROUP BY arrayMap(i -> JSONExtractString(text, i), range(1, 9))
HAVING first >= {from:Int64} AND first < {to:Int64}
ORDER BY first, arrayMap(i -> JSONExtractString(text, i), range(1, 9)) LIMIT {limit:UInt32};

-- Unnamed
SELECT sum(count) FROM `retrial`.access_usage
WHERE cluster = {cluster:String} AND implied = '' AND toUInt16(day) BETWEEN {from_day:UInt16} AND {to_day:UInt16}
    AND access IN (SELECT access FROM `retrial`.accesses WHERE cluster = {cluster:String} AND (path = '(other)' OR name = '(other)'));

-- GrantedUses
SELECT granted, verb, api_group, resource, subresource, sum(within) AS requests, sum(n) AS ever,
    toUnixTimestamp64Micro(max(until)), arraySort(groupUniqArray({users:UInt32})(toString(subject)))
FROM (SELECT granted, access, sumIf(count, toUInt16(day) BETWEEN {from_day:UInt16} AND {to_day:UInt16}) AS within, sum(count) AS n, max(last_seen) AS until
    FROM `retrial`.grant_usage
    WHERE cluster = {cluster:String} AND granted IN (
        SELECT text FROM (SELECT any(granted) AS text FROM `retrial`.grant_usage WHERE cluster = {cluster:String} GROUP BY granted)
        WHERE (JSONExtractString(text, 1), JSONExtractString(text, 2), JSONExtractString(text, 3)) IN (
            SELECT tupleElement(b, 1), tupleElement(b, 2), tupleElement(b, 3) FROM (SELECT arrayJoin(arrayZip({kinds:Array(String)}, {namespaces:Array(String)}, {names:Array(String)})) AS b)))
    GROUP BY granted, access HAVING n > 0) AS used
LEFT SEMI JOIN (SELECT access, subject, verb, api_group, resource, subresource FROM `retrial`.accesses WHERE cluster = {cluster:String}) AS named USING (access)
GROUP BY granted, verb, api_group, resource, subresource
ORDER BY granted, verb, api_group, resource, subresource;

-- Refusals
SELECT subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace, path, recorded, replayed, outcome, class, code, plugin, plugin_name, refused_check,
    toInt64(count()) AS requests, toUnixTimestamp64Micro(min(request_received)), toUnixTimestamp64Micro(max(request_received)),
    (argMin((audit_id, toString(user_name), groups, attr_name, missing, attr_path),
        (request_received, request_key)) AS one).1, one.2, one.3, one.4, one.5, one.6, NOT (NOT startsWith(subject, 'system:') OR subject = 'system:anonymous' OR startsWith(subject, 'system:serviceaccount:') AND NOT startsWith(subject, 'system:serviceaccount:kube-')) AS own,
    sumIf(requests, NOT own) OVER (), countIf(NOT own) OVER (), sumIf(requests, own) OVER (), countIf(own) OVER ()
FROM (
    SELECT subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace, path, recorded, replayed, outcome, class, code, plugin, plugin_name, refused_check, request_received, request_key, audit_id, user_name, groups, attr_name, missing, attr_path FROM `retrial`.refused WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND toUnixTimestamp64Micro(request_received) >= {from:Int64} AND toUnixTimestamp64Micro(request_received) < {to:Int64} AND outcome != '' AND (subject IN {subjects:Array(String)} OR hasAny(groups, {groups:Array(LowCardinality(String))})) AND request_key NOT IN (SELECT request_key FROM `retrial`.refused WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND count != 1)
    UNION ALL
    SELECT subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace, path, recorded, replayed, outcome, class, code, plugin, plugin_name, refused_check, request_received, request_key, audit_id, user_name, groups, attr_name, missing, attr_path FROM `retrial`.refused WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND toUnixTimestamp64Micro(request_received) >= {from:Int64} AND toUnixTimestamp64Micro(request_received) < {to:Int64} AND outcome != '' AND (subject IN {subjects:Array(String)} OR hasAny(groups, {groups:Array(LowCardinality(String))})) AND request_key IN (SELECT request_key FROM `retrial`.refused WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND count != 1)
    GROUP BY subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace, path, recorded, replayed, outcome, class, code, plugin, plugin_name, refused_check, request_received, request_key, audit_id, user_name, groups, attr_name, missing, attr_path HAVING sum(count) > 0
)
GROUP BY subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace, path, recorded, replayed, outcome, class, code, plugin, plugin_name, refused_check
ORDER BY {own:UInt8} = 0 AND own, requests DESC, subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace, path, recorded, replayed, outcome, class, code, plugin, plugin_name, refused_check LIMIT {limit:UInt32}
SETTINGS max_bytes_before_external_group_by = 268435456;

-- PolicyWrites
SELECT count(), toInt64(toUnixTimestamp(max(minute))), toInt64(toUnixTimestamp(min(minute)))
FROM `retrial`.volume WHERE cluster = {cluster:String} AND minute >= {from:UInt32} AND minute <= {to:UInt32};
SELECT toUInt32(minute), request_key, toUnixTimestamp64Micro(request_received), stage FROM `retrial`.events PREWHERE cluster = {cluster:String} AND minute >= {begin:UInt32} AND minute <= {end:UInt32} AND toUnixTimestamp64Micro(request_received) >= {from:Int64} AND toUnixTimestamp64Micro(request_received) < {to:Int64} AND (object_resource IN ('roles', 'clusterroles', 'rolebindings', 'clusterrolebindings') AND verb IN ('create', 'update', 'patch', 'delete', 'deletecollection') AND object_api_group = 'rbac.authorization.k8s.io' AND stage = 'ResponseComplete' AND (code < 300 OR code >= 500)) WHERE sign = 1 ORDER BY request_received DESC, concat(lower(hex(request_key)), stage) DESC LIMIT {limit:UInt32};
SELECT cluster, request_key, sign, audit_id, stage, verb, user_name, impersonated_name, object_resource, object_namespace, object_name, object_api_group, object_subresource, code, toUnixTimestamp64Micro(request_received), stage_delay, shape FROM `retrial`.events FINAL PREWHERE cluster = {cluster:String} AND minute IN (SELECT arrayJoin({minutes:Array(UInt32)})) AND request_key IN (WITH unhex('476e6d414d8fdfba851fc8ea73a6971d') AS k SELECT toFixedString(arrayJoin(arrayMap(i -> substring(k, i * 16 + 1, 16), range(1))), 16)) AND toUnixTimestamp64Micro(request_received) >= {from:Int64} AND toUnixTimestamp64Micro(request_received) < {to:Int64} AND (object_resource IN ('roles', 'clusterroles', 'rolebindings', 'clusterrolebindings') AND verb IN ('create', 'update', 'patch', 'delete', 'deletecollection') AND object_api_group = 'rbac.authorization.k8s.io' AND stage = 'ResponseComplete' AND (code < 300 OR code >= 500)) WHERE sign = 1 ORDER BY request_received DESC, concat(lower(hex(request_key)), stage) DESC LIMIT {limit:UInt32};

-- AuditIDs
SELECT DISTINCT audit_id FROM `retrial`.events WHERE (startsWith(audit_text, {w2:String}) OR audit_text = '' AND UUIDToNum(audit_uuid) BETWEEN toFixedString(unhex({w3:String}), 16) AND toFixedString(unhex({w4:String}), 16)) AND cluster = {cluster:String} ORDER BY audit_id LIMIT {limit:UInt32};

-- NearSubjects
SELECT subject, if(length(subject) <= 128 AND length({name:String}) <= 128
    AND abs(toInt64(length(subject)) - toInt64(length({name:String}))) <= {far:UInt8},
    damerauLevenshteinDistance(lower(subject), lower({name:String})), 255) AS distance
FROM (SELECT DISTINCT toString(subject) AS subject FROM `retrial`.accesses
    WHERE cluster = {cluster:String} AND access IN (SELECT access FROM `retrial`.access_usage WHERE cluster = {cluster:String}))
WHERE distance <= {far:UInt8} OR positionCaseInsensitive(subject, {name:String}) > 0
ORDER BY least(distance, {far:UInt8} + 1), subject
LIMIT {limit:UInt32};

-- Recording
SELECT outcome, class, sum(toInt64(sign)) AS requests,
    toInt64(sumIf(toInt64(sign), (has(annotations.keys, 'audit.k8s.io/truncated') OR has(annotations.keys, 'retrial.io/stripped-bytes')))),
    min(toUnixTimestamp64Micro(request_received)), max(toUnixTimestamp64Micro(request_received))
FROM `retrial`.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND outcome != ''
GROUP BY outcome, class
HAVING requests > 0
ORDER BY requests DESC, outcome, class;
SELECT (SELECT sum(count) FROM `retrial`.volume WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND outcome != ''),
    (SELECT toInt64(count()) FROM `retrial`.dead_letters FINAL WHERE cluster = {cluster:String});

-- History of one subject
SELECT DISTINCT intDiv(toUInt32(minute), 86400) AS day FROM `retrial`.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} ORDER BY day;
SELECT outcome, class, recorded, replayed, authorizer, startsWith(recorded_reason, 'RBAC: allowed by ') AS by_rbac,
    user_name, user_groups, bitAnd(shape, 1) AS acting, impersonated_name, impersonated_groups, impersonated_uid,
    mapKeys(impersonated_extra) AS extra_keys, mapValues(impersonated_extra) AS extra_values, impersonation_constraint,
    impersonation, notEmpty(impersonation_grants) AS granted, outcome IN ('match', 'ambiguous') AS certain,
    attr_is_resource, attr_verb, if(certain, attr_api_group, '') AS api_group, if(certain, attr_resource, '') AS res,
    if(certain, attr_subresource, '') AS sub, if(certain, attr_namespace, '') AS ns, if(certain, attr_name, '') AS name, if(certain, attr_path, '') AS path,
    if(certain, implied, []) AS checks, if(certain, implied_grants, []) AS check_grants,
    if((attr_api_group = 'rbac.authorization.k8s.io' AND attr_is_resource = 1 AND attr_verb IN ('create', 'update', 'patch') AND recorded = 'allow' AND outcome IN ('match', 'ambiguous')) OR attr_is_resource = 1 AND code IN (201, 403) AND (attr_verb IN ('patch', 'update') OR attr_resource = 'pods'), code, 0) AS answer,
    any(recorded_reason), any(impersonation_grants), sum(toInt64(sign)) AS requests,
    min(toUnixTimestamp64Micro(request_received)), max(toUnixTimestamp64Micro(request_received))
FROM `retrial`.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND outcome != '' AND NOT (attr_api_group = 'certificates.k8s.io' AND attr_is_resource = 1 AND attr_verb IN ('create', 'update', 'patch') AND recorded = 'allow' AND outcome IN ('match', 'ambiguous')) AND (subject IN {subjects:Array(String)} OR user_name IN {subjects:Array(String)})
GROUP BY ALL
HAVING requests > 0
SETTINGS max_bytes_before_external_group_by = 268435456;
SELECT outcome, class, recorded, replayed, authorizer, startsWith(recorded_reason, 'RBAC: allowed by ') AS by_rbac,
    user_name, user_groups, bitAnd(shape, 1) AS acting, impersonated_name, impersonated_groups, impersonated_uid,
    mapKeys(impersonated_extra) AS extra_keys, mapValues(impersonated_extra) AS extra_values, impersonation_constraint,
    impersonation, notEmpty(impersonation_grants) AS granted, outcome IN ('match', 'ambiguous') AS certain,
    attr_is_resource, attr_verb, if(certain, attr_api_group, '') AS api_group, if(certain, attr_resource, '') AS res,
    if(certain, attr_subresource, '') AS sub, if(certain, attr_namespace, '') AS ns, if(certain, attr_name, '') AS name, if(certain, attr_path, '') AS path,
    if(certain, implied, []) AS checks, if(certain, implied_grants, []) AS check_grants,
    code AS answer, request_key, stage, stage_delay, content, any(response_status), any(request_object), any(response_object),
    any(recorded_reason), any(impersonation_grants), sum(toInt64(sign)) AS requests,
    min(toUnixTimestamp64Micro(request_received)), max(toUnixTimestamp64Micro(request_received))
FROM `retrial`.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND outcome != '' AND (attr_api_group = 'certificates.k8s.io' AND attr_is_resource = 1 AND attr_verb IN ('create', 'update', 'patch') AND recorded = 'allow' AND outcome IN ('match', 'ambiguous')) AND (subject IN {subjects:Array(String)} OR user_name IN {subjects:Array(String)})
GROUP BY ALL
HAVING requests > 0
SETTINGS max_bytes_before_external_group_by = 268435456;

-- Counted
SELECT outcome, class, sum(count) AS requests
FROM `retrial`.volume WHERE cluster = {cluster:String} AND outcome != ''
GROUP BY outcome, class HAVING requests > 0
ORDER BY requests DESC, outcome, class;
SELECT
    (SELECT toUnixTimestamp64Micro(min(first_seen)) FROM `retrial`.access_usage WHERE cluster = {cluster:String} AND implied = ''),
    (SELECT toUnixTimestamp64Micro(max(last_seen)) FROM `retrial`.access_usage WHERE cluster = {cluster:String} AND implied = ''),
    (SELECT toInt64(min(minute)) FROM `retrial`.events WHERE cluster = {cluster:String}),
    (SELECT toInt64(sumIf(toInt64(sign), outcome != '')) FROM `retrial`.events WHERE cluster = {cluster:String} AND (has(annotations.keys, 'audit.k8s.io/truncated') OR has(annotations.keys, 'retrial.io/stripped-bytes'))),
    (SELECT toInt64(count()) FROM `retrial`.dead_letters FINAL WHERE cluster = {cluster:String});

-- Uses of one subject
SELECT group_set, any(groups) FROM `retrial`.group_sets
WHERE group_set IN (SELECT group_set FROM `retrial`.accesses WHERE cluster = {cluster:String} AND subject IN {subjects:Array(String)}) GROUP BY group_set;
SELECT subject, group_set, verb, api_group, resource, subresource, namespace, name, path,
    implied, recorded, replayed, outcome, class, covered, granted, n, first, last, days
FROM (
    SELECT access, implied, recorded, replayed, outcome, class, covered, sum(count) AS n,
        toUnixTimestamp64Micro(min(first_seen)) AS first, toUnixTimestamp64Micro(max(last_seen)) AS last,
        groupUniqArrayIf(toUInt16(day), count > 0) AS days,
        (access, implied) IN (SELECT access, implied FROM `retrial`.grant_usage WHERE cluster = {cluster:String} AND access IN (SELECT access FROM `retrial`.accesses WHERE cluster = {cluster:String} AND subject IN {subjects:Array(String)})
            GROUP BY access, implied HAVING sum(count) > 0) AS granted
    FROM `retrial`.access_usage WHERE cluster = {cluster:String} AND access IN (SELECT access FROM `retrial`.accesses WHERE cluster = {cluster:String} AND subject IN {subjects:Array(String)})
    GROUP BY access, implied, recorded, replayed, outcome, class, covered HAVING n > 0) AS used
INNER JOIN (
    SELECT access, subject, group_set, verb, api_group, resource, subresource, namespace, name, path
    FROM `retrial`.accesses WHERE cluster = {cluster:String} AND subject IN {subjects:Array(String)} LIMIT 1 BY access) AS named USING (access);

-- Untold
SELECT outcome, class, recorded, replayed, authorizer, startsWith(recorded_reason, 'RBAC: allowed by ') AS by_rbac,
    user_name, user_groups, bitAnd(shape, 1) AS acting, impersonated_name, impersonated_groups, impersonated_uid,
    mapKeys(impersonated_extra) AS extra_keys, mapValues(impersonated_extra) AS extra_values, impersonation_constraint,
    impersonation, notEmpty(impersonation_grants) AS granted, outcome IN ('match', 'ambiguous') AS certain,
    attr_is_resource, attr_verb, if(certain, attr_api_group, '') AS api_group, if(certain, attr_resource, '') AS res,
    if(certain, attr_subresource, '') AS sub, if(certain, attr_namespace, '') AS ns, if(certain, attr_name, '') AS name, if(certain, attr_path, '') AS path,
    if(certain, implied, []) AS checks, if(certain, implied_grants, []) AS check_grants,
    if((attr_api_group = 'rbac.authorization.k8s.io' AND attr_is_resource = 1 AND attr_verb IN ('create', 'update', 'patch') AND recorded = 'allow' AND outcome IN ('match', 'ambiguous')) OR attr_is_resource = 1 AND code IN (201, 403) AND (attr_verb IN ('patch', 'update') OR attr_resource = 'pods'), code, 0) AS answer,
    any(recorded_reason), any(impersonation_grants), sum(toInt64(sign)) AS requests,
    min(toUnixTimestamp64Micro(request_received)), max(toUnixTimestamp64Micro(request_received))
FROM `retrial`.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND outcome != '' AND bitAnd(shape, 1) = 1 AND recorded = 'forbid' AND impersonation = 'allow' AND outcome IN ('match', 'ambiguous') AND minute IN (SELECT minute FROM `retrial`.refused WHERE cluster = {cluster:String} AND recorded = 'forbid' AND user_name != subject AND user_name IN {subjects:Array(String)}) AND user_name IN {subjects:Array(String)}
GROUP BY ALL
HAVING requests > 0
SETTINGS max_bytes_before_external_group_by = 268435456;
SELECT outcome, class, recorded, replayed, authorizer, startsWith(recorded_reason, 'RBAC: allowed by ') AS by_rbac,
    user_name, user_groups, bitAnd(shape, 1) AS acting, impersonated_name, impersonated_groups, impersonated_uid,
    mapKeys(impersonated_extra) AS extra_keys, mapValues(impersonated_extra) AS extra_values, impersonation_constraint,
    impersonation, notEmpty(impersonation_grants) AS granted, outcome IN ('match', 'ambiguous') AS certain,
    attr_is_resource, attr_verb, if(certain, attr_api_group, '') AS api_group, if(certain, attr_resource, '') AS res,
    if(certain, attr_subresource, '') AS sub, if(certain, attr_namespace, '') AS ns, if(certain, attr_name, '') AS name, if(certain, attr_path, '') AS path,
    if(certain, implied, []) AS checks, if(certain, implied_grants, []) AS check_grants,
    if((attr_api_group = 'rbac.authorization.k8s.io' AND attr_is_resource = 1 AND attr_verb IN ('create', 'update', 'patch') AND recorded = 'allow' AND outcome IN ('match', 'ambiguous')) OR attr_is_resource = 1 AND code IN (201, 403) AND (attr_verb IN ('patch', 'update') OR attr_resource = 'pods'), code, 0) AS answer,
    any(recorded_reason), any(impersonation_grants), sum(toInt64(sign)) AS requests,
    min(toUnixTimestamp64Micro(request_received)), max(toUnixTimestamp64Micro(request_received))
FROM `retrial`.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND outcome != '' AND object_resource IN ('roles', 'clusterroles', 'rolebindings', 'clusterrolebindings') AND (attr_api_group = 'rbac.authorization.k8s.io' AND attr_is_resource = 1 AND attr_verb IN ('create', 'update', 'patch') AND recorded = 'allow' AND outcome IN ('match', 'ambiguous')) AND subject IN {subjects:Array(String)}
GROUP BY ALL
HAVING requests > 0
SETTINGS max_bytes_before_external_group_by = 268435456;
SELECT outcome, class, recorded, replayed, authorizer, startsWith(recorded_reason, 'RBAC: allowed by ') AS by_rbac,
    user_name, user_groups, bitAnd(shape, 1) AS acting, impersonated_name, impersonated_groups, impersonated_uid,
    mapKeys(impersonated_extra) AS extra_keys, mapValues(impersonated_extra) AS extra_values, impersonation_constraint,
    impersonation, notEmpty(impersonation_grants) AS granted, outcome IN ('match', 'ambiguous') AS certain,
    attr_is_resource, attr_verb, if(certain, attr_api_group, '') AS api_group, if(certain, attr_resource, '') AS res,
    if(certain, attr_subresource, '') AS sub, if(certain, attr_namespace, '') AS ns, if(certain, attr_name, '') AS name, if(certain, attr_path, '') AS path,
    if(certain, implied, []) AS checks, if(certain, implied_grants, []) AS check_grants,
    code AS answer, request_key, stage, stage_delay, content, any(response_status), any(request_object), any(response_object),
    any(recorded_reason), any(impersonation_grants), sum(toInt64(sign)) AS requests,
    min(toUnixTimestamp64Micro(request_received)), max(toUnixTimestamp64Micro(request_received))
FROM `retrial`.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND outcome != '' AND object_resource IN ('certificatesigningrequests', 'clustertrustbundles', 'podcertificaterequests') AND (attr_api_group = 'certificates.k8s.io' AND attr_is_resource = 1 AND attr_verb IN ('create', 'update', 'patch') AND recorded = 'allow' AND outcome IN ('match', 'ambiguous')) AND subject IN {subjects:Array(String)}
GROUP BY ALL
HAVING requests > 0
SETTINGS max_bytes_before_external_group_by = 268435456;

-- Samples
SELECT asked, audit_id FROM (SELECT audit_id, sign, request_received,
        concat(subject, '\0', toString(group_set), '\0\0', attr_verb, '\0', attr_api_group, '\0', attr_resource, '\0',
            attr_subresource, '\0', attr_namespace, '\0', attr_name, '\0', attr_path) AS asked
    FROM `retrial`.events WHERE subject IN {subjects:Array(String)} AND 
    minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND intDiv(toUInt32(minute), 86400) IN {days:Array(UInt32)} AND
    cluster = {cluster:String} AND outcome IN ('match', 'ambiguous'))
WHERE asked IN {asked:Array(String)} AND audit_id != ''
GROUP BY asked, audit_id HAVING sum(toInt64(sign)) > 0
ORDER BY max(request_received) DESC, audit_id LIMIT 3 BY asked;
SELECT asked, audit_id FROM (SELECT audit_id, sign, request_received, arrayJoin(implied) AS i, JSONExtractString(i, 1) AS check, JSONExtractString(i, 20) AS by,
        concat(if(by = '', subject, user_name), '\0', if(by = '', toString(group_set), by), '\0', check, '\0',
            JSONExtractString(i, 5), '\0', JSONExtractString(i, 7), '\0', JSONExtractString(i, 9), '\0', JSONExtractString(i, 10), '\0',
            JSONExtractString(i, 11), '\0', if(startsWith(check, 'signer-'), '', JSONExtractString(i, 12)), '\0',
            JSONExtractString(i, 13)) AS asked
    FROM `retrial`.events WHERE (subject IN {subjects:Array(String)} OR user_name IN {subjects:Array(String)}) AND notEmpty(implied) AND 
    minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND intDiv(toUInt32(minute), 86400) IN {days:Array(UInt32)} AND
    cluster = {cluster:String} AND outcome IN ('match', 'ambiguous'))
WHERE asked IN {asked:Array(String)} AND audit_id != ''
GROUP BY asked, audit_id HAVING sum(toInt64(sign)) > 0
ORDER BY max(request_received) DESC, audit_id LIMIT 3 BY asked;

-- NewestPolicy
SELECT argMax(observation, toUInt64OrZero(resource_version))
FROM `retrial`.policy_objects
WHERE cluster = {cluster:String} AND resource IN {resources:Array(String)} AND deleted = 0 AND JSONHas(observation, 'object')
GROUP BY resource, namespace, name;

-- NewestObject
SELECT argMax(observation, toUInt64OrZero(resource_version))
FROM `retrial`.policy_objects
WHERE cluster = {cluster:String} AND resource = {resource:String} AND namespace = {namespace:String} AND name = {name:String}
    AND deleted = 0 AND JSONHas(observation, 'object')
HAVING count() > 0;

-- Known
SELECT toInt64(minute) FROM `retrial`.events WHERE cluster = {cluster:String} ORDER BY minute DESC LIMIT 1;
SELECT cluster, request_key, stage, toUnixTimestamp64Micro(request_received) AS received, stage_delay,
    epoch, kpart, koffset, content, size, outcome != '' AS judged, row_revision
FROM `retrial`.events
PREWHERE cluster IN {clusters:Array(String)} AND minute IN (SELECT arrayJoin({minutes:Array(UInt32)})) AND request_key IN (WITH unhex('18b997096be048b5c4eee336d004a2574c8d038edd091cfde70591555f3bd20e7277c0d89223bcb0826c06a5e0ceb8d451a8925e3ffe58ef66ececaa20ee4975443709ef052ab64e0f1178ac7cd33216d5cf3977fb649f25604a5cb1c5821235fd1c6b67e5064262dd3931576b36f04a476e6d414d8fdfba851fc8ea73a6971dea406c141b49bba52976a219c01a3ea9a78cd67fa8e60aa8f25f9fa3ee151f338c3042222d1a8924f1cf384a13082ab63276a21df713f5505e2a6053952c5b3890f07524482488ae994e78ca36728af6a6e6e71e3cbe73558c66db243ef01ed36c46314eb242fcf01443e02c38202753a31f580b4667a44a44a90d65a5f8448ff4cb79c261a7af761141a49c7f7456ebaf1a8708a2830bceaa05531fec49928da2e4f903e2f9446a2f6f82096bc1a98951fddae9ed7811b54ad50e01d89fe987') AS k SELECT toFixedString(arrayJoin(arrayMap(i -> substring(k, i * 16 + 1, 16), range(20))), 16))
GROUP BY ALL
HAVING sum(sign) > 0;

-- Standing
SELECT {every column} FROM `retrial`.events FINAL WHERE sign = 1 AND cluster IN {clusters:Array(String)} AND minute IN (SELECT arrayJoin({minutes:Array(UInt32)})) AND request_key IN (WITH unhex('18b997096be048b5c4eee336d004a257') AS k SELECT toFixedString(arrayJoin(arrayMap(i -> substring(k, i * 16 + 1, 16), range(1))), 16));

-- Affected
SELECT {every column} FROM `retrial`.events FINAL PREWHERE cluster = {cluster:String} AND kpart IN {kparts:Array(Int32)} AND outcome != '' AND minute >= {from_minute:UInt32} AND toUnixTimestamp64Micro(request_received) >= {from:Int64} AND minute <= {to_minute:UInt32} AND toUnixTimestamp64Micro(request_received) <= {to:Int64} AND ((subject IN {users:Array(String)} OR user_name IN {users:Array(String)} OR hasAny(user_groups, {groups:Array(LowCardinality(String))}) OR hasAny(impersonated_groups, {groups:Array(LowCardinality(String))})) AND (attr_namespace IN {namespaces:Array(String)} OR impersonated_name != '') OR review != '' AND (JSONExtractString(review, 'user') IN {users:Array(String)} OR hasAny(JSONExtract(review, 'groups', 'Array(String)'), {groups:Array(String)}))) WHERE sign = 1;

-- Spans
SELECT cluster, toUInt32(min(minute)), toUInt32(max(minute)) FROM `retrial`.events WHERE kpart = {kpart:Int32} GROUP BY cluster;

-- LoadPolicy
SELECT cluster, resource, namespace, name, uid, resource_version, deleted, observation,
    toUnixTimestamp64Micro(observed), epoch, kpart, koffset, idx
FROM `retrial`.policy_objects FINAL WHERE cluster IN {clusters:Array(String)} ORDER BY epoch, kpart, koffset, idx
SETTINGS max_threads = 1, max_block_size = 8192, max_bytes_before_external_sort = 134217728;

-- MarkSums
SELECT toInt64(toUnixTimestamp(max(changed))) FROM `retrial`.detections WHERE changed >= {since:UInt32};
SELECT cluster, rule, toInt64(toUnixTimestamp(slot)), sum(count), sum(digest)
FROM `retrial`.detections WHERE (cluster, rule, slot) IN (SELECT cluster, rule, slot FROM `retrial`.detections WHERE changed >= {since:UInt32})
GROUP BY cluster, rule, slot;

-- MarkSums of a share
SELECT toInt64(toUnixTimestamp(max(changed))) FROM `retrial`.detections WHERE cluster IN {clusters:Array(String)} AND changed >= {since:UInt32};
SELECT cluster, rule, toInt64(toUnixTimestamp(slot)), sum(count), sum(digest)
FROM `retrial`.detections WHERE cluster IN {clusters:Array(String)} AND (cluster, rule, slot) IN (SELECT cluster, rule, slot FROM `retrial`.detections WHERE cluster IN {clusters:Array(String)} AND changed >= {since:UInt32})
GROUP BY cluster, rule, slot;

-- MarkedClusters
SELECT DISTINCT cluster FROM `retrial`.detections WHERE toUInt16(ingest_day) >= {day:UInt16};

-- ClustersOf
SELECT cluster, sum(count) AS events, toInt64(toUnixTimestamp(minIf(minute, count > 0))), toInt64(toUnixTimestamp(maxIf(minute, count > 0)))
FROM `retrial`.volume WHERE cluster IN {clusters:Array(String)}
GROUP BY cluster
HAVING events > 0
ORDER BY cluster;

-- Marked
SELECT cluster, request_key, sign, audit_id, stage, request_uri, verb, user_name, impersonated_name, code, toUnixTimestamp64Micro(request_received), stage_delay, shape, outcome, recorded, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace, attr_name, hits, hit_keys FROM `retrial`.events WHERE sign = 1 AND cluster IN {clusters:Array(String)} AND minute >= {from_minute:UInt32} AND minute <= {to_minute:UInt32}
AND (request_key, stage, version) IN (SELECT request_key, stage, version FROM (
SELECT request_key, stage, version, sign, substringIndex(h, '/', 1) AS rule, if(k = 0, xxHash64(audit_id), k) AS key, toUnixTimestamp64Micro(request_received) AS at,
    transform(rule, {rules:Array(String)}, {every:Array(Int64)}, toInt64(1)) AS every, intDiv(at - positiveModulo(at, every), every) AS pane
FROM (SELECT cluster, request_key, stage, version, sign, audit_id, request_received, hits, hit_keys FROM `retrial`.events WHERE cluster IN {clusters:Array(String)} AND minute >= {from_minute:UInt32} AND minute <= {to_minute:UInt32})
ARRAY JOIN hits AS h, hit_keys AS k WHERE at >= {whole0_from:Int64} AND at < {whole0_to:Int64} AND rule IN {whole0:Array(String)} OR at >= {whole1_from:Int64} AND at < {whole1_to:Int64} AND rule IN {whole1:Array(String)} AND cluster IN {whole1_of:Array(String)} OR (at >= {paned0_from:Int64} AND at < {paned0_to:Int64} AND rule IN {paned0:Array(String)} AND cluster IN {paned0_of:Array(String)}) AND (cluster, rule, key, pane) IN (SELECT {clusters:Array(String)}[c], {rules:Array(String)}[r], k, n FROM (SELECT CAST('[1]', 'Array(UInt16)') AS cs, CAST('[2]', 'Array(UInt16)') AS rs, CAST('[7]', 'Array(UInt64)') AS ks, CAST('[8]', 'Array(Int64)') AS ns) ARRAY JOIN cs AS c, rs AS r, ks AS k, ns AS n)
) GROUP BY request_key, stage, version HAVING sum(toInt64(sign)) > 0)
LIMIT 1 BY request_key, stage, version
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

-- MarkedCount
SELECT sum(toInt64(sign)) FROM `retrial`.events WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute <= {to_minute:UInt32} AND arrayExists(h -> h = {rule:String} OR startsWith(h, {rule_slash:String}), hits) AND toUnixTimestamp64Micro(request_received) >= {from:Int64} AND toUnixTimestamp64Micro(request_received) < {to:Int64}
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

-- PaneCounts
SELECT cluster, rule, key, groupArray(pane), groupArray([c0, c1]), groupArray([v0, v1])
FROM
(
    SELECT cluster, rule, key, pane, sum(toInt64(sign) * toInt64(bitTest(mask, 0))) AS c0, groupUniqArrayIf(6)(x0, bitTest(mask, 0) AND x0 != 0) AS v0, sum(toInt64(sign) * toInt64(bitTest(mask, 1))) AS c1, emptyArrayUInt64() AS v1
    FROM (
SELECT cluster, sign, toUInt64OrZero(substringIndex(h, '/', -1)) AS mask, multiIf(rule = {rules:Array(String)}[1], cityHash64(user_name, user_uid), rule = {rules:Array(String)}[2], cityHash64(substringIndex(request_uri, '?', 1)), toUInt64(0)) AS x0, substringIndex(h, '/', 1) AS rule, if(k = 0, xxHash64(audit_id), k) AS key, toUnixTimestamp64Micro(request_received) AS at,
    transform(rule, {rules:Array(String)}, {every:Array(Int64)}, toInt64(1)) AS every, intDiv(at - positiveModulo(at, every), every) AS pane
FROM (SELECT cluster, request_key, stage, version, sign, audit_id, request_received, hits, hit_keys, user_name, user_uid, request_uri FROM `retrial`.events WHERE cluster IN {clusters:Array(String)} AND minute >= {from_minute:UInt32} AND minute <= {to_minute:UInt32})
ARRAY JOIN hits AS h, hit_keys AS k WHERE at >= {whole0_from:Int64} AND at < {whole0_to:Int64} AND rule IN {whole0:Array(String)}
)
    GROUP BY cluster, rule, key, pane HAVING sum(toInt64(sign)) > 0
)
GROUP BY cluster, rule, key HAVING rule = {rules:Array(String)}[1] AND length(groupUniqArrayArray(3)(v0)) >= 3 OR rule = {rules:Array(String)}[2] AND length(groupUniqArrayArray(6)(v0)) >= 6 AND sum(c1) >= 1
SETTINGS max_threads = 1, max_bytes_before_external_group_by = 268435456;

-- FirstSeen
SELECT toUnixTimestamp(slot)
FROM `retrial`.detections
WHERE cluster = {cluster:String} AND rule = {rule:String} AND key = 1 AND toUnixTimestamp(slot) <= {day:UInt32}
GROUP BY slot HAVING sum(count) > 0
ORDER BY slot;
SELECT count() FROM (SELECT key
    FROM (SELECT key, slot, sum(count) AS n FROM `retrial`.detections WHERE cluster = {cluster:String} AND rule = {rule:String} AND key > 1 GROUP BY key, slot HAVING n > 0)
    GROUP BY key HAVING toUnixTimestamp(min(slot)) = {day:UInt32});

-- Folded
SELECT * FROM (SELECT cluster, toString(rule), sum(count) AS n FROM `retrial`.detections
WHERE key = 1 AND toUInt16(toDate(slot)) >= {day:UInt16} GROUP BY cluster, rule HAVING n > 0
UNION ALL
SELECT cluster, '', sum(count) AS n FROM `retrial`.access_usage
WHERE toUInt16(day) >= {day:UInt16} AND implied = '' AND (cluster, access) IN (SELECT cluster, access FROM `retrial`.accesses WHERE group_set = {nobody:UInt64}) GROUP BY cluster HAVING n > 0) ORDER BY 1, 2;

-- Earliest
SELECT toInt64(toUnixTimestamp(min(minute))) FROM (SELECT minute FROM `retrial`.volume WHERE cluster = {cluster:String} AND outcome != '' GROUP BY minute HAVING sum(count) > 0);
SELECT toInt64(min(received)), count() FROM (SELECT toUnixTimestamp64Micro(request_received) AS received FROM `retrial`.events WHERE cluster = {cluster:String} AND minute = {minute:UInt32} AND outcome != '' GROUP BY received HAVING sum(toInt64(sign)) > 0);

-- Findings
SELECT cluster, finding, key, severity, subject, audit_id, toUnixTimestamp64Micro(first_seen), toUnixTimestamp64Micro(last_seen), requests,
    toInt64(toUnixTimestamp(span)), detail, withdrawn, toUnixTimestamp64Micro(updated)
FROM `retrial`.findings FINAL WHERE withdrawn = 0 AND cluster = {cluster:String} AND finding = {rule:String} AND subject = {subject:String} AND toUnixTimestamp64Micro(last_seen) >= {from:Int64} AND toUnixTimestamp64Micro(first_seen) < {to:Int64} AND toUnixTimestamp64Micro(first_seen) <= {at:Int64} AND severity IN {severities:Array(String)} AND (toUnixTimestamp64Micro(first_seen), key) < ({at_first:Int64}, {at_key:String})
ORDER BY first_seen DESC, key DESC LIMIT {limit:UInt32};

-- FindingCounts
SELECT finding, count() FROM `retrial`.findings FINAL WHERE withdrawn = 0 AND cluster = {cluster:String} GROUP BY finding ORDER BY finding;

-- FindingsOf
SELECT cluster, finding, key, severity, subject, audit_id, toUnixTimestamp64Micro(first_seen), toUnixTimestamp64Micro(last_seen), requests,
    toInt64(toUnixTimestamp(span)), detail, withdrawn, toUnixTimestamp64Micro(updated)
FROM `retrial`.findings FINAL WHERE cluster IN {clusters:Array(String)} AND finding IN {rules:Array(String)} AND toUnixTimestamp(span) IN {spans:Array(UInt32)};

-- SpansDone
SELECT cluster, rule, toInt64(toUnixTimestamp(span)), digest, toUnixTimestamp64Micro(updated) FROM `retrial`.detections_done FINAL WHERE cluster IN {clusters:Array(String)};

-- CredentialUses
SELECT credential, user_name, user_agent, if(empty(source_ips), '', source_ips[-1]) AS source,
    sum(toInt64(sign)) AS requests, toInt64(sumIf(toInt64(sign), recorded = 'forbid')),
    min(toUnixTimestamp64Micro(request_received)), max(toUnixTimestamp64Micro(request_received)), (argMin((toUInt32(minute), request_key), (request_received, request_key)) AS one).1, one.2
FROM `retrial`.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND credential IN {credentials:Array(String)}
GROUP BY credential, user_name, user_agent, source
HAVING requests > 0
ORDER BY min(request_received), credential, user_name, user_agent, source
LIMIT {limit:UInt32} BY credential;

-- Credentials
SELECT credential, sum(toInt64(sign)) AS requests, toInt64(sumIf(toInt64(sign), recorded = 'forbid')),
    min(toUnixTimestamp64Micro(request_received)) AS first, max(toUnixTimestamp64Micro(request_received))
FROM `retrial`.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND user_name = {user:String} AND outcome != ''
GROUP BY credential
HAVING requests > 0
ORDER BY first, credential
LIMIT {limit:UInt32};

-- DriftGroups
SELECT apiserver, outcome, class, cause, missing, recorded, recorded_reason, replayed, code, config_version, sum(m) AS requests, uniqExact(subject), min(first), max(last),
    arrayMap(e -> e.1, arraySlice(arraySort(groupArray((first, subject, begin, cityHash64(apiserver, outcome, class, cause, missing, recorded, recorded_reason, replayed, code, config_version, subject)))), 1, {examples:UInt32}) AS some),
    arrayMap(e -> toUInt32(e.3), some), arrayMap(e -> e.4, some)
FROM (
    SELECT apiserver, outcome, class, cause, missing, recorded, recorded_reason, replayed, code, config_version, subject, sum(n) AS m, min(at) AS first, argMin(slot, at) AS begin, max(until) AS last
    FROM (
    SELECT apiserver, outcome, class, cause, missing, recorded, recorded_reason, replayed, code, config_version, subject, slot, sum(count) AS n, toUnixTimestamp64Micro(min(first_seen)) AS at, toUnixTimestamp64Micro(max(last_seen)) AS until
    FROM `retrial`.unmatched
    WHERE cluster = {cluster:String} AND slot >= {from_slot:UInt32} AND slot < {to_slot:UInt32}
    GROUP BY apiserver, outcome, class, cause, missing, recorded, recorded_reason, replayed, code, config_version, subject, slot
    HAVING n > 0
    UNION ALL
    SELECT apiserver, outcome, class, if(outcome = 'indeterminate', '', events.cause) AS cause, arrayDistinct(arrayMap(m -> splitByString(' (path to ', m)[1], events.missing)) AS missing, recorded, recorded_reason, replayed, code, config_version, subject, toStartOfTenMinutes(minute) AS slot, sum(toInt64(sign)) AS n, toUnixTimestamp64Micro(min(request_received)) AS at, toUnixTimestamp64Micro(max(request_received)) AS until
    FROM `retrial`.events AS events
    WHERE cluster = {cluster:String} AND (minute >= {first_minute:UInt32} AND minute < {from_slot:UInt32} OR minute >= {to_slot:UInt32} AND minute <= {last_minute:UInt32}) AND outcome IN ('drift', 'ambiguous', 'indeterminate')
    GROUP BY apiserver, outcome, class, cause, missing, recorded, recorded_reason, replayed, code, config_version, subject, slot
    HAVING n > 0
    )
    GROUP BY apiserver, outcome, class, cause, missing, recorded, recorded_reason, replayed, code, config_version, subject
)
GROUP BY apiserver, outcome, class, cause, missing, recorded, recorded_reason, replayed, code, config_version
ORDER BY outcome, requests DESC, class, cause, missing, recorded_reason, apiserver, code, config_version
LIMIT {limit:UInt32}
SETTINGS max_bytes_before_external_group_by = 268435456;

-- Judged
SELECT sum(count) AS requests, sumIf(count, outcome != 'not_judged') AS judged
FROM `retrial`.volume
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND outcome != ''
    AND ingest_day IN (SELECT ingest_day FROM `retrial`.events GROUP BY ingest_day, source = 'import');

-- DirectRequests
SELECT apiserver, sum(toInt64(sign)) AS requests, uniqExact(user_name), min(toUnixTimestamp64Micro(request_received)), max(toUnixTimestamp64Micro(request_received)),
    argMin(audit_id, (request_received, request_key)), argMin(user_name, (request_received, request_key)), argMin(request_uri, (request_received, request_key))
FROM `retrial`.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND apiserver IN {servers:Array(String)} AND outcome != ''
    AND user_name NOT IN {own:Array(String)} AND NOT (user_name = 'system:anonymous' AND attr_is_resource = 0)
    AND audit_id NOT IN (
        SELECT audit_id FROM `retrial`.events
        WHERE cluster = {cluster:String} AND minute BETWEEN {before:UInt32} AND {after:UInt32} AND apiserver NOT IN {servers:Array(String)} AND code != 403
    )
GROUP BY apiserver
HAVING requests > 0
ORDER BY apiserver;

-- AuditSamples
SELECT apiserver, toUnixTimestamp64Micro(taken), toUnixTimestamp64Micro(earliest), toUnixTimestamp64Micro(latest), toUnixTimestamp64Micro(started),
    events, webhook_errors, buffer_errors, log_errors, rejected
FROM `retrial`.audit_samples FINAL
WHERE cluster = {cluster:String} AND taken >= fromUnixTimestamp64Micro({from:Int64}) AND taken < fromUnixTimestamp64Micro({to:Int64})
ORDER BY apiserver, taken;

-- FromLog
SELECT apiserver, roundDown(stage_us, {cuts:Array(Int64)}) AS cut, sum(toInt64(sign)) AS n, max(arrived)
FROM (
    SELECT apiserver, sign, toUnixTimestamp64Micro(request_received) + stage_delay AS stage_us, toUnixTimestamp64Micro(ingested) AS arrived
    FROM `retrial`.events
    WHERE cluster = {cluster:String} AND ingest_day >= toDate({day:UInt16}) AND source IN ('log', 'import')
)
WHERE stage_us >= {from:Int64} AND stage_us < {to:Int64}
GROUP BY apiserver, cut
HAVING n > 0
ORDER BY apiserver, cut;

-- Received
SELECT apiserver, roundDown(stage_us, {cuts:Array(Int64)}) AS cut, sum(toInt64(sign)) AS n
FROM (
    SELECT apiserver, sign, toUnixTimestamp64Micro(request_received) + stage_delay AS stage_us
    FROM `retrial`.events
    WHERE cluster = {cluster:String} AND ingest_day >= toDate({day:UInt16})
)
WHERE stage_us >= {from:Int64} AND stage_us < {to:Int64}
GROUP BY apiserver, cut
HAVING n != 0
ORDER BY apiserver, cut;

-- ServerVolumes
SELECT apiserver, sum(toInt64(sign)) AS n
FROM `retrial`.events
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32}
GROUP BY apiserver
HAVING n != 0
ORDER BY apiserver;

-- LetterCounts
SELECT toInt64(toUnixTimestamp(toStartOfMinute(received))) AS at, sum(greatest(1, toInt64OrZero(extract(detail, '^([0-9]+) more items ')))) AS n
FROM `retrial`.dead_letters FINAL
WHERE cluster = {cluster:String} AND ingest_day >= toDate({day:UInt16}) AND received >= fromUnixTimestamp64Micro({from:Int64}) AND received < fromUnixTimestamp64Micro({to:Int64})
GROUP BY at
ORDER BY at;

-- Senders
SELECT apiserver, sum(n), toInt64(sumIf(n, source = 'webhook')), toInt64(sumIf(n, source IN ('log', 'import'))),
    toInt64(countIf(source = 'webhook')), toUnixTimestamp64Micro(minIf(ingested, source = 'webhook')), toUnixTimestamp64Micro(maxIf(ingested, source = 'webhook'))
FROM (
    SELECT apiserver, source, ingested, sum(count) AS n
    FROM `retrial`.arrivals
    WHERE cluster = {cluster:String} AND ingest_day >= toDate({day:UInt16}) AND ingested >= fromUnixTimestamp64Micro({from:Int64}) AND ingested < fromUnixTimestamp64Micro({to:Int64})
    GROUP BY apiserver, source, ingested
    HAVING n > 0
)
GROUP BY apiserver
ORDER BY apiserver;

-- Pauses
SELECT apiserver, before, after FROM (
    SELECT apiserver, first AS after, lagInFrame(last, 1, 0) OVER (PARTITION BY apiserver ORDER BY second ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS before
    FROM (
        SELECT apiserver, intDiv(at, 1000000) AS second, min(at) AS first, max(at) AS last
        FROM (
            SELECT apiserver, toInt64(sign) AS n, toUnixTimestamp64Micro(request_received) + stage_delay AS at
            FROM `retrial`.events
            WHERE cluster = {cluster:String} AND ingest_day >= toDate({day:UInt16})
        )
        WHERE at >= {from:Int64} AND at < {to:Int64}
        GROUP BY apiserver, second
        HAVING sum(n) > 0
    )
)
WHERE before > 0
ORDER BY apiserver, after - before DESC, after
LIMIT {limit:UInt32} BY apiserver;

-- Unpaired
SELECT toUInt32(minute), sum(count)
FROM `retrial`.halves
WHERE cluster = {cluster:String} AND minute >= {from_minute:UInt32} AND minute < {to_minute:UInt32}
GROUP BY minute
HAVING sum(digest) != 0
ORDER BY minute;
SELECT apiserver, id, user_name, did, request_uri, received, missing, status FROM (
    SELECT any(apiserver) AS apiserver, any(audit_id) AS id, any(user_name) AS user_name, any(verb) AS did, any(request_uri) AS request_uri,
        toUnixTimestamp64Micro(any(request_received)) AS received, max(code) AS status,
        if(sumIf(toInt64(sign), stage IN ('ResponseComplete', 'Panic')) > 0, 'ResponseStarted', 'ResponseComplete') AS missing,
        sumIf(toInt64(sign), stage IN ('RequestReceived', 'ResponseStarted')) AS begun, sumIf(toInt64(sign), stage IN ('ResponseComplete', 'Panic')) AS ended
    FROM `retrial`.events
    WHERE cluster = {cluster:String} AND minute IN {minutes:Array(UInt32)} AND (request_key IN (
        SELECT request_key FROM `retrial`.events
        WHERE cluster = {cluster:String} AND minute IN {minutes:Array(UInt32)} AND stage IN ('RequestReceived', 'ResponseStarted')
    ) OR verb = 'watch' AND stage = 'ResponseComplete' AND code < 400)
    GROUP BY request_key
    HAVING begun > 0 AND ended <= 0 AND status NOT IN (400, 401) OR begun <= 0 AND ended > 0
)
ORDER BY received, id
LIMIT {limit:UInt32};

-- Totals
SELECT sum(toInt64(sign)), toInt64(sumIf(toInt64(sign), outcome != '')), toInt64(sumIf(sign * toInt64(arrayCount(a -> a != 0, implied_access)), recorded != 'forbid')), sum(sign * (toInt64(length(grants)) + if(recorded != 'forbid', toInt64(arraySum(arrayMap((a, g) -> if(a = 0, 0, length(g)), implied_access, implied_grants))), 0))), toUInt64(sum(sign * reinterpretAsInt64(cityHash64(cluster, request_key, stage, stage_delay, content, version, koffset)))) FROM `retrial`.events;
SELECT toInt64(count()) FROM `retrial`.events FINAL WHERE sign = 1;
SELECT sum(c), toUInt64(sum(reinterpretAsInt64(h) * c)) FROM (SELECT sum(count) AS c, cityHash64(cluster, minute, outcome, class, recorded, replayed, kpart, ingest_day) AS h FROM `retrial`.volume GROUP BY h);
SELECT sum(c), toUInt64(sum(reinterpretAsInt64(h) * c)) FROM (SELECT sum(count) AS c, cityHash64(cluster, slot, subject, user_agent, recorded, outcome, kpart, ingest_day) AS h FROM `retrial`.activity GROUP BY h);
SELECT toInt64(sumIf(c, behind = '')), toInt64(sumIf(c, behind != '')), toUInt64(sum(reinterpretAsInt64(h) * c)) FROM (SELECT sum(count) AS c, implied AS behind, cityHash64(cluster, access, day, recorded, replayed, outcome, class, kpart, ingest_day, implied, covered) AS h FROM `retrial`.access_usage GROUP BY h, behind);
SELECT sum(c), toUInt64(sum(reinterpretAsInt64(h) * c)) FROM (SELECT sum(count) AS c, cityHash64(cluster, granted, access, day, kpart, ingest_day, implied) AS h FROM `retrial`.grant_usage GROUP BY h);
SELECT uniqExact((cluster, access)) FROM `retrial`.accesses;
SELECT uniqExact(group_set) FROM `retrial`.group_sets;
SELECT count() FROM `retrial`.policy_objects FINAL;
SELECT count() FROM `retrial`.dead_letters FINAL;

