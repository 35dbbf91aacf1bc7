package sqlgate

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// request is a query as read from an HTTP request.
type request struct {
	sql      string
	params   [][2]string // values of {name:Type}
	settings map[string]string
	format   string // default format
	queryID  string
	revision int  // of the caller's Native format, 0 if not given
	compress bool // the answer in ClickHouse's own compressed blocks
	method   string
}

// plain arguments do not affect how the query runs, or are handled elsewhere.
var plain = words(`query database default_format client_protocol_version compress decompress network_compression_method
	network_zstd_compression_level query_id quota_key enable_http_compression http_zlib_compression_level wait_end_of_query
	buffer_size send_progress_in_http_headers cancel_http_readonly_queries_on_client_close
	add_http_cors_header`) //nolint:gochecknoglobals // constant table

// free settings change how a result is written or a query is read, not what it costs. The engine checks their values.
var free = words(`session_timezone date_time_output_format join_use_nulls group_by_use_nulls transform_null_in
	aggregate_functions_null_for_empty final limit offset extremes max_rows_to_group_by totals_mode
	output_format_json_quote_64bit_integers output_format_json_quote_denormals output_format_json_quote_decimals
	output_format_json_named_tuples_as_objects output_format_write_statistics`) //nolint:gochecknoglobals // constant table

// settingsOf returns the settings a caller requests, capped by the limits; unknown ones are
// refused, and so is anything given twice, which two parsers could read differently.
func settingsOf(args url.Values, limits map[string]int64) (map[string]string, error) {
	out := map[string]string{}
	for name, values := range args {
		if len(values) != 1 {
			return nil, newError(codeBadArguments, "BAD_ARGUMENTS", "the argument %q is given %d times", name, len(values))
		}
		value := values[0]
		limit, capped := limits[name]
		switch {
		case plain[name], strings.HasPrefix(name, "param_"):
		case free[name]:
			out[name] = value
		case capped:
			n, err := strconv.ParseFloat(value, 64)
			if err != nil || n < 0 {
				return nil, newError(codeBadArguments, "BAD_ARGUMENTS", "invalid setting %q: want a number", name)
			}
			// 0 would mean no limit; the connection already has one.
			if n > 0 && n < float64(limit) {
				out[name] = strconv.FormatInt(max(int64(n), 1), 10)
			}
		case name == "readonly":
			if value != "1" && value != "2" {
				return nil, newError(codeReadonly, "READONLY", "queries are read-only here, whatever the setting readonly")
			}
		case name == "user" || name == "password":
			return nil, newError(codeAuthentication, "AUTHENTICATION_FAILED", "send user and password in headers: URLs are logged in "+
				"transit")
		default:
			return nil, newError(codeReadonly, "READONLY", "the setting %q cannot be changed here", name)
		}
	}
	return out, nil
}

// header uses a header in place of an argument that is not given.
func header(r *http.Request, args url.Values, name, arg string) {
	if v := r.Header.Get(name); v != "" && !args.Has(arg) {
		args.Set(arg, v)
	}
}

// formats maps the formats offered for results to their content types: those that neither read
// schema files nor depend on settings that name them.
var formats = map[string]string{ //nolint:gochecknoglobals // constant table
	"Native": "application/octet-stream",
	"JSON":   jsonType, "JSONStrings": jsonType, "JSONCompact": jsonType, "JSONCompactStrings": jsonType, "JSONColumns": jsonType,
	"JSONEachRow": linesType, "JSONLines": linesType, "JSONStringsEachRow": linesType, "JSONCompactEachRow": linesType,
	"JSONCompactEachRowWithNamesAndTypes": linesType, "NDJSON": linesType,
	"CSV": "text/csv; charset=UTF-8", "CSVWithNames": "text/csv; charset=UTF-8; header=present",
	"CSVWithNamesAndTypes": "text/csv; charset=UTF-8; header=present",
	"TSV":                  tabsType, "TSVWithNames": tabsType, "TSVWithNamesAndTypes": tabsType, "TSVRaw": tabsType,
	"TabSeparated": tabsType, "TabSeparatedWithNames": tabsType, "TabSeparatedWithNamesAndTypes": tabsType, "TabSeparatedRaw": tabsType,
	"Pretty": textType, "PrettyCompact": textType, "PrettySpace": textType, "Vertical": textType, "Markdown": textType, "Values": textType,
	"Null":      textType,
	"RowBinary": "application/octet-stream", "RowBinaryWithNames": "application/octet-stream",
	"RowBinaryWithNamesAndTypes": "application/octet-stream",
}

const (
	jsonType  = "application/json; charset=UTF-8"
	linesType = "application/x-ndjson; charset=UTF-8"
	tabsType  = "text/tab-separated-values; charset=UTF-8"
	textType  = "text/plain; charset=UTF-8"
)
