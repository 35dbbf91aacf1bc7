package storage

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/retrial-io/retrial/storage/native"
	"github.com/retrial-io/retrial/storage/queries"
	"github.com/retrial-io/retrial/verdict"
)

// SaveRejudge stores a request to judge again. Saving it twice changes nothing.
func (s *Store) SaveRejudge(ctx context.Context, r verdict.Rejudge) error {
	if err := s.saveRejudge(ctx, r.Cluster, r.ID, queries.NoPartition, 0, r); err != nil {
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
