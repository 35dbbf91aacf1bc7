package event

import (
	"net/url"
	"strings"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// DryRunAnswer reports whether a write was a dry run.
type DryRunAnswer uint8

// Answers. MaybeDryRun: the options of a delete may be in its body, which was not recorded.
const (
	NoDryRun DryRunAnswer = iota
	MaybeDryRun
	DryRun
)

// DryRunOf returns whether the apiserver treated a write as a dry run. It errs on the side of the
// write: what only looks like a dry run must not hide one. Options of a delete or
// deletecollection come from the body, if there is one, and the query is then ignored;
// those of other writes come from the query. Parameters that do not parse do not exist.
func DryRunOf(e *Event) DryRunAnswer {
	remove := e.Verb == "delete" || e.Verb == "deletecollection"
	switch {
	case remove && len(e.RequestObject) > 0:
		if dryRunOptions(e.RequestObject) {
			return DryRun
		}
		return NoDryRun
	case remove && (e.Level == LevelMetadata || cut(e)):
		return MaybeDryRun
	}
	_, query, _ := strings.Cut(e.RequestURI, "?")
	if !dryRunQuery(query) {
		return NoDryRun
	}
	if remove && e.Level != LevelRequest && e.Level != LevelRequestResponse {
		return MaybeDryRun // there may have been a body
	}
	return DryRun
}

// dryRunQuery reports whether a query has the parameter dryRun, as the apiserver parses it.
func dryRunQuery(query string) bool {
	if !strings.Contains(query, "dryRun") && strings.IndexByte(query, '%') < 0 {
		return false
	}
	values, _ := url.ParseQuery(query) // the apiserver uses whatever did parse
	return values.Has("dryRun")
}

// dryRunOptions reports whether a body is an object with a non-empty dryRun list, as the
// DeleteOptions of a server-side dry run.
func dryRunOptions(body []byte) bool {
	if len(body) == 0 || body[0] != '{' {
		return false
	}
	d := decoder{Scanner: jsontext.Scanner{Buf: body, Pos: 1}}
	found := false
	for first := true; ; first = false {
		name, more := d.Member(first)
		if !more {
			return found && d.Err == nil
		}
		if name == "dryRun" {
			found = len(d.list()) > 0
		} else if !d.Skip() {
			return false
		}
		if d.Err != nil {
			return false
		}
	}
}
