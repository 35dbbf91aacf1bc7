package queries

import (
	"context"
	"strings"

	"github.com/ClickHouse/clickhouse-go/v2"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// rows visits the standing rows that a condition selects.
func (rd *Reader) rows(ctx context.Context, where string, p clickhouse.Parameters, visit func(verdict.Row) error) error {
	return rd.standing(ctx, codec.EveryColumn, "WHERE sign = 1 AND "+where, p, visit)
}

// rowsBefore is rows with a condition that is applied before pairs are taken out, which spares
// most of the work when it selects few. A row and the one that takes it back must meet it
// both or neither: they agree in all columns but the sign.
func (rd *Reader) rowsBefore(ctx context.Context, condition string, p clickhouse.Parameters, visit func(verdict.Row) error) error {
	return rd.standing(ctx, codec.EveryColumn, "PREWHERE "+condition+" WHERE sign = 1", p, visit)
}

// standing visits standing rows with the columns that are wanted.
func (rd *Reader) standing(ctx context.Context, want func(sql string) bool, where string, p clickhouse.Parameters, visit func(verdict.Row) error) error {
	ctx, cancel := context.WithCancel(statement.Params(ctx, p))
	defer cancel()
	r := codec.NewStored()
	list, to := r.Reads(want)
	res, err := rd.at.Conn.Query(ctx, "SELECT "+strings.Join(list, ", ")+" FROM "+rd.at.Table("events")+" FINAL "+where)
	if err != nil {
		return err
	}
	defer res.Close()
	for res.Next() {
		r.Reset()
		if err := res.Scan(to...); err != nil {
			return err
		}
		row, err := r.Row()
		if err != nil {
			return err
		}
		if err := visit(row); err != nil {
			return err
		}
	}
	return res.Err()
}
