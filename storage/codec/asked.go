package codec

import (
	"fmt"
	"slices"
)

// This file says how the store reads the properties of requests that detection rules ask about,
// by their names there (see analysis/detect, Variables).

// askable has the columns a property needs beside ofEvery.
var askable = map[string][]string{ //nolint:gochecknoglobals // constant table
	"cluster": nil, "verb": nil, "user": nil, "impersonatedUser": nil, "subject": nil, "path": nil, "query": nil, "isResource": nil,
	"apiGroup": nil, "resource": nil, "subresource": nil, "ns": nil, "name": nil, "code": nil, "stage": nil, "auditID": nil,
	"requestKey": nil, "time": nil, "uid": {"user_uid"}, "groups": {"user_groups"}, "boundPod": {"user_extra"},
	"impersonatedGroups": {"impersonated_groups"}, "subjectGroups": {"user_groups", "impersonated_groups"},
	"component": {"user_groups", "authorizer", "class", "grants"},
	"dryRun":    {"request_object", "annotations", "level"}, "answerLost": {"response_status"},
	"message": {"response_status"}, "level": {"level"}, "annotations": {"annotations"},
	"sourceIP": {"source_ips"}, "sourceIPs": {"source_ips"}, "userAgent": {"user_agent"},
	"requestObject": {"request_object"}, "written": {"request_object"}, "requestPatch": {"request_object"},
	"responseObject": {"response_object"}, "object": {"request_object", "response_object"},
	"verdict.outcome": nil, "verdict.recorded": nil, "verdict.class": {"class"}, "verdict.replayed": {"replayed"},
	"verdict.reason": {"recorded_reason"}, "verdict.authorizer": {"authorizer"}, "verdict.grants": {"grants"},
	"verdict.identity": {"identity"}, "verdict.credential": {"credential"}, "verdict.missing": {"missing"}, "verdict.binds": {"binds"},
	"verdict.admission": {"admission"}, "verdict.admissionPlugin": admissionAnswers,
}

// ofEvery are the columns of every row that is read for a rule: what names it, and what a finding
// shows. The others of a row cost the store a column to read and the driver a value to convert.
var ofEvery = []string{ //nolint:gochecknoglobals // constant table
	"cluster", "request_key", "sign", "audit_id", "stage", "request_uri", "verb", "user_name", "impersonated_name", "code",
	"toUnixTimestamp64Micro(request_received)", "stage_delay", "shape", "outcome", "recorded",
	"attr_verb", "attr_is_resource", "attr_api_group", "attr_resource", "attr_subresource", "attr_namespace", "attr_name", "hits",
	"hit_keys",
}

// ofListed are the columns of a listed row beside ofEvery.
var ofListed = []string{ //nolint:gochecknoglobals // constant table
	"class", "cause", "replayed", "authorizer", "grants", "object_api_group", "object_resource", "object_subresource", "object_namespace",
	"object_name",
}

// Listed reports whether a list of writes reads a column, for Stored.Reads: what a line has, which object the request names, and its
// attributes.
func Listed(sql string) bool { return slices.Contains(ofEvery, sql) || slices.Contains(ofListed, sql) }

// ofWrite are the columns of a request that wrote an object.
var ofWrite = []string{ //nolint:gochecknoglobals // constant table
	"cluster", "request_key", "sign", "audit_id", "stage", "verb", "user_name", "impersonated_name", "code",
	"toUnixTimestamp64Micro(request_received)", "stage_delay", "shape", "object_api_group", "object_resource", "object_subresource",
	"object_namespace", "object_name",
}

// OfWrite reports whether a row that tells of a write has a column, for Stored.Reads: who wrote what and when, and what was answered.
func OfWrite(sql string) bool { return slices.Contains(ofWrite, sql) }

// ofLine are the columns of a row in one line.
var ofLine = []string{ //nolint:gochecknoglobals // constant table
	"cluster", "request_key", "sign", "audit_id", "stage", "request_uri", "verb", "user_name", "impersonated_name", "code",
	"toUnixTimestamp64Micro(request_received)", "stage_delay", "shape", "outcome", "recorded", "class", "cause", "replayed",
	"authorizer", "grants", "object_api_group", "object_resource", "object_subresource", "object_namespace", "object_name", "user_agent",
	"source_ips",
}

// InLine reports whether a row in one line has a column, for Stored.Reads: who asked for what and when, what was answered, and the verdict
// without what explains it.
func InLine(sql string) bool { return slices.Contains(ofLine, sql) }

// Askable reports whether [Store.Marked] can read a property.
func Askable(name string) bool { _, ok := askable[name]; return ok }

// Asked returns the columns of every row that is read for a rule and of the properties, and where in the row each goes.
func (r *stored) Asked(names map[string]bool) (columns []string, to []any, err error) {
	want := map[string]bool{}
	for _, c := range ofEvery {
		want[c] = true
	}
	for name := range names {
		if !Askable(name) {
			return nil, nil, fmt.Errorf("there is no property %q", name)
		}
		for _, c := range askable[name] {
			want[c] = true
		}
	}
	columns, to = r.Reads(func(sql string) bool { return want[sql] })
	return columns, to, nil
}

// property is how the store reads a property of a request: an expression over columns.
type property struct{ sql, column string }

// countable are the properties of which different values can be counted.
var countable = map[string]property{ //nolint:gochecknoglobals // constant table
	"verb": {"verb", "verb"}, "user": {"user_name", "user_name"}, "uid": {"user_uid", "user_uid"},
	"impersonatedUser": {"impersonated_name", "impersonated_name"},
	"path":             {"substringIndex(request_uri, '?', 1)", "request_uri"},
	"apiGroup":         {"attr_api_group", "attr_api_group"}, "resource": {"attr_resource", "attr_resource"},
	"subresource": {"attr_subresource", "attr_subresource"}, "ns": {"attr_namespace", "attr_namespace"}, "name": {"attr_name", "attr_name"},
	"requestKey": {"request_key", "request_key"}, "auditID": {"audit_id", "audit_id"},
	"sourceIP": {"source_ips[-1]", "source_ips"}, "userAgent": {"user_agent", "user_agent"},
	"verdict.credential": {"credential", "credential"}, "verdict.class": {"class", "class"},
}

// CountedBy returns how the store reads a countable property: an expression, and the column it is over.
func CountedBy(name string) (sql, column string) { return countable[name].sql, countable[name].column }

// Countable reports whether [Store.PaneCounts] can count different values of a property.
func Countable(name string) bool { _, ok := countable[name]; return ok }
