package storage

import (
	"context"
	"fmt"
)

// durable makes the embedded engine sync what an insert or a merge has written before it reports success. By default it syncs nothing and
// removes merged parts at once: after a power failure, rows could be missing whose offsets are committed and whose records are deleted. A
// server's settings are its operator's.
func (s *Store) durable(ctx context.Context) error {
	if s.cfg.Transport == nil {
		return nil
	}
	rows, err := s.conn.Query(ctx, "SELECT name FROM system.tables WHERE database = '"+s.cfg.Database+
		"' AND engine LIKE '%MergeTree' AND position(create_table_query, 'fsync_after_insert = 1') = 0")
	if err != nil {
		return fmt.Errorf("make tables durable: %w", err)
	}
	defer rows.Close()
	var tables []string
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return fmt.Errorf("make tables durable: %w", err)
		}
		tables = append(tables, name)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("make tables durable: %w", err)
	}
	for _, t := range tables {
		if err := s.conn.Exec(ctx, "ALTER TABLE "+s.table("`"+t+"`")+
			" MODIFY SETTING fsync_after_insert = 1, fsync_part_directory = 1, min_rows_to_fsync_after_merge = 1"); err != nil {
			return fmt.Errorf("make table %s durable: %w", t, err)
		}
	}
	return nil
}
