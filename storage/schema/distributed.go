package schema

import "fmt"

// sharding says by what the rows of a table are spread over shards: in the order the tables
// were made, views aside. A Kafka partition's rows, its corrections and rollups are all on
// shard kpart % shards (docs/adr/0072); what has no partition is whole where its cluster is.
// A table that is not here cannot be read in the cluster form: a test compares.
var sharding = []struct{ table, key string }{ //nolint:gochecknoglobals // constant table
	{"schema_version", "version"},
	{"events", "kpart"},
	{"accesses", "access"},
	{"group_sets", "group_set"},
	{"access_usage", "kpart"},
	{"grant_usage", "kpart"},
	{"volume", "kpart"},
	{"policy_objects", "cityHash64(cluster)"},
	{"dead_letters", "kpart"},
	{"findings", "cityHash64(cluster)"},
	{"meta", "cityHash64(key)"},
	{"query_log", "cityHash64(question)"},
	{"detections", "kpart"},
	{"detections_done", "cityHash64(cluster)"},
	{"rejudges", "cityHash64(cluster)"},
	{"audit_samples", "cityHash64(cluster)"},
	{"activity", "kpart"},
}

// Distributed is a table over those of all shards: what is read and written in the cluster
// form.
type Distributed struct {
	Table string
	SQL   string
	// Comment of the table, which tells what it was made of.
	Comment string
}

// Over is the statement that makes the database of the tables over all shards.
func (f Form) Over(database string) string {
	return "CREATE DATABASE IF NOT EXISTS " + database + f.OnCluster()
}

// Distributed returns the tables of the cluster form in a database (quoted), over those of the
// form's database. They hold no rows and have the columns their tables had when they were
// made, so that they are made again when migrations were applied: newest is the last one's
// version. The first is the list of migrations itself.
func (f Form) Distributed(database string, newest int) []Distributed {
	out := make([]Distributed, len(sharding))
	for i, s := range sharding {
		comment := fmt.Sprintf("over all shards, columns of schema version %d", newest)
		out[i] = Distributed{Table: s.table, Comment: comment, SQL: fmt.Sprintf("CREATE OR REPLACE TABLE %[1]s.%[2]s%[3]s AS %[4]s.%[2]s\nENGINE = Distributed(`%[5]s`, %[4]s, %[2]s, %[6]s)\nCOMMENT '%[7]s'",
			database, s.table, f.OnCluster(), f.Database, f.ClusterName, s.key, comment)}
	}
	return out
}
