package queries

import (
	"context"
	"fmt"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
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

// Drift is a group of requests whose verdicts are not a match and all say the same.
type Drift struct {
	APIServer          string
	Outcome            verdict.Outcome
	Class, Cause       string
	Missing            []string
	Recorded, Replayed verdict.Decision
	RecordedReason     string
	Code               int32 // of the response, 0 when not recorded
	Config             string
	Requests           int64
	Users              uint64 // distinct, as whom the requests were made
	First, Last        time.Time
	Examples           []DriftExample // the earliest, one a user at most
}

// DriftExample is one request of a group.
type DriftExample struct {
	AuditID, User, Verb, URI string
	At                       time.Time
}

const driftQuery = `SELECT apiserver, outcome, class, cause, missing, recorded, recorded_reason, replayed, code, config_version,
    sum(requests) AS n, uniqExact(subject), min(first), max(last),
    arrayMap(e -> e.1, arraySlice(arraySort(groupArray((first, subject, id, asked, uri))), 1, {examples:UInt32}) AS some),
    arrayMap(e -> toString(e.2), some), arrayMap(e -> e.3, some), arrayMap(e -> toString(e.4), some), arrayMap(e -> e.5, some)
FROM (
    SELECT apiserver, outcome, class, cause, missing, recorded, recorded_reason, replayed, code, config_version, subject,
        sum(toInt64(sign)) AS requests, min(toUnixTimestamp64Micro(request_received)) AS first, max(toUnixTimestamp64Micro(request_received)) AS last,
        argMin(audit_id, (request_received, request_key)) AS id, argMin(verb, (request_received, request_key)) AS asked, argMin(request_uri, (request_received, request_key)) AS uri
    FROM %s.events
    WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND outcome IN ('drift', 'ambiguous', 'indeterminate')
    GROUP BY apiserver, outcome, class, cause, missing, recorded, recorded_reason, replayed, code, config_version, subject
    HAVING requests > 0
)
GROUP BY apiserver, outcome, class, cause, missing, recorded, recorded_reason, replayed, code, config_version
ORDER BY outcome, n DESC, class, cause, missing, recorded_reason, apiserver, code, config_version
LIMIT {limit:UInt32}
SETTINGS max_bytes_before_external_group_by = 268435456`

// DriftGroups returns what is drift, ambiguous or indeterminate, grouped by all that the verdicts say, most requests of an outcome first;
// zero bounds leave the range open. Each has up to the given number of examples.
func (rd *Reader) DriftGroups(ctx context.Context, cluster string, from, to time.Time, examples, limit int) ([]Drift, error) {
	p := minutes(cluster, from, to)
	p["examples"], p["limit"] = fmt.Sprint(max(examples, 1)), fmt.Sprint(limit)
	out, err := rd.driftGroups(ctx, p)
	if err != nil {
		return nil, fmt.Errorf("drift of cluster %q: %w", cluster, err)
	}
	for i := range out {
		out[i].Examples = out[i].Examples[:min(len(out[i].Examples), examples)]
	}
	return out, nil
}

const judgedQuery = `SELECT sum(toInt64(sign)) AS requests, sumIf(toInt64(sign), outcome NOT IN ('not_judged', '')) AS judged
FROM %s.events
WHERE cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND outcome != ''`

// Judged counts the requests from the minute of from to the minute of to, and how many of them were compared with the replica; zero bounds
// leave the range open.
func (rd *Reader) Judged(ctx context.Context, cluster string, from, to time.Time) (requests, judged int64, err error) {
	type counts struct{ requests, judged int64 }
	out, err := statement.Collect(ctx, rd.at, judgedQuery, minutes(cluster, from, to),
		func(c *counts) ([]any, func()) { return []any{&c.requests, &c.judged}, nil })
	if err != nil {
		return 0, 0, fmt.Errorf("judged requests of cluster %q: %w", cluster, err)
	}
	if len(out) == 0 {
		return 0, 0, nil
	}
	return out[0].requests, out[0].judged, nil
}

func (rd *Reader) driftGroups(ctx context.Context, p clickhouse.Parameters) ([]Drift, error) {
	return statement.Collect(ctx, rd.at, driftQuery, p, func(d *Drift) ([]any, func()) {
		var first, last int64
		var at []int64
		var users, ids, verbs, uris []string
		var outcome, recorded, replayed string
		return []any{&d.APIServer, &outcome, &d.Class, &d.Cause, &d.Missing, &recorded, &d.RecordedReason, &replayed, &d.Code, &d.Config,
				&d.Requests, &d.Users, &first, &last, &at, &users, &ids, &verbs, &uris}, func() {
				d.First, d.Last, d.Missing = codec.FromMicro(first), codec.FromMicro(last), codec.OrNil(d.Missing)
				d.Outcome, d.Recorded, d.Replayed = verdict.OutcomeOf(outcome), verdict.DecisionOf(recorded), verdict.DecisionOf(replayed)
				for i := range at {
					d.Examples = append(d.Examples,
						DriftExample{AuditID: ids[i], User: users[i], Verb: verbs[i], URI: uris[i], At: codec.FromMicro(at[i])})
				}
			}
	})
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
