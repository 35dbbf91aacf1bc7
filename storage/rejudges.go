package storage

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/retrial-io/retrial/storage/native"
	"github.com/retrial-io/retrial/verdict"
)

// noPartition is the kpart of the row that holds a request to judge again.
const noPartition = -1

// SaveRejudge stores a request to judge again. Saving it twice changes nothing.
func (s *Store) SaveRejudge(ctx context.Context, r verdict.Rejudge) error {
	if err := s.saveRejudge(ctx, r.Cluster, r.ID, noPartition, 0, r); err != nil {
		return fmt.Errorf("save request to judge %q again: %w", r.Cluster, err)
	}
	return nil
}

// SaveRejudgeProgress stores how far a partition is; the greatest version of it stands.
func (s *Store) SaveRejudgeProgress(ctx context.Context, cluster, id string, p verdict.RejudgeProgress) error {
	if err := s.saveRejudge(ctx, cluster, id, p.Partition, p.Version, p); err != nil {
		return fmt.Errorf("save progress of judging %q again: %w", cluster, err)
	}
	return nil
}

func (s *Store) saveRejudge(ctx context.Context, cluster, id string, partition int32, version uint64, content any) error {
	text, err := json.Marshal(content)
	if err != nil {
		return err
	}
	var name native.LowCard
	var ids, contents native.TextColumn
	name.Append(cluster)
	ids.Append(id)
	contents.AppendBytes(text)
	return s.insertColumns(ctx, "rejudges", []proto.InputColumn{
		{Name: "cluster", Data: &name}, {Name: "id", Data: &ids}, {Name: "kpart", Data: proto.ColInt32{partition}},
		{Name: "version", Data: proto.ColUInt64{version}}, {Name: "content", Data: &contents},
	}, 1)
}

const rejudgesQuery = `SELECT id, kpart, content FROM %s.rejudges FINAL ORDER BY cluster, id, kpart`

// Rejudges returns every request to judge again with its progress, by cluster and then in the
// order they were made.
func (s *Store) Rejudges(ctx context.Context) ([]verdict.RejudgeJob, error) {
	type line struct {
		id, content string
		partition   int32
	}
	lines, err := collect(ctx, s, rejudgesQuery, nil, func(l *line) ([]any, func()) { return []any{&l.id, &l.partition, &l.content}, nil })
	if err != nil {
		return nil, fmt.Errorf("read requests to judge again: %w", err)
	}
	var out []verdict.RejudgeJob
	for _, l := range lines {
		if l.partition == noPartition {
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
