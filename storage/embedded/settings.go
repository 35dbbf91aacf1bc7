package embedded

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// notSettings are the URL arguments of ClickHouse's HTTP interface that are not query settings.
var notSettings = map[string]bool{ //nolint:gochecknoglobals // constant table
	"database": true, "query": true, "default_format": true, "client_protocol_version": true,
	"compress": true, "decompress": true, "network_compression_method": true,
	"network_zstd_compression_level": true, "query_id": true, "quota_key": true, "session_id": true,
	"wait_end_of_query": true, "buffer_size": true, "user": true, "password": true, "role": true,
}

// Split separates the URL arguments of a request to ClickHouse's HTTP interface into query settings and parameters ({name:Type} in the SQL,
// param_name in the URL); those that are neither (query, database, user, …) are left out.
func Split(args url.Values) (settings map[string]string, pairs [][2]string) {
	settings = map[string]string{}
	for k, v := range args {
		if name, ok := strings.CutPrefix(k, "param_"); ok {
			pairs = append(pairs, [2]string{name, v[0]})
			continue
		}
		if !notSettings[k] {
			settings[k] = v[0]
		}
	}
	return settings, pairs
}

// fits reports whether c needs no change to run with db and settings.
func (c *conn) fits(db string, settings map[string]string) bool {
	if c.db != db || len(c.applied) != len(settings) {
		return false
	}
	for k, v := range settings {
		if got, ok := c.applied[k]; !ok || got != v {
			return false
		}
	}
	return true
}

// adjust sets c to the database and settings of a statement, with at most one USE and one SET, each of about half a millisecond.
func (e *Engine) adjust(c *conn, db string, settings map[string]string) error {
	if db != "" && db != c.db {
		if err := e.exec(c, "USE "+quoteName(db)); err != nil {
			return err
		}
	}
	c.db = db
	var set []string
	for k, v := range settings {
		if got, ok := c.applied[k]; !ok || got != v {
			set = append(set, quoteName(k)+" = "+quoteString(v))
		}
	}
	for k := range c.applied {
		_, wanted := settings[k]
		switch {
		case wanted:
		case k == killTag:
			set = append(set, killTag+" = "+quoteString(c.name))
		default:
			set = append(set, quoteName(k)+" = DEFAULT")
		}
	}
	if len(set) == 0 {
		return nil
	}
	slices.Sort(set)
	if err := e.exec(c, "SET "+strings.Join(set, ", ")); err != nil {
		return err
	}
	c.applied = settings
	return nil
}

// exec runs a statement without a result on c.
func (e *Engine) exec(c *conn, sql string) error {
	r := e.lib.run(e.lib.query, c.handle, []byte(sql), nil)
	defer e.lib.destroyResult(r)
	if text := e.lib.resultError(r); text != "" {
		return fmt.Errorf("%s: %w", firstWord(sql), newException(text))
	}
	return nil
}

func quoteName(s string) string {
	return "`" + strings.NewReplacer("\\", "\\\\", "`", "\\`").Replace(s) + "`"
}

func quoteString(s string) string {
	return "'" + strings.NewReplacer("\\", "\\\\", "'", "\\'").Replace(s) + "'"
}

// firstWord returns the first keyword of sql in upper case, after comments and brackets.
func firstWord(sql string) string {
	for {
		sql = strings.TrimLeft(sql, " \t\r\n(")
		switch {
		case strings.HasPrefix(sql, "--"):
			_, sql, _ = strings.Cut(sql, "\n")
		case strings.HasPrefix(sql, "/*"):
			_, sql, _ = strings.Cut(sql, "*/")
		default:
			end := strings.IndexFunc(sql, func(r rune) bool {
				return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z')
			})
			if end < 0 {
				end = len(sql)
			}
			return strings.ToUpper(sql[:end])
		}
	}
}
