package storage

import (
	"context"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/statement"
)

// distribute makes the tables over all shards, and remakes them when the tables beneath have changed: all of them, or only the list of
// migrations, which is read first.
func (s *Store) distribute(ctx context.Context, newest int, first bool) error {
	if s.cfg.ClusterName == "" {
		return nil
	}
	form := s.form()
	if err := s.conn.Exec(ctx, form.Over(s.db)); err != nil {
		return fmt.Errorf("make tables over all shards: %w", err)
	}
	has := map[string]string{}
	rows, err := s.conn.Query(statement.Params(ctx, clickhouse.Parameters{"db": statement.Text(s.cfg.Database)}),
		"SELECT name, comment FROM system.tables WHERE database = {db:String}")
	if err != nil {
		return fmt.Errorf("read tables over all shards: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, comment string
		if err := rows.Scan(&name, &comment); err != nil {
			return fmt.Errorf("read tables over all shards: %w", err)
		}
		has[name] = comment
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read tables over all shards: %w", err)
	}
	list := form.Distributed(s.db, newest)
	if first {
		list = list[:1]
	}
	for _, d := range list {
		if has[d.Table] == d.Comment {
			continue
		}
		if err := s.conn.Exec(ctx, d.SQL); err != nil {
			return fmt.Errorf("make table %s over all shards: %w", d.Table, err)
		}
	}
	return nil
}

// codeUnknownIdentifier is the error of a server that does not know a column.
const codeUnknownIdentifier = 47

// checkCluster returns an error if the server does not know the cluster, or if it writes each row to every replica of a shard although
// replicas copy from each other.
func (s *Store) checkCluster(ctx context.Context) error {
	if s.cfg.ClusterName == "" {
		return nil
	}
	var known []string
	var nodes, copying uint64
	p := statement.Params(ctx, clickhouse.Parameters{"cluster": statement.Text(s.cfg.ClusterName)})
	err := s.conn.QueryRow(p, "SELECT groupUniqArray(cluster), countIf(cluster = {cluster:String}), countIf(cluster = {cluster:String} "+
		"AND internal_replication = 0) FROM system.clusters").Scan(&known, &nodes, &copying)
	if code(err) == codeUnknownIdentifier { // the column is newer than the table
		err = s.conn.QueryRow(p,
			"SELECT groupUniqArray(cluster), countIf(cluster = {cluster:String}), toUInt64(0) FROM system.clusters").Scan(&known, &nodes,
			&copying)
	}
	switch {
	case err != nil:
		return fmt.Errorf("read the server's clusters: %w", err)
	case nodes == 0 && len(known) == 0:
		return fmt.Errorf("the server knows no cluster %q, nor any other: its remote_servers name none", s.cfg.ClusterName)
	case nodes == 0:
		return fmt.Errorf("the server knows no cluster %q; it knows %s", s.cfg.ClusterName, strings.Join(known, ", "))
	case copying > 0:
		return fmt.Errorf("the server's cluster %q has shards without internal_replication: set it to true, or rows are stored once for "+
			"each replica that is written to", s.cfg.ClusterName)
	}
	return nil
}

// everywhere returns the rows of a table of all shards that no Distributed one is over.
func (s *Store) everywhere(table string) string {
	if s.cfg.ClusterName == "" {
		return s.local(table)
	}
	return "cluster('" + s.cfg.ClusterName + "', " + s.local(table) + ")"
}

// parts returns the table that lists the parts of the store's tables: in the cluster form, those of one replica of each shard.
func (s *Store) parts() string {
	if s.cfg.ClusterName == "" {
		return "system.parts"
	}
	return "cluster('" + s.cfg.ClusterName + "', system.parts)"
}
