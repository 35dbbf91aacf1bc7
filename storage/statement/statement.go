// Package statement sends statements with their parameters to ClickHouse and scans what they return.
package statement

import (
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"
	"github.com/ClickHouse/clickhouse-go/v2/lib/driver"
)

// DB is where statements go.
type DB struct {
	Conn driver.Conn
	Name string // quoted
}

// Table returns the quoted, qualified name of a table.
func (d DB) Table(name string) string { return d.Name + "." + name }

// Params returns ctx with query parameters. Values are bound by the server, {name:Type} in
// the SQL; text made with Text or Texts, so that what clients chose stays data.
func Params(ctx context.Context, p clickhouse.Parameters) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithParameters(p))
}

// Text renders a String parameter: parameters are read as tab-separated values are.
func Text(s string) string {
	return strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`).Replace(s)
}

// Texts renders an Array(String) parameter.
func Texts(list []string) string {
	escape := strings.NewReplacer("\\", `\\`, "'", `\'`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`)
	var b strings.Builder
	b.WriteByte('[')
	for i, s := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteByte('\'')
		b.WriteString(escape.Replace(s))
		b.WriteByte('\'')
	}
	b.WriteByte(']')
	return b.String()
}

// Numbers renders an array of integers.
func Numbers[T ~int32 | ~int64 | ~uint64 | ~uint32 | ~uint16](list []T) string {
	b := make([]byte, 0, 2+12*len(list))
	b = append(b, '[')
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		if n < 0 {
			b = strconv.AppendInt(b, int64(n), 10)
		} else {
			b = strconv.AppendUint(b, uint64(n), 10)
		}
	}
	return string(append(b, ']'))
}

// Collect runs a query (%s is the database) and scans every row as the function says; what
// it returns besides the targets is called after the scan.
func Collect[T any](ctx context.Context, at DB, query string, p clickhouse.Parameters, targets func(*T) ([]any, func())) ([]T, error) {
	res, err := at.Conn.Query(Params(ctx, p), fmt.Sprintf(query, at.Name))
	if err != nil {
		return nil, fmt.Errorf("query store: %w", err)
	}
	defer res.Close()
	var out []T
	for res.Next() {
		var v T
		to, after := targets(&v)
		if err := res.Scan(to...); err != nil {
			return nil, fmt.Errorf("query store: %w", err)
		}
		if after != nil {
			after()
		}
		out = append(out, v)
	}
	if err := res.Err(); err != nil {
		return nil, fmt.Errorf("query store: %w", err)
	}
	return out, nil
}

// Requests selects rows of events by the minutes and the keys of their requests. The minutes find granules by primary key; of those only
// the request key is read in full, the rest of matching rows alone.
type Requests struct {
	minutes map[uint32]bool
	keys    []byte // 32 hexadecimal digits each
}

// NewRequests returns a selection with room for n requests.
func NewRequests(n int) *Requests {
	return &Requests{minutes: map[uint32]bool{}, keys: make([]byte, 0, 32*n)}
}

// Add adds a request.
func (r *Requests) Add(minute uint32, key [16]byte) {
	r.minutes[minute] = true
	r.keys = hex.AppendEncode(r.keys, key[:])
}

// Where returns the condition, and adds its parameter. The keys go into the statement: parameters
// travel in the URL, whose length servers bound to 1 MiB.
func (r *Requests) Where(p clickhouse.Parameters) string {
	p["minutes"] = Numbers(slices.Collect(maps.Keys(r.minutes)))
	return fmt.Sprintf("minute IN (SELECT arrayJoin({minutes:Array(UInt32)})) AND request_key IN "+
		"(WITH unhex('%s') AS k SELECT toFixedString(arrayJoin(arrayMap(i -> substring(k, i * 16 + 1, 16), range(%d))), 16))",
		r.keys, len(r.keys)/32)
}

// ClampSeconds returns the seconds since 1970 of t, held within what a DateTime column holds.
func ClampSeconds(t time.Time) uint32 { return uint32(min(max(t.Unix(), 0), 1<<32-1)) }
