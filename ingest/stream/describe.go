package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/segmentio/kafka-go"
)

// Partitions are those of TopicEvents, and the layout in force.
type Partitions struct {
	Layout     Layout           `json:"layout"`
	Partitions []PartitionState `json:"partitions"`
}

// PartitionState is one of them as its owner has committed it.
type PartitionState struct {
	Partition int32  `json:"partition"`
	Layout    Layout `json:"layout"` // that its reader has reached
	End       int64  `json:"end"`
	Lag       int64  `json:"lag"`   // records that are not settled
	Owner     string `json:"owner"` // address of the process that has it; empty if none has, or that cannot be asked
}

// Reached reports whether every partition's reader has reached the layout in force; in epoch 0 there is nothing to reach.
func (p *Partitions) Reached() bool {
	behind := func(one PartitionState) bool { return one.Layout.Compare(p.Layout) < 0 }
	return p.Layout.Epoch == 0 || !slices.ContainsFunc(p.Partitions, behind)
}

// DescribePartitions asks Kafka for the layout, and for ends, commits and owners of the partitions of TopicEvents.
func (c *Client) DescribePartitions(ctx context.Context) (out Partitions, err error) {
	err = c.retry(ctx, func(ctx context.Context) (err error) {
		if out.Layout, err = c.Layout(ctx); err != nil {
			return err
		}
		n, err := c.Partitions(ctx, TopicEvents) // as the layout has just counted them
		if err != nil {
			return err
		}
		parts := make([]int32, n)
		for i := range parts {
			parts[i] = int32(i)
		}
		starts, ends, err := c.bounds(ctx, TopicEvents, parts...)
		if err != nil {
			return err
		}
		commits, err := c.committed(ctx, GroupReplay, TopicEvents, parts...)
		if err != nil {
			return err
		}
		owners, err := c.owners(ctx)
		if err != nil {
			return err
		}
		out.Partitions = make([]PartitionState, n)
		for _, p := range parts {
			m, _ := decodeMetadata(commits[p].metadata) // foreign metadata tells of no layout
			next := max(commits[p].offset, starts[p])
			out.Partitions[p] = PartitionState{Partition: p, Layout: m.pending.Layout, End: ends[p], Lag: max(0, ends[p]-next),
				Owner: owners[p]}
		}
		return nil
	})
	return out, err
}

// owners returns the addresses of the members of GroupReplay by the partitions they have.
func (c *Client) owners(ctx context.Context) (map[int32]string, error) {
	resp, err := c.kafka.DescribeGroups(ctx, &kafka.DescribeGroupsRequest{GroupIDs: []string{c.group(GroupReplay)}})
	if err != nil {
		return nil, fmt.Errorf("describe group %s: %w", GroupReplay, err)
	}
	owners := map[int32]string{}
	for _, g := range resp.Groups {
		if g.Error != nil && !errors.Is(g.Error, kafka.GroupIdNotFound) {
			return nil, fmt.Errorf("describe group %s: %w", GroupReplay, g.Error)
		}
		for _, m := range g.Members {
			for _, t := range m.MemberAssignments.Topics {
				for _, p := range t.Partitions {
					owners[int32(p)] = m.ClientHost
				}
			}
		}
	}
	return owners, nil
}
