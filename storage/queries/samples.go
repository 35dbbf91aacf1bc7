package queries

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// Sampled is something that a subject with its groups asked for, or that a check behind its requests asked, of whose requests some are to
// be named.
type Sampled struct {
	Subject    string
	Groups     []string
	Check      string // as verdicts name it; "" for the request itself
	Attributes verdict.Attributes
	Last       time.Time // when its last request came
}

// key is what columns of events have to be equal to.
func (s *Sampled) key() string {
	a := &s.Attributes
	return strings.Join([]string{s.Subject, fmt.Sprint(codec.GroupSet(s.Groups)), s.Check, a.Verb, a.APIGroup, a.Resource, a.Subresource,
		a.Namespace, nameOf(s.Check, a.Name), a.Path}, "\x00")
}

// nameOf leaves the name of a signer out, which is in the object of a request and not in the row.
func nameOf(check, name string) string {
	if strings.HasPrefix(check, "signer-") {
		return ""
	}
	return name
}

// sampledRows are the requests themselves, and the checks behind them: members of implied are read by place, see codec.
var sampledRows = [...]string{`SELECT audit_id, sign, request_received,
        concat(subject, '\0', toString(group_set), '\0\0', attr_verb, '\0', attr_api_group, '\0', attr_resource, '\0',
            attr_subresource, '\0', attr_namespace, '\0', attr_name, '\0', attr_path) AS asked
    FROM %s.events WHERE subject IN {subjects:Array(String)} AND `,
	`SELECT audit_id, sign, request_received, arrayJoin(implied) AS i, JSONExtractString(i, 1) AS check, JSONExtractString(i, 20) AS by,
        concat(if(by = '', subject, user_name), '\0', if(by = '', toString(group_set), by), '\0', check, '\0',
            JSONExtractString(i, 5), '\0', JSONExtractString(i, 7), '\0', JSONExtractString(i, 9), '\0', JSONExtractString(i, 10), '\0',
            JSONExtractString(i, 11), '\0', if(startsWith(check, 'signer-'), '', JSONExtractString(i, 12)), '\0',
            JSONExtractString(i, 13)) AS asked
    FROM %s.events WHERE (subject IN {subjects:Array(String)} OR user_name IN {subjects:Array(String)}) AND notEmpty(implied) AND `}

const samplesQuery = `SELECT asked, audit_id FROM (%s
    minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND intDiv(toUInt32(minute), 86400) IN {days:Array(UInt32)} AND
    cluster = {cluster:String} AND outcome IN ('match', 'ambiguous'))
WHERE asked IN {asked:Array(String)} AND audit_id != ''
GROUP BY asked, audit_id HAVING sum(toInt64(sign)) > 0
ORDER BY max(request_received) DESC, audit_id LIMIT %d BY asked`

// Samples returns for each of some accesses the audit IDs of its newest requests, so many at most, that are stored and came on the day
// (UTC) of its last.
func (rd *Reader) Samples(ctx context.Context, cluster string, of []Sampled, most int) ([][]string, error) {
	out, places := make([][]string, len(of)), map[string][]int{}
	subjects, days, kinds := map[string]bool{}, map[uint32]bool{}, [2]bool{}
	var first, last time.Time
	for i := range of {
		s := &of[i]
		places[s.key()] = append(places[s.key()], i)
		subjects[s.Subject], days[codec.Minute(s.Last)/86400], kinds[min(len(s.Check), 1)] = true, true, true
		if day := s.Last.UTC().Truncate(24 * time.Hour); first.IsZero() || day.Before(first) {
			first = day
		}
		if s.Last.After(last) {
			last = s.Last
		}
	}
	p := minutes(cluster, first, last.Add(time.Microsecond))
	p["subjects"], p["days"] = statement.Texts(slices.Sorted(maps.Keys(subjects))), statement.Numbers(slices.Sorted(maps.Keys(days)))
	p["asked"] = statement.Texts(slices.Sorted(maps.Keys(places)))
	type sample struct{ asked, id string }
	for kind, rows := range sampledRows {
		if !kinds[kind] {
			continue
		}
		query := fmt.Sprintf(samplesQuery, rows, most)
		list, err := statement.Collect(ctx, rd.at, query, p, func(s *sample) ([]any, func()) { return []any{&s.asked, &s.id}, nil })
		if err != nil {
			return nil, fmt.Errorf("samples of requests of cluster %q: %w", cluster, err)
		}
		for _, s := range list {
			for _, i := range places[s.asked] {
				out[i] = append(out[i], s.id)
			}
		}
	}
	return out, nil
}
