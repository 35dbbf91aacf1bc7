package native

import (
	"github.com/ClickHouse/ch-go/proto"
)

// Micros is a column of times in microseconds.
type Micros struct{ *proto.ColInt64 }

// Type is part of proto.Column.
func (Micros) Type() proto.ColumnType { return "DateTime64(6, 'UTC')" }

// Dates is a column of days.
type Dates struct{ *proto.ColUInt16 }

// Type is part of proto.Column.
func (Dates) Type() proto.ColumnType { return "Date" }

// Seconds is a column of times in seconds.
type Seconds struct{ *proto.ColUInt32 }

// Type is part of proto.Column.
func (Seconds) Type() proto.ColumnType { return "DateTime('UTC')" }
