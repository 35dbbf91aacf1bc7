package storage

import (
	"context"
	"strconv"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"
)

// params returns ctx with query parameters. Values are bound by the server, {name:Type} in
// the SQL; text made with text or texts, so that what clients chose stays data.
func params(ctx context.Context, p clickhouse.Parameters) context.Context {
	return clickhouse.Context(ctx, clickhouse.WithParameters(p))
}

// text renders a String parameter: parameters are read as tab-separated values are.
func text(s string) string {
	return strings.NewReplacer("\\", `\\`, "\t", `\t`, "\n", `\n`, "\r", `\r`, "\x00", `\0`).Replace(s)
}

// texts renders an Array(String) parameter.
func texts(list []string) string {
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

// numbers renders an array of integers.
func numbers[T ~int32 | ~int64 | ~uint32 | ~uint16](list []T) string {
	b := make([]byte, 0, 2+12*len(list))
	b = append(b, '[')
	for i, n := range list {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(n), 10)
	}
	return string(append(b, ']'))
}
