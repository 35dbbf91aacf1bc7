package queries

import (
	"context"
	"fmt"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// StoredKey is the identity of one standing row.
type StoredKey struct {
	Request, Event event.Hash128
}

// EventKeys visits the keys of every standing row of a cluster, for comparing what was sent
// with what is stored. It reads complete rows: a key follows from the event alone.
func (rd *Reader) EventKeys(ctx context.Context, cluster string, visit func(StoredKey) error) error {
	err := rd.rows(ctx, "cluster = {cluster:String}", clickhouse.Parameters{"cluster": statement.Text(cluster)}, func(r verdict.Row) error {
		return visit(StoredKey{Request: r.Request, Event: r.EventKey})
	})
	if err != nil {
		return fmt.Errorf("read the keys of cluster %q: %w", cluster, err)
	}
	return nil
}

// VisitRows visits every standing row of a cluster, complete, in the order of the table. visit
// ends the reading by returning an error, which errors.Is finds in the result.
func (rd *Reader) VisitRows(ctx context.Context, cluster string, visit func(verdict.Row) error) error {
	if err := rd.rows(ctx, "cluster = {cluster:String}", clickhouse.Parameters{"cluster": statement.Text(cluster)}, visit); err != nil {
		return fmt.Errorf("read the rows of cluster %q: %w", cluster, err)
	}
	return nil
}
