package queries

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/retrial-io/retrial/storage/statement"
	"github.com/retrial-io/retrial/verdict"
)

// NoPartition is the kpart of the row that holds a request to judge again.
const NoPartition = -1

const rejudgesQuery = `SELECT id, kpart, content FROM %s.rejudges FINAL ORDER BY cluster, id, kpart`

// Rejudges returns every request to judge again with its progress, by cluster and then in the
// order they were made.
func (rd *Reader) Rejudges(ctx context.Context) ([]verdict.RejudgeJob, error) {
	type line struct {
		id, content string
		partition   int32
	}
	lines, err := statement.Collect(ctx, rd.at, rejudgesQuery, nil, func(l *line) ([]any, func()) { return []any{&l.id, &l.partition, &l.content}, nil })
	if err != nil {
		return nil, fmt.Errorf("read requests to judge again: %w", err)
	}
	var out []verdict.RejudgeJob
	for _, l := range lines {
		if l.partition == NoPartition {
			out = append(out, verdict.RejudgeJob{})
			err = json.Unmarshal([]byte(l.content), &out[len(out)-1].Rejudge)
		} else if n := len(out); n > 0 && out[n-1].ID == l.id {
			var p verdict.RejudgeProgress
			err = json.Unmarshal([]byte(l.content), &p)
			out[n-1].Progress = append(out[n-1].Progress, p)
		}
		if err != nil {
			return nil, fmt.Errorf("read request %s to judge again: %w", l.id, err)
		}
	}
	return out, nil
}
