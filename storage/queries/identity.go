package queries

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
)

// CredentialUse is what was done with a credential from one place: as one user, with one
// client, from one address; a token is of one pod on one node at most.
type CredentialUse struct {
	User      string // who authenticated
	UserAgent string
	Source    string // the nearest address: the last of the event's, which the apiserver saw itself
	Pod, Node string // by the earliest; "" when the credential names none

	Requests  int64
	Forbidden int64 // recorded as refused
	First     time.Time
	Last      time.Time
}

// CredentialUses are the uses of each of some credentials, the earliest first.
type CredentialUses map[string][]CredentialUse

// Named returns the credentials that have names.
func Named(list []SubjectCredential) (out []string) {
	for i := range list {
		if list[i].Credential != "" {
			out = append(out, list[i].Credential)
		}
	}
	return out
}

// ExtraPod and ExtraNode are the extra keys that the apiserver sets for tokens of service accounts.
const (
	ExtraPod  = "authentication.kubernetes.io/pod-name"
	ExtraNode = "authentication.kubernetes.io/node-name"
)

// earliest is a request, where it is found again.
type earliest struct {
	minute  uint32
	request [16]byte
}

// firstRequest is the earliest request of a group: columns that are long to read are read of that alone.
const firstRequest = "(argMin((toUInt32(minute), request_key), (request_received, request_key)) AS one).1, one.2"

// eachEarliest visits a column, an array of texts, of some requests with a verdict.
func (rd *Reader) eachEarliest(ctx context.Context, cluster, column string, of []earliest,
	visit func(request [16]byte, list []string)) error {
	if len(of) == 0 {
		return nil
	}
	p := clickhouse.Parameters{"cluster": statement.Text(cluster)}
	requests := statement.NewRequests(len(of))
	for _, e := range of {
		requests.Add(e.minute, e.request)
	}
	type row struct {
		request string
		list    []string
	}
	_, err := statement.Collect(ctx, rd.at, "SELECT request_key, any("+column+") FROM %s.events PREWHERE cluster = {cluster:String} AND "+
		requests.Where(p)+" WHERE outcome != '' GROUP BY request_key", p, func(r *row) ([]any, func()) {
		return []any{&r.request, &r.list}, func() {
			var key [16]byte
			copy(key[:], r.request)
			visit(key, codec.OrNil(r.list))
		}
	})
	return err
}

const credentialUsesQuery = `SELECT credential, user_name, user_agent, if(empty(source_ips), '', source_ips[-1]) AS source,
    sum(toInt64(sign)) AS requests, toInt64(sumIf(toInt64(sign), recorded = 'forbid')),
    min(toUnixTimestamp64Micro(request_received)), max(toUnixTimestamp64Micro(request_received)), ` + firstRequest + `
FROM %s.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND credential IN {credentials:Array(String)}
GROUP BY credential, user_name, user_agent, source
HAVING requests > 0
ORDER BY min(request_received), credential, user_name, user_agent, source
LIMIT {limit:UInt32} BY credential`

// podAndNode is where a token says it is used.
const podAndNode = "[arrayElement(user_extra['" + ExtraPod + "'], 1), arrayElement(user_extra['" + ExtraNode + "'], 1)]"

// CredentialUses returns the uses of credentials (as Verdict.Credential names them), the earliest first, so many of each at most; zero
// bounds leave the range open. Reads are kept small by a skip index.
func (rd *Reader) CredentialUses(ctx context.Context, cluster string, of []string, from, to time.Time, limit int) (CredentialUses, error) {
	if len(of) == 0 {
		return nil, nil
	}
	p := minutes(cluster, from, to)
	p["credentials"], p["limit"] = statement.Texts(of), fmt.Sprint(limit)
	type use struct {
		credential string
		CredentialUse
		first earliest
	}
	var requests []earliest
	list, err := statement.Collect(ctx, rd.at, credentialUsesQuery, p, func(u *use) ([]any, func()) {
		var first, last int64
		var request string
		return []any{&u.credential, &u.User, &u.UserAgent, &u.Source, &u.Requests, &u.Forbidden, &first, &last, &u.first.minute, &request},
			func() {
				u.First, u.Last = codec.FromMicro(first), codec.FromMicro(last)
				copy(u.first.request[:], request)
				requests = append(requests, u.first)
			}
	})
	places := map[[16]byte][]string{}
	if err == nil {
		err = rd.eachEarliest(ctx, cluster, podAndNode, requests, func(request [16]byte, list []string) { places[request] = list })
	}
	if err != nil {
		return nil, fmt.Errorf("uses of %d credentials: %w", len(of), err)
	}
	out := CredentialUses{}
	for i := range list {
		u := &list[i]
		if at := places[u.first.request]; len(at) == 2 {
			u.Pod, u.Node = at[0], at[1]
		}
		out[u.credential] = append(out[u.credential], u.CredentialUse)
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

const credentialsQuery = `SELECT credential, sum(toInt64(sign)) AS requests, toInt64(sumIf(toInt64(sign), recorded = 'forbid')),
    min(toUnixTimestamp64Micro(request_received)) AS first, max(toUnixTimestamp64Micro(request_received))
FROM %s.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND user_name = {user:String} AND outcome != ''
GROUP BY credential
HAVING requests > 0
ORDER BY first, credential
LIMIT {limit:UInt32}`

// explainedQuery reads what is long to read of the requests alone that a credential may have been used by first.
const explainedQuery = `SELECT credential, argMin(explained, (request_received, request_key))
FROM %s.events
PREWHERE cluster = {cluster:String} AND minute IN (SELECT arrayJoin({minutes:Array(UInt32)})) AND user_name = {user:String}
WHERE outcome != '' AND toUnixTimestamp64Micro(request_received) IN {firsts:Array(Int64)}
GROUP BY credential`

// Credentials returns what a user authenticated with, the earliest first; zero bounds leave
// the range open. Requests that others made as the user are not among them.
func (rd *Reader) Credentials(ctx context.Context, cluster, user string, from, to time.Time, limit int) ([]SubjectCredential, error) {
	p := minutes(cluster, from, to)
	p["user"], p["limit"] = statement.Text(user), fmt.Sprint(limit)
	var begun []uint32
	var firsts []int64
	out, err := statement.Collect(ctx, rd.at, credentialsQuery, p, func(c *SubjectCredential) ([]any, func()) {
		var first, last int64
		return []any{&c.Credential, &c.Requests, &c.Forbidden, &first, &last}, func() {
			c.First, c.Last = codec.FromMicro(first), codec.FromMicro(last)
			begun, firsts = append(begun, codec.Minute(c.First)), append(firsts, first)
		}
	})
	if err == nil && len(out) > 0 {
		slices.Sort(begun)
		p["minutes"], p["firsts"] = statement.Numbers(slices.Compact(begun)), statement.Numbers(firsts)
		err = rd.explain(ctx, p, out)
	}
	if err != nil {
		return nil, fmt.Errorf("credentials of %q: %w", user, err)
	}
	return out, nil
}

// explain fills in the authenticators of the earliest uses.
func (rd *Reader) explain(ctx context.Context, p clickhouse.Parameters, of []SubjectCredential) error {
	explained := map[string][]string{}
	type row struct {
		credential string
		list       []string
	}
	_, err := statement.Collect(ctx, rd.at, explainedQuery, p, func(r *row) ([]any, func()) {
		return []any{&r.credential, &r.list}, func() { explained[r.credential] = codec.OrNil(r.list) }
	})
	for i := range of {
		of[i].Explained = explained[of[i].Credential]
	}
	return err
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
