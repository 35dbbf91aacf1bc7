package queries

import (
	"context"
	"fmt"
	"time"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
)

// DirectRequests counts the requests that reached an aggregated API server and that no
// kube-apiserver's event stands before.
type DirectRequests struct {
	APIServer string
	Requests  int64
	Users     uint64 // distinct
	First     time.Time
	Last      time.Time
	// Of the earliest.
	AuditID, User, URI string
}

const directQuery = `SELECT apiserver, sum(toInt64(sign)) AS requests, uniqExact(user_name), min(toUnixTimestamp64Micro(request_received)), max(toUnixTimestamp64Micro(request_received)),
    argMin(audit_id, (request_received, request_key)), argMin(user_name, (request_received, request_key)), argMin(request_uri, (request_received, request_key))
FROM %[1]s.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND apiserver IN {servers:Array(String)} AND outcome != ''
    AND user_name NOT IN {own:Array(String)} AND NOT (user_name = 'system:anonymous' AND attr_is_resource = 0)
    AND audit_id NOT IN (
        SELECT audit_id FROM %[1]s.events
        WHERE cluster = {cluster:String} AND minute BETWEEN {before:UInt32} AND {after:UInt32} AND apiserver NOT IN {servers:Array(String)} AND code != 403
    )
GROUP BY apiserver
HAVING requests > 0
ORDER BY apiserver`

// twinMinutes is how far apart the clocks of two servers may be.
const twinMinutes = 5

// DirectRequests returns, for those of the named aggregated servers that have any, the
// requests without a kube-apiserver's event of the same audit ID. own are the users as whom a
// kube-apiserver asks on its own account; anonymous probes do not count. The range is that of
// the time the requests were received.
func (rd *Reader) DirectRequests(ctx context.Context, cluster string, servers, own []string, from, to time.Time) ([]DirectRequests, error) {
	p := minutes(cluster, from, to)
	p["servers"], p["own"] = statement.Texts(servers), statement.Texts(own)
	p["before"], p["after"] = fmt.Sprint(codec.Minute(from.Add(-twinMinutes*time.Minute))), fmt.Sprint(codec.Minute(to.Add(twinMinutes*time.Minute)))
	out, err := statement.Collect(ctx, rd.at, directQuery, p, func(d *DirectRequests) ([]any, func()) {
		var first, last int64
		return []any{&d.APIServer, &d.Requests, &d.Users, &first, &last, &d.AuditID, &d.User, &d.URI},
			func() { d.First, d.Last = codec.FromMicro(first), codec.FromMicro(last) }
	})
	if err != nil {
		return nil, fmt.Errorf("direct requests of cluster %q: %w", cluster, err)
	}
	return out, nil
}
