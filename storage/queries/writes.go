package queries

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// Written is a stretch of time in which an object was written, bounds included.
type Written struct {
	Resource, Group, Namespace, Name string
	From, To                         time.Time
}

// writeVerbs are those of requests that change objects.
var writeVerbs = []string{"create", "update", "patch", "delete", "deletecollection"} //nolint:gochecknoglobals // constant table

// By tells whether an event can be the end of the request that wrote the object: a request of the
// object, or of the collection it is in, that began and ended within that time.
func (w *Written) By(e *event.Event) bool {
	ref := e.ObjectRef
	return ref != nil && e.Stage == event.StageResponseComplete && slices.Contains(writeVerbs, e.Verb) &&
		ref.Resource == w.Resource && ref.APIGroup == w.Group && (ref.Namespace == w.Namespace || ref.Namespace == "") && (ref.Name == w.Name || ref.Name == "") &&
		!e.RequestReceivedTimestamp.Before(w.From) && !e.RequestReceivedTimestamp.After(w.To) && !e.StageTimestamp.After(w.To)
}

// mostWrites bounds the rows that Writes returns.
const mostWrites = 2000

// Writes returns the ends of the requests that can have written objects, newest first, of all
// of them by one query: of each what codec.Listed reads.
func (rd *Reader) Writes(ctx context.Context, cluster string, of []Written) ([]verdict.Row, error) {
	if len(of) == 0 {
		return nil, nil
	}
	p := clickhouse.Parameters{"cluster": statement.Text(cluster), "verbs": statement.Texts(slices.Clone(writeVerbs)), "stage": statement.Text(string(event.StageResponseComplete))}
	each := make([]string, len(of))
	first, last := codec.Minute(of[0].From), codec.Minute(of[0].To)
	for i := range of {
		w := &of[i]
		first, last = min(first, codec.Minute(w.From)), max(last, codec.Minute(w.To))
		each[i] = fmt.Sprintf("toUnixTimestamp64Micro(request_received) BETWEEN %d AND %d AND object_resource = {r%[3]d:String} AND object_namespace IN ('', {s%[3]d:String}) AND object_name IN ('', {n%[3]d:String})",
			w.From.UnixMicro(), w.To.UnixMicro(), i)
		p[fmt.Sprint("r", i)], p[fmt.Sprint("s", i)], p[fmt.Sprint("n", i)] = statement.Text(w.Resource), statement.Text(w.Namespace), statement.Text(w.Name)
	}
	p["first_minute"], p["last_minute"], p["limit"] = fmt.Sprint(first), fmt.Sprint(last), fmt.Sprint(mostWrites)
	where := "cluster = {cluster:String} AND minute BETWEEN {first_minute:UInt32} AND {last_minute:UInt32} AND stage = {stage:String} AND " +
		"verb IN {verbs:Array(String)} AND (" + strings.Join(each, " OR ") + ")"
	out, err := rd.list(ctx, where, p)
	if err != nil {
		return nil, fmt.Errorf("find writes in cluster %q: %w", cluster, err)
	}
	return out, nil
}
