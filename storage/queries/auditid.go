package queries

import (
	"fmt"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/native"
	"github.com/retrial-io/retrial/storage/statement"
)

// binding returns what adds a parameter, as it is written, and returns its name.
func binding(p clickhouse.Parameters) func(value string) (name string) {
	return func(value string) string {
		name := fmt.Sprint("w", len(p))
		p[name] = value
		return name
	}
}

// ofID returns the condition on an audit ID, or on how one begins: those that are UUIDs are compared as bytes.
func ofID(c Condition, bind func(string) string) string {
	if c.Begins {
		return "(" + idBegins(c.Value, bind) + ")"
	}
	text := "audit_text = {" + bind(statement.Text(c.Value)) + ":String}"
	var b [16]byte
	if !native.ParseUUID(&b, c.Value) {
		return text
	}
	return "(audit_uuid = {" + bind(c.Value) + ":UUID} AND audit_text = '' OR " + text + ")"
}

// idBegins returns the condition that an audit ID begins so.
func idBegins(prefix string, bind func(string) string) string {
	where := "startsWith(audit_text, {" + bind(statement.Text(prefix)) + ":String})"
	digits, ok := digitsOfUUID(prefix)
	if !ok {
		return where
	}
	open := 32 - len(digits)
	return where + " OR audit_text = '' AND UUIDToNum(audit_uuid) BETWEEN toFixedString(unhex({" +
		bind(digits+strings.Repeat("0", open)) + ":String}), 16) AND toFixedString(unhex({" + bind(digits+strings.Repeat("f", open)) +
		":String}), 16)"
}

// digitsOfUUID returns the digits of what may be the beginning of a UUID.
func digitsOfUUID(prefix string) (digits string, ok bool) {
	const form = "00000000-0000-0000-0000-000000000000"
	if len(prefix) > len(form) {
		return "", false
	}
	var b [16]byte
	if !native.ParseUUID(&b, prefix+form[len(prefix):]) {
		return "", false
	}
	return strings.ReplaceAll(prefix, "-", ""), true
}
