package storage

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/storage/statement"
)

// tuning are settings of tables that save work and change no answer. They are no migration: a
// server that does not know one is used without it. docs/adr/0070 has what each saves.
var tuning = []string{ //nolint:gochecknoglobals // constant table
	// Statistics of every column, made at every insert and merge; sorting keys and skip indexes
	// find what is asked for.
	"auto_statistics_types = ''",
	// What a merge costs hardly depends on how small its parts are: 24 at a time are merged less
	// than half as often as five.
	"min_parts_to_merge_at_once = 24",
}

// tuned are the tables that get parts all the time.
var tuned = []string{"events", "accesses", "group_sets", "access_usage", "grant_usage", "volume", "activity", "detections", "policy_objects"} //nolint:gochecknoglobals // constant table

// codeUnknownSetting is what a server answers that does not know a setting.
const codeUnknownSetting = 115

// tune gives the tables the settings they do not have yet.
func (s *Store) tune(ctx context.Context) error {
	has := map[string]string{}
	rows, err := s.conn.Query(statement.Params(ctx, clickhouse.Parameters{"db": statement.Text(s.localDatabase()), "tables": statement.Texts(tuned)}),
		"SELECT name, engine_full FROM system.tables WHERE database = {db:String} AND name IN {tables:Array(String)}")
	if err != nil {
		return fmt.Errorf("read settings of tables: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var name, engine string
		if err := rows.Scan(&name, &engine); err != nil {
			return fmt.Errorf("read settings of tables: %w", err)
		}
		has[name] = engine
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read settings of tables: %w", err)
	}
	for _, table := range tuned {
		var missing []string
		for _, set := range tuning {
			if !strings.Contains(has[table], set) {
				missing = append(missing, set)
			}
		}
		if len(missing) == 0 {
			continue
		}
		err := s.conn.Exec(ctx, "ALTER TABLE "+s.local(table)+s.form().OnCluster()+" MODIFY SETTING "+strings.Join(missing, ", "))
		var refused *clickhouse.Exception
		if errors.As(err, &refused) && refused.Code == codeUnknownSetting {
			s.cfg.Log.Info("the server does not know settings that would save it work", zap.Strings("settings", missing))
			return nil
		}
		if err != nil {
			return fmt.Errorf("set %s of table %s: %w", strings.Join(missing, ", "), table, err)
		}
	}
	return nil
}
