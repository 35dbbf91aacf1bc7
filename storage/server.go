package storage

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/url"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/storage/statement"
)

// needed are the rights that a server's user needs in the store's database: to make, change and fill its tables, and to drop what is past
// retention.
var needed = []string{ //nolint:gochecknoglobals // constant table
	"SELECT", "INSERT", "ALTER", "CREATE DATABASE", "CREATE TABLE", "CREATE VIEW", "DROP TABLE", "DROP VIEW", "TRUNCATE", "OPTIMIZE",
}

// neededEverywhere are the rights outside any database: to end an insert that still runs for a lost connection.
var neededEverywhere = []string{"KILL QUERY"} //nolint:gochecknoglobals // constant table

// neededOfCluster are the further rights of the cluster form: statements for every node, and tables over those of other nodes.
var neededOfCluster = []string{"CLUSTER", "REMOTE"} //nolint:gochecknoglobals // constant table

// ClickHouse's numbers of the errors that are reworded for the operator.
const (
	codeSyntax       = 62
	codeUnknownUser  = 192
	codeWrongWord    = 193
	codeNoPassword   = 194
	codeReadonly     = 164
	codeAccessDenied = 497
	codeBadLogin     = 516
)

// parseDSN reads a server's address; its errors do not show the password in it.
func parseDSN(dsn string) (*clickhouse.Options, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return nil, errors.New("invalid DSN: want http(s)://user@host:8123, with special characters of the user escaped (%40 for @)")
	}
	if u.Scheme == "https" { // the driver wants it said twice
		args := u.Query()
		args.Set("secure", "true")
		u.RawQuery = args.Encode()
	}
	return clickhouse.ParseDSN(u.String())
}

// checkRights checks that the server's user may do what the store does, so that all missing rights are reported at the start. A server
// before 24.9 cannot be asked: it is trusted, and refuses later.
func (s *Store) checkRights(ctx context.Context) error {
	if s.cfg.Transport != nil {
		return nil
	}
	var missing, grants []string
	type where struct {
		rights []string
		on     string
	}
	list := []where{{needed, s.db + ".*"}, {neededEverywhere, "*.*"}}
	if s.cfg.ClusterName != "" {
		list = append(list, where{needed, s.form().Database + ".*"}, where{neededOfCluster, "*.*"})
	}
	for _, where := range list {
		grants = append(grants, fmt.Sprintf("GRANT %s ON %s TO %s", strings.Join(where.rights, ", "), where.on, s.user))
		for _, right := range where.rights {
			var has uint8
			err := s.conn.QueryRow(ctx, "CHECK GRANT "+right+" ON "+where.on).Scan(&has)
			if code(err) == codeSyntax {
				return nil
			}
			if err != nil {
				return fmt.Errorf("ask for rights: %w", err)
			}
			if has == 0 {
				missing = append(missing, right)
			}
		}
	}
	if len(missing) == 0 {
		return nil
	}
	remedy := "as its administrator run: " + strings.Join(grants, "; ")
	var readonly uint64
	if err := s.conn.QueryRow(ctx, "SELECT toUInt64(getSetting('readonly'))").Scan(&readonly); err == nil && readonly != 0 {
		remedy = fmt.Sprintf("its settings or its profile say readonly = %d: name another user, or take that away; %s", readonly, remedy)
	}
	return fmt.Errorf("the ClickHouse user %q may not do what is needed in database %s, it lacks %s: %s", s.user, s.db,
		strings.Join(missing, ", "), remedy)
}

// code returns ClickHouse's number of an error, 0 if the error is not ClickHouse's.
func code(err error) int32 {
	var x *clickhouse.Exception
	if errors.As(err, &x) {
		return x.Code
	}
	return 0
}

