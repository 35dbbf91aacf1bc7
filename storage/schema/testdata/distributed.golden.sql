CREATE DATABASE IF NOT EXISTS `retrial` ON CLUSTER `main`;

CREATE OR REPLACE TABLE `retrial`.schema_version ON CLUSTER `main` AS `retrial_local`.schema_version
ENGINE = Distributed(`main`, `retrial_local`, schema_version, version)
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.events ON CLUSTER `main` AS `retrial_local`.events
ENGINE = Distributed(`main`, `retrial_local`, events, kpart)
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.accesses ON CLUSTER `main` AS `retrial_local`.accesses
ENGINE = Distributed(`main`, `retrial_local`, accesses, access)
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.group_sets ON CLUSTER `main` AS `retrial_local`.group_sets
ENGINE = Distributed(`main`, `retrial_local`, group_sets, group_set)
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.access_usage ON CLUSTER `main` AS `retrial_local`.access_usage
ENGINE = Distributed(`main`, `retrial_local`, access_usage, kpart)
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.grant_usage ON CLUSTER `main` AS `retrial_local`.grant_usage
ENGINE = Distributed(`main`, `retrial_local`, grant_usage, kpart)
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.volume ON CLUSTER `main` AS `retrial_local`.volume
ENGINE = Distributed(`main`, `retrial_local`, volume, kpart)
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.policy_objects ON CLUSTER `main` AS `retrial_local`.policy_objects
ENGINE = Distributed(`main`, `retrial_local`, policy_objects, cityHash64(cluster))
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.dead_letters ON CLUSTER `main` AS `retrial_local`.dead_letters
ENGINE = Distributed(`main`, `retrial_local`, dead_letters, kpart)
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.findings ON CLUSTER `main` AS `retrial_local`.findings
ENGINE = Distributed(`main`, `retrial_local`, findings, cityHash64(cluster))
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.meta ON CLUSTER `main` AS `retrial_local`.meta
ENGINE = Distributed(`main`, `retrial_local`, meta, cityHash64(key))
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.query_log ON CLUSTER `main` AS `retrial_local`.query_log
ENGINE = Distributed(`main`, `retrial_local`, query_log, cityHash64(question))
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.detections ON CLUSTER `main` AS `retrial_local`.detections
ENGINE = Distributed(`main`, `retrial_local`, detections, kpart)
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.detections_done ON CLUSTER `main` AS `retrial_local`.detections_done
ENGINE = Distributed(`main`, `retrial_local`, detections_done, cityHash64(cluster))
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.rejudges ON CLUSTER `main` AS `retrial_local`.rejudges
ENGINE = Distributed(`main`, `retrial_local`, rejudges, cityHash64(cluster))
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.audit_samples ON CLUSTER `main` AS `retrial_local`.audit_samples
ENGINE = Distributed(`main`, `retrial_local`, audit_samples, cityHash64(cluster))
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.activity ON CLUSTER `main` AS `retrial_local`.activity
ENGINE = Distributed(`main`, `retrial_local`, activity, kpart)
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.unmatched ON CLUSTER `main` AS `retrial_local`.unmatched
ENGINE = Distributed(`main`, `retrial_local`, unmatched, kpart)
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.objects ON CLUSTER `main` AS `retrial_local`.objects
ENGINE = Distributed(`main`, `retrial_local`, objects, kpart)
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.arrivals ON CLUSTER `main` AS `retrial_local`.arrivals
ENGINE = Distributed(`main`, `retrial_local`, arrivals, kpart)
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.halves ON CLUSTER `main` AS `retrial_local`.halves
ENGINE = Distributed(`main`, `retrial_local`, halves, kpart)
COMMENT 'over all shards, columns of schema version 1';

CREATE OR REPLACE TABLE `retrial`.refused ON CLUSTER `main` AS `retrial_local`.refused
ENGINE = Distributed(`main`, `retrial_local`, refused, kpart)
COMMENT 'over all shards, columns of schema version 1';

