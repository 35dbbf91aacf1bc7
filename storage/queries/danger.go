package queries

import (
	"context"
	"fmt"
	"time"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// GrantedUse is what a grant was used for.
type GrantedUse struct {
	Grant                              verdict.Grant // without the words of its reason
	Verb, Group, Resource, Subresource string

	Requests int64 // of the range, and checks behind requests
	Ever     int64
	Last     time.Time
	Subjects []string // some of those who used it
}

// mostUsers bounds the subjects named of one use.
const mostUsers = 5

// Uses are summed by access and then named: there are many. any keeps the engine from applying the condition on the text to every row.
const grantedUsesQuery = `SELECT granted, verb, api_group, resource, subresource, sum(within) AS requests, sum(n) AS ever,
    toUnixTimestamp64Micro(max(until)), arraySort(groupUniqArray({users:UInt32})(toString(subject)))
FROM (SELECT granted, access, sumIf(count, toUInt16(day) BETWEEN {from_day:UInt16} AND {to_day:UInt16}) AS within, sum(count) AS n, max(last_seen) AS until
    FROM %[1]s.grant_usage
    WHERE cluster = {cluster:String} AND granted IN (
        SELECT text FROM (SELECT any(granted) AS text FROM %[1]s.grant_usage WHERE cluster = {cluster:String} GROUP BY granted)
        WHERE (JSONExtractString(text, 1), JSONExtractString(text, 2), JSONExtractString(text, 3)) IN (
            SELECT tupleElement(b, 1), tupleElement(b, 2), tupleElement(b, 3) FROM (SELECT arrayJoin(arrayZip({kinds:Array(String)}, {namespaces:Array(String)}, {names:Array(String)})) AS b)))
    GROUP BY granted, access HAVING n > 0) AS used
LEFT SEMI JOIN (SELECT access, subject, verb, api_group, resource, subresource FROM %[1]s.accesses WHERE cluster = {cluster:String}) AS named USING (access)
GROUP BY granted, verb, api_group, resource, subresource
ORDER BY granted, verb, api_group, resource, subresource`

// GrantedUses visits what bindings were used for: in the days of a range, and ever.
func (rd *Reader) GrantedUses(ctx context.Context, cluster string, bindings []verdict.Grant, from, to time.Time) ([]GrantedUse, error) {
	if len(bindings) == 0 {
		return nil, nil
	}
	p := days(cluster, from, to)
	var kinds, namespaces, names []string
	for i := range bindings {
		kinds, namespaces, names = append(kinds, bindings[i].BindingKind), append(namespaces, bindings[i].BindingNamespace),
			append(names, bindings[i].Binding)
	}
	p["kinds"], p["namespaces"], p["names"] = statement.Texts(kinds), statement.Texts(namespaces), statement.Texts(names)
	p["users"] = fmt.Sprint(mostUsers)
	var bad error
	out, err := statement.Collect(ctx, rd.at, grantedUsesQuery, p, func(u *GrantedUse) ([]any, func()) {
		var granted string
		var last int64
		return []any{&granted, &u.Verb, &u.Group, &u.Resource, &u.Subresource, &u.Requests, &u.Ever, &last, &u.Subjects},
			func() {
				u.Last = codec.FromMicro(last)
				if bad == nil {
					u.Grant, bad = codec.DecodeGrant(granted)
				}
				u.Grant.Reason = ""
			}
	})
	if err == nil {
		err = bad
	}
	if err != nil {
		return nil, fmt.Errorf("uses of grants of cluster %q: %w", cluster, err)
	}
	return out, nil
}