// connecting adds to an error of the first connection to a server what to do about it.
func (s *Store) connecting(err error) error {
	if s.cfg.Transport != nil {
		return fmt.Errorf("open store: connect: %w", err)
	}
	hint := ""
	var name x509.HostnameError
	var untrusted *tls.CertificateVerificationError
	switch text := err.Error(); {
	case errors.As(err, &name):
		hint = "the server's certificate is for another name: use one of its names in --clickhouse-dsn"
	case errors.As(err, &untrusted):
		hint = "the server's certificate is not trusted: name the file with its authority's certificate with --clickhouse-ca-file"
	case strings.Contains(text, "server gave HTTP response to HTTPS client"):
		hint = "the server speaks plain HTTP on that port: write http:// in --clickhouse-dsn, or name its TLS port"
	case strings.Contains(text, "HTTP request to an HTTPS server"):
		hint = "the server speaks TLS on that port: write https:// in --clickhouse-dsn"
	}
	switch code(err) {
	case codeBadLogin, codeUnknownUser, codeWrongWord, codeNoPassword:
		hint = fmt.Sprintf("the server refuses user %q: see its name in --clickhouse-dsn and its password in --clickhouse-password-file",
			s.user)
	case codeReadonly:
		hint = fmt.Sprintf("user %q may not change settings, and statements need some: name a user without readonly = 1 in its profile",
			s.user)
	case codeAccessDenied:
		hint = fmt.Sprintf("user %q may not run what is needed", s.user)
	}
	if hint == "" {
		return fmt.Errorf("open store: connect: %w", err)
	}
	return fmt.Errorf("open store: %s: %w", hint, err)
}

// tuning are settings of tables that save work and change no answer. They are not migrations: a server that does not know one is used
// without it. docs/adr/0070 has what each saves.
var tuning = []string{ //nolint:gochecknoglobals // constant table
	// Statistics of every column, made at every insert and merge; sorting keys and skip indexes find what is asked for.
	"auto_statistics_types = ''",
	// What a merge costs hardly depends on how small its parts are: 24 at a time are merged less than half as often as five.
	"min_parts_to_merge_at_once = 24",
	// And of parts that are alike: else one that was merged is merged again with every 23 that follow (docs/adr/0088).
	"merge_selector_base = 30",
}

// tuned are the tables that get parts all the time.
//
//nolint:gochecknoglobals // constant table
var tuned = []string{"events", "accesses", "group_sets", "access_usage", "grant_usage", "volume", "activity", "detections",
	"unmatched", "objects", "arrivals", "halves", "refused", "policy_objects"}

// codeUnknownSetting is the error of a server that does not know a setting.
const codeUnknownSetting = 115

// codeUnknownTable is the error of a server that does not know a table.
const codeUnknownTable = 60

// tune gives the tables the settings they do not have yet.
func (s *Store) tune(ctx context.Context) error {
	has := map[string]string{}
	rows, err := s.conn.Query(statement.Params(ctx,
		clickhouse.Parameters{"db": statement.Text(s.localDatabase()), "tables": statement.Texts(tuned)}),
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
		if err := s.tuneTable(ctx, table, missing); err != nil {
			return err
		}
	}
	return nil
}

// tuneTable gives a table those of some settings that the server knows.
func (s *Store) tuneTable(ctx context.Context, table string, settings []string) error {
	if len(settings) == 0 {
		return nil
	}
	list := strings.Join(settings, ", ")
	err := s.conn.Exec(ctx, "ALTER TABLE "+s.local(table)+s.form().OnCluster()+" MODIFY SETTING "+list)
	var refused *clickhouse.Exception
	if errors.As(err, &refused) && refused.Code == codeUnknownSetting {
		if len(settings) == 1 {
			s.cfg.Log.Info("the server does not know a setting that would save it work", zap.String("setting", list))
			return nil
		}
		for i := range settings {
			if err := s.tuneTable(ctx, table, settings[i:i+1]); err != nil {
				return err
			}
		}
		return nil
	}
	if err != nil {
		return fmt.Errorf("set %s of table %s: %w", list, table, err)
	}
	return nil
}
