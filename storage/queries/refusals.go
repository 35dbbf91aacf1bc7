package queries

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// RefusalFilter selects refused requests.
type RefusalFilter struct {
	Cluster  string
	From, To time.Time // To may be zero
	// Subjects and Groups restrict them to these subjects and to members of these groups, together; none of either: everybody's.
	Subjects, Groups []string
	Own              bool // also Kubernetes' own subjects
	Limit            int
}

// Refused are refused requests that have everything in common but the object's name and the time.
type Refused struct {
	Subject    string
	Attributes verdict.Attributes // of the first, whose name and path it has
	Path       string             // of all: folded, as accesses are
	Recorded   string             // allow, forbid, none
	Replayed   string
	Outcome    string
	Class      string
	Code       int32
	Plugin     string // of admission, that refused them
	PluginName string // policy, webhook or quota of the plugin
	Check      string // behind the authorization filter, that refused them

	Requests    int64
	First, Last time.Time
	// Of the first.
	AuditID string
	User    string   // who authenticated
	Groups  []string // it was authorized with
	Missing []string

	own uint8
}

const refusedColumns = "subject, attr_verb, attr_is_resource, attr_api_group, attr_resource, attr_subresource, attr_namespace, path, " +
	"recorded, replayed, outcome, class, code, plugin, plugin_name, refused_check"

// refusedFacts are the columns that refusals are made of; takenBack are the requests of the range of which not every row stands.
const (
	refusedFacts = refusedColumns + ", request_received, request_key, audit_id, user_name, groups, attr_name, missing, attr_path"
	takenBack    = "SELECT request_key FROM %[1]s.refused WHERE cluster = {cluster:String} AND " +
		"minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND count != 1"
)

const refusalsQuery = `SELECT ` + refusedColumns + `,
    toInt64(count()) AS requests, toUnixTimestamp64Micro(min(request_received)), toUnixTimestamp64Micro(max(request_received)),
    (argMin((audit_id, toString(user_name), groups, attr_name, missing, attr_path),
        (request_received, request_key)) AS one).1, one.2, one.3, one.4, one.5, one.6, NOT ` + notOwn + ` AS own,
    sumIf(requests, NOT own) OVER (), countIf(NOT own) OVER (), sumIf(requests, own) OVER (), countIf(own) OVER ()
FROM (
    SELECT ` + refusedFacts + ` FROM %[1]s.refused WHERE {where} AND request_key NOT IN (` + takenBack + `)
    UNION ALL
    SELECT ` + refusedFacts + ` FROM %[1]s.refused WHERE {where} AND request_key IN (` + takenBack + `)
    GROUP BY ` + refusedFacts + ` HAVING sum(count) > 0
)
GROUP BY ` + refusedColumns + `
ORDER BY {own:UInt8} = 0 AND own, requests DESC, ` + refusedColumns + ` LIMIT {limit:UInt32}
SETTINGS max_bytes_before_external_group_by = 268435456`

// RefusedSum counts refused requests and the groups they are in.
type RefusedSum struct {
	Requests, Own int64 // Own: of Kubernetes' own subjects, where these are left out
	Groups        uint64
}

// Refusals returns the refused requests of a range, grouped, most requests first; the sum counts all there are.
func (rd *Reader) Refusals(ctx context.Context, f RefusalFilter) (out []Refused, sum RefusedSum, err error) {
	conditions, p, err := EventFilter{Cluster: f.Cluster, From: withinMinute(f.From), To: withinMinute(f.To), Judged: true}.conditions()
	if err != nil {
		return nil, sum, err
	}
	for name, v := range minutes(f.Cluster, f.From, f.To) {
		p[name] = v
	}
	conditions = append([]string{"cluster = {cluster:String}", "minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32}"},
		conditions...)
	if len(f.Subjects)+len(f.Groups) > 0 {
		p["subjects"], p["groups"] = statement.Texts(f.Subjects), statement.Texts(f.Groups)
		conditions = append(conditions,
			"(subject IN {subjects:Array(String)} OR hasAny(groups, {groups:Array(LowCardinality(String))}))")
	}
	p["own"] = "0"
	if f.Own {
		p["own"] = "1"
	}
	p["limit"] = fmt.Sprint(f.Limit)
	query := strings.ReplaceAll(refusalsQuery, "{where}", strings.Join(conditions, " AND "))
	all, err := statement.Collect(ctx, rd.at, query, p, func(r *Refused) ([]any, func()) {
		var first, last, own int64
		var resource uint8
		var owns uint64
		a := &r.Attributes
		return []any{&r.Subject, &a.Verb, &resource, &a.APIGroup, &a.Resource, &a.Subresource, &a.Namespace, &r.Path, &r.Recorded,
				&r.Replayed, &r.Outcome, &r.Class, &r.Code, &r.Plugin, &r.PluginName, &r.Check, &r.Requests, &first, &last, &r.AuditID,
				&r.User, &r.Groups, &a.Name, &r.Missing, &a.Path, &r.own, &sum.Requests, &sum.Groups, &own, &owns},
			func() {
				a.ResourceRequest, r.First, r.Last = resource != 0, codec.FromMicro(first), codec.FromMicro(last)
				if sum.Own = own; f.Own {
					sum = RefusedSum{Requests: sum.Requests + own, Groups: sum.Groups + owns}
				}
			}
	})
	if err != nil {
		return nil, sum, fmt.Errorf("refusals of cluster %q: %w", f.Cluster, err)
	}
	for i := range all {
		if all[i].own == 0 || f.Own {
			out = append(out, all[i])
		}
	}
	return out, sum, nil
}

// writesPolicy selects the ends of requests that wrote the objects that are the policy and were not refused.
const writesPolicy = "(object_resource IN ('roles', 'clusterroles', 'rolebindings', 'clusterrolebindings') AND " +
	"verb IN ('create', 'update', 'patch', 'delete', 'deletecollection') AND object_api_group = 'rbac.authorization.k8s.io' AND " +
	"stage = 'ResponseComplete' AND " +
	"(code < 300 OR code >= 500))"

// PolicyWrites returns the ends of the requests of a range that wrote roles and bindings and were not refused, newest first: of each what
// codec.OfWrite reads. To may be zero.
func (rd *Reader) PolicyWrites(ctx context.Context, cluster string, from, to time.Time, limit int) ([]verdict.Row, error) {
	out, err := rd.newest(ctx, EventFilter{Cluster: cluster, From: from, To: to, also: writesPolicy, Limit: limit}, codec.OfWrite)
	if err != nil {
		return nil, fmt.Errorf("policy writes of cluster %q: %w", cluster, err)
	}
	return out, nil
}
