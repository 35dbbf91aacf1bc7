package storage

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"go.uber.org/zap"

	"github.com/retrial-io/retrial/storage/schema"
)

// migrate creates the database and applies the migrations not yet applied, in order. Every file is idempotent by itself (IF NOT EXISTS), so
// a crash between a file and its record in schema_version repeats the file, harmlessly.
func (s *Store) migrate(ctx context.Context) error {
	form := s.form()
	migrations, err := schema.Migrations(form)
	if err != nil {
		return fmt.Errorf("render schema: %w", err)
	}
	for _, sql := range form.Prepare() {
		if err := s.conn.Exec(ctx, sql); err != nil {
			return fmt.Errorf("prepare schema: %w", err)
		}
	}
	if err := s.distribute(ctx, len(migrations), true); err != nil {
		return err
	}
	// What was applied must not be forgotten: a file cannot be repeated once a later one builds on it.
	if err := s.durable(ctx); err != nil {
		return err
	}
	applied, err := s.applied(ctx)
	if err != nil {
		return err
	}
	if newest := len(migrations); len(applied) > newest {
		return fmt.Errorf("the store's schema is version %d, this build knows %d: use the newer build", len(applied), newest)
	}
	for _, m := range migrations {
		digest := sha256.Sum256([]byte(m.SQL))
		text := hex.EncodeToString(digest[:])
		if was, ok := applied[m.Version]; ok {
			if was != text {
				return fmt.Errorf("migration %04d_%s: applied with other text: the store was made by another build or for another "+
					"cluster name", m.Version, m.Name)
			}
			continue
		}
		if err := s.conn.Exec(ctx, m.SQL); err != nil {
			return fmt.Errorf("migration %04d_%s: %w", m.Version, m.Name, err)
		}
		record := fmt.Sprintf("INSERT INTO %s (version, name, digest) SELECT %d, '%s', '%s'", s.table("schema_version"), m.Version, m.Name,
			text)
		if err := s.conn.Exec(ctx, record); err != nil {
			return fmt.Errorf("record migration %04d_%s: %w", m.Version, m.Name, err)
		}
		s.cfg.Log.Debug("migration applied", zap.Int("version", m.Version), zap.String("name", m.Name))
	}
	if n := len(migrations); n > len(applied) {
		s.cfg.Log.Info("schema migrated", zap.Int("from", len(applied)), zap.Int("to", n))
	}
	if err := s.distribute(ctx, len(migrations), false); err != nil {
		return err
	}
	return s.tune(ctx)
}

// applied returns the digests of the migrations the store has had, by version.
func (s *Store) applied(ctx context.Context) (map[int]string, error) {
	rows, err := s.conn.Query(ctx, "SELECT version, digest FROM "+s.table("schema_version")+" FINAL")
	if err != nil {
		return nil, fmt.Errorf("read schema version: %w", err)
	}
	defer rows.Close()
	out := map[int]string{}
	for rows.Next() {
		var version uint32
		var digest string
		if err := rows.Scan(&version, &digest); err != nil {
			return nil, fmt.Errorf("read schema version: %w", err)
		}
		out[int(version)] = digest
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read schema version: %w", err)
	}
	return out, nil
}
