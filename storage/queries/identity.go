package queries

import (
	"context"
	"fmt"
	"time"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
)

// CredentialUse is what was done with a credential from one place: as one user, with one
// client, from one address, as far as the token says for one pod on one node.
type CredentialUse struct {
	User      string // who authenticated
	UserAgent string
	Source    string // the nearest address: the last of the event's, which the apiserver saw itself
	Pod, Node string // "" when the credential names none

	Requests  int64
	Forbidden int64 // recorded as refused
	First     time.Time
	Last      time.Time
}

// ExtraPod and ExtraNode are the extra keys that the apiserver sets for tokens of service accounts.
const (
	ExtraPod  = "authentication.kubernetes.io/pod-name"
	ExtraNode = "authentication.kubernetes.io/node-name"
)

const credentialUsesQuery = `SELECT user_name, user_agent, if(empty(source_ips), '', source_ips[-1]) AS source, arrayElement(user_extra['` +
	ExtraPod + `'], 1) AS pod, arrayElement(user_extra['` + ExtraNode + `'], 1) AS node,
    sum(toInt64(sign)) AS requests, toInt64(sumIf(toInt64(sign), recorded = 'forbid')),
    min(toUnixTimestamp64Micro(request_received)), max(toUnixTimestamp64Micro(request_received))
FROM %s.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND credential = {credential:String}
GROUP BY user_name, user_agent, source, pod, node
HAVING requests > 0
ORDER BY min(request_received), user_name, user_agent, source, pod, node
LIMIT {limit:UInt32}`

// CredentialUses returns the uses of a credential (as Verdict.Credential names it), the
// earliest first; zero bounds leave the range open. Reads are kept small by a skip index.
func (rd *Reader) CredentialUses(ctx context.Context, cluster, credential string, from, to time.Time, limit int) ([]CredentialUse, error) {
	p := minutes(cluster, from, to)
	p["credential"], p["limit"] = statement.Text(credential), fmt.Sprint(limit)
	out, err := statement.Collect(ctx, rd.at, credentialUsesQuery, p, func(u *CredentialUse) ([]any, func()) {
		var first, last int64
		return []any{&u.User, &u.UserAgent, &u.Source, &u.Pod, &u.Node, &u.Requests, &u.Forbidden, &first, &last},
			func() { u.First, u.Last = codec.FromMicro(first), codec.FromMicro(last) }
	})
	if err != nil {
		return nil, fmt.Errorf("uses of credential %q: %w", credential, err)
	}
	return out, nil
}

// SubjectCredential is a credential somebody authenticated with.
type SubjectCredential struct {
	Credential          string   // "": the events do not tell
	Explained           []string // authenticators of the earliest use
	Requests, Forbidden int64
	First, Last         time.Time
}

const credentialsQuery = `SELECT credential, argMin(explained, request_received),
    sum(toInt64(sign)) AS requests, toInt64(sumIf(toInt64(sign), recorded = 'forbid')),
    min(toUnixTimestamp64Micro(request_received)) AS first, max(toUnixTimestamp64Micro(request_received))
FROM %s.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND user_name = {user:String} AND outcome != ''
GROUP BY credential
HAVING requests > 0
ORDER BY first, credential
LIMIT {limit:UInt32}`

// Credentials returns what a user authenticated with, the earliest first; zero bounds leave
// the range open. Requests that others made as the user are not among them.
func (rd *Reader) Credentials(ctx context.Context, cluster, user string, from, to time.Time, limit int) ([]SubjectCredential, error) {
	p := minutes(cluster, from, to)
	p["user"], p["limit"] = statement.Text(user), fmt.Sprint(limit)
	out, err := statement.Collect(ctx, rd.at, credentialsQuery, p, func(c *SubjectCredential) ([]any, func()) {
		var first, last int64
		return []any{&c.Credential, &c.Explained, &c.Requests, &c.Forbidden, &first, &last},
			func() {
				c.First, c.Last, c.Explained = codec.FromMicro(first), codec.FromMicro(last), codec.OrNil(c.Explained)
			}
	})
	if err != nil {
		return nil, fmt.Errorf("credentials of %q: %w", user, err)
	}
	return out, nil
}

// DirectRequests counts the requests that reached an aggregated API server without an event of a kube-apiserver.
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

// DirectRequests returns, for those of the named aggregated servers that have any, the requests without a kube-apiserver's event of the
// same audit ID. own are the users as whom a kube-apiserver asks on its own account; anonymous probes do not count. The range is that of
// the time the requests were received.
func (rd *Reader) DirectRequests(ctx context.Context, cluster string, servers, own []string, from, to time.Time) ([]DirectRequests, error) {
	p := minutes(cluster, from, to)
	p["servers"], p["own"] = statement.Texts(servers), statement.Texts(own)
	p["before"], p["after"] = fmt.Sprint(codec.Minute(from.Add(-twinMinutes*time.Minute))),
		fmt.Sprint(codec.Minute(to.Add(twinMinutes*time.Minute)))
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
