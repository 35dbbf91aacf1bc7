package queries

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
)

// Completing asks for the values of a kind that contain a text, in any case.
type Completing struct {
	Cluster, Kind, Text string
	// Resource and, unless it is empty, Namespace say whose names are asked for.
	Resource, Namespace string
	Limit               int
}

// Completion is a value, and by what it is put before others: requests, or how many distinct accesses have it.
type Completion struct {
	Value  string
	Weight int64
}

// completing has where the values of a kind are: a rollup each, and the number they are put in order by.
var completing = map[string]string{ //nolint:gochecknoglobals // constant table
	"subject": "SELECT toString(subject) AS value, sum(count) AS weight FROM %[1]s.activity WHERE cluster = {cluster:String} " +
		"GROUP BY value",
	"userAgent": "SELECT toString(user_agent) AS value, sum(count) AS weight FROM %[1]s.activity WHERE cluster = {cluster:String} " +
		"GROUP BY value",
	"namespace": ofAccesses("toString(namespace)"),
	"verb":      ofAccesses("toString(verb)"),
	"path":      ofAccesses("toString(path)"),
	"resource": ofAccesses("concat(resource, if(api_group = '', '', concat('.', api_group)), if(subresource = '', '', concat('/', " +
		"subresource)))"),
	"group": "SELECT arrayJoin(groups) AS value, toInt64(count()) AS weight FROM (SELECT group_set, any(groups) AS groups " +
		"FROM %[1]s.group_sets WHERE group_set IN (SELECT group_set FROM %[1]s.accesses WHERE cluster = {cluster:String}) " +
		"GROUP BY group_set) GROUP BY value",
	"name": "SELECT name AS value, sum(count) AS weight FROM %[1]s.objects " +
		"WHERE cluster = {cluster:String} AND resource = {resource:String} " +
		"AND ({namespace:String} = '' OR namespace = {namespace:String}) GROUP BY value",
}

func ofAccesses(value string) string {
	return "SELECT " + value + " AS value, toInt64(count()) AS weight FROM %[1]s.accesses WHERE cluster = {cluster:String} GROUP BY value"
}

// Completions returns values of a kind that contain a text: those that begin with it first, then those with most weight. No event is read.
func (rd *Reader) Completions(ctx context.Context, c Completing) ([]Completion, error) {
	of, ok := completing[c.Kind]
	if !ok {
		return nil, fmt.Errorf("values of kind %q are not listed", c.Kind)
	}
	p := clickhouse.Parameters{"cluster": statement.Text(c.Cluster), "text": statement.Text(c.Text),
		"resource": statement.Text(c.Resource), "namespace": statement.Text(c.Namespace), "limit": fmt.Sprint(c.Limit),
		"other": codec.Other}
	out, err := statement.Collect(ctx, rd.at, "SELECT value, weight FROM ("+of+`)
WHERE weight > 0 AND value NOT IN ('', {other:String}) AND position(lowerUTF8(value), lowerUTF8({text:String})) > 0
ORDER BY startsWith(lowerUTF8(value), lowerUTF8({text:String})) DESC, weight DESC, value LIMIT {limit:UInt32}`, p,
		func(v *Completion) ([]any, func()) { return []any{&v.Value, &v.Weight}, nil })
	if err != nil {
		return nil, fmt.Errorf("values of kind %s of cluster %q: %w", c.Kind, c.Cluster, err)
	}
	return out, nil
}
