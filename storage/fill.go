package storage

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/storage/statement"
)

// filledKey begins the entries of meta that name rollups which events stored before them have
// been counted in.
const filledKey = "rollup filled "

// late are the rollups that were added when there were stores already, and that are asked
// without waiting for a recovery.
var late = []string{"activity"} //nolint:gochecknoglobals // constant table

// fill counts the events of before in rollups that are new to the store, once. It goes by
// state as Recover does, and may be interrupted and repeated. Days whose events are gone stay
// unknown to it.
func (s *Store) fill(ctx context.Context) error {
	filled, err := statement.Collect(ctx, s.at(), "SELECT DISTINCT substring(key, length('"+filledKey+"') + 1) FROM %s.meta WHERE startsWith(key, '"+filledKey+"')", nil,
		func(name *string) ([]any, func()) { return []any{name}, nil })
	if err != nil {
		return fmt.Errorf("read filled rollups: %w", err)
	}
	done := map[string]bool{}
	for _, name := range filled {
		done[name] = true
	}
	for _, table := range late {
		if done[table] {
			continue
		}
		partitions, err := statement.Collect(ctx, s.at(), "SELECT DISTINCT kpart FROM %s.events", nil, func(p *int32) ([]any, func()) { return []any{p}, nil })
		if err != nil {
			return fmt.Errorf("fill %s: %w", table, err)
		}
		for _, partition := range partitions {
			s.cfg.Log.Info("counting stored events in a new rollup", zap.String("table", table), zap.Int32("partition", partition))
			if err := s.fillPartition(ctx, table, partition); err != nil {
				return fmt.Errorf("fill %s with partition %d: %w", table, partition, err)
			}
		}
		if err := s.conn.Exec(ctx, fmt.Sprintf("INSERT INTO %s (key, value, updated) SELECT '%s%s', '', now64(6)", s.table("meta"), filledKey, table)); err != nil {
			return fmt.Errorf("note that %s is filled: %w", table, err)
		}
	}
	return nil
}

func (s *Store) fillPartition(ctx context.Context, table string, partition int32) error {
	p, err := s.recoverParams(ctx, partition, nil)
	if err != nil {
		return err
	}
	for _, r := range rollups {
		if r.table == table {
			if _, err := s.mend(ctx, r, p); err != nil {
				return err
			}
		}
	}
	return nil
}
