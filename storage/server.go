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
)

// needed are the rights the store wants of a server's user in its database: it makes and
// changes its tables, fills them, and drops what is past its retention.
var needed = []string{ //nolint:gochecknoglobals // constant table
	"SELECT", "INSERT", "ALTER", "CREATE DATABASE", "CREATE TABLE", "CREATE VIEW", "DROP TABLE", "DROP VIEW", "TRUNCATE", "OPTIMIZE",
}

// neededEverywhere are those that belong to no database: an insert that is still running for
// a connection that is gone is ended.
var neededEverywhere = []string{"KILL QUERY"} //nolint:gochecknoglobals // constant table

// neededOfCluster are those the cluster form wants besides: statements for every node, and
// tables over those of other nodes.
var neededOfCluster = []string{"CLUSTER", "REMOTE"} //nolint:gochecknoglobals // constant table

// ClickHouse's numbers of the errors that are told in other words.
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
		return nil, errors.New("the DSN is no URL: write http(s)://user@host:8123, with special characters of the user escaped (%40 for @)")
	}
	if u.Scheme == "https" { // the driver wants it said twice
		args := u.Query()
		args.Set("secure", "true")
		u.RawQuery = args.Encode()
	}
	return clickhouse.ParseDSN(u.String())
}

// checkRights asks a server whether the user may do what the store does, so that what is
// missing is told at the start and in full. A server too old to be asked (before 24.9) is
// trusted, and refuses later.
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
	return fmt.Errorf("the ClickHouse user %q may not do what is needed in database %s, it lacks %s: %s", s.user, s.db, strings.Join(missing, ", "), remedy)
}

// code is ClickHouse's number of an error, 0 when it is none of ClickHouse's.
func code(err error) int32 {
	var x *clickhouse.Exception
	if errors.As(err, &x) {
		return x.Code
	}
	return 0
}

// connecting says of an error of the first connection to a server what to do about it.
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
		hint = fmt.Sprintf("the server refuses user %q: see its name in --clickhouse-dsn and its password in --clickhouse-password-file", s.user)
	case codeReadonly:
		hint = fmt.Sprintf("user %q may not change settings, and statements need some: name a user without readonly = 1 in its profile", s.user)
	case codeAccessDenied:
		hint = fmt.Sprintf("user %q may not run what is needed", s.user)
	}
	if hint == "" {
		return fmt.Errorf("open store: connect: %w", err)
	}
	return fmt.Errorf("open store: %s: %w", hint, err)
}
