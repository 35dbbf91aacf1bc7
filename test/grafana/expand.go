package grafana

import (
	"fmt"
	"regexp"
	"strings"
	"time"
)

// Values are what Grafana substitutes in a panel's query.
type Values struct {
	From, To time.Time
	Interval time.Duration     // of one step
	Vars     map[string]string // variables of the dashboard; "All" is the variable's allValue
}

var (
	variable = regexp.MustCompile(`\$\{(\w+)(?::(\w+))?\}`) //nolint:gochecknoglobals // compiled constant
	macro    = regexp.MustCompile(`\$__(\w+)(\()?`)         //nolint:gochecknoglobals // compiled constant
)

// Expand substitutes values in a query as Grafana and its ClickHouse data source do, for the macros
// and formats that the dashboards use; others are an error, and so is a variable without a format
// that makes it safe.
func Expand(query string, v Values) (string, error) {
	var failed error
	query = variable.ReplaceAllStringFunc(query, func(match string) string {
		m := variable.FindStringSubmatch(match)
		value, ok := v.Vars[m[1]]
		switch {
		case !ok:
			failed = fmt.Errorf("variable %q has no value", m[1])
		case m[2] != "percentencode":
			failed = fmt.Errorf("variable %q is inserted as %q: its value could end the surrounding string", m[1], m[2])
		}
		return percentEncode(value)
	})
	if failed != nil {
		return "", failed
	}
	var out strings.Builder
	for {
		at := macro.FindStringSubmatchIndex(query)
		if at == nil {
			break
		}
		name, rest := query[at[2]:at[3]], query[at[1]:]
		var arg string
		if at[4] >= 0 {
			var err error
			if arg, rest, err = argument(rest); err != nil {
				return "", fmt.Errorf("macro %s: %w", name, err)
			}
		}
		text, err := v.macro(name, strings.TrimSpace(arg))
		if err != nil {
			return "", err
		}
		out.WriteString(query[:at[0]] + text)
		query = rest
	}
	out.WriteString(query)
	if strings.Contains(out.String(), "$") {
		return "", fmt.Errorf("unexpanded text remains: %s", out.String())
	}
	return out.String(), nil
}

// macro returns what a macro stands for.
func (v Values) macro(name, arg string) (string, error) {
	seconds := max(int(v.Interval/time.Second), 1)
	instant := func(t time.Time) string { return fmt.Sprintf("toDateTime(%d)", t.Unix()) }
	date := func(t time.Time) string { return fmt.Sprintf("toDate('%s')", t.Format(time.DateOnly)) }
	if takes := name == "timeFilter" || name == "dateFilter" || name == "timeInterval"; takes != (arg != "") {
		return "", fmt.Errorf("macro %s with argument %q", name, arg)
	}
	switch name {
	case "fromTime":
		return instant(v.From), nil
	case "toTime":
		return instant(v.To), nil
	case "interval_s":
		return fmt.Sprint(seconds), nil
	case "timeFilter":
		return fmt.Sprintf("%s >= %s AND %s <= %s", arg, instant(v.From), arg, instant(v.To)), nil
	case "dateFilter":
		return fmt.Sprintf("%s >= %s AND %s <= %s", arg, date(v.From), arg, date(v.To)), nil
	case "timeInterval":
		return fmt.Sprintf("toStartOfInterval(toDateTime(%s), INTERVAL %d second)", arg, seconds), nil
	}
	return "", fmt.Errorf("unknown macro %q", name)
}

// argument splits a macro's argument from what follows its closing bracket.
func argument(s string) (arg, rest string, err error) {
	depth := 1
	for i := range len(s) {
		switch s[i] {
		case '(':
			depth++
		case ')':
			if depth--; depth == 0 {
				return s[:i], s[i+1:], nil
			}
		}
	}
	return "", "", fmt.Errorf("missing closing bracket in %q", s)
}

// percentEncode encodes a value as Grafana's format of that name: all but unreserved characters.
func percentEncode(s string) string {
	var b strings.Builder
	for i := range len(s) {
		c := s[i]
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("-_.~", c) >= 0 {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}
