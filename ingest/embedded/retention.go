package embedded

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
	"go.uber.org/zap"
)

const produceKey = int16(kmsg.Produce)

// admit refuses produce requests while the log is at its cap and passes all others on. It runs in the broker's loop and must not call it.
func (b *Broker) admit(req kmsg.Request) (kmsg.Response, error, bool) { //nolint:revive // the broker's signature
	b.kafka.KeepControl()
	r, ok := req.(*kmsg.ProduceRequest)
	if !ok {
		return nil, nil, false
	}
	limit := b.cfg.MaxBytes
	if len(r.Topics) == 1 && slices.Contains(b.cfg.Reserve, r.Topics[0].Topic) {
		limit += limit / 8
	}
	size := requestBytes(r)
	if b.held.Add(size) <= limit {
		return nil, nil, false
	}
	b.held.Add(-size)
	b.metrics.refused.Inc()
	resp := r.ResponseKind().(*kmsg.ProduceResponse)
	for _, t := range r.Topics {
		rt := kmsg.NewProduceResponseTopic()
		rt.Topic, rt.TopicID = t.Topic, t.TopicID
		for _, p := range t.Partitions {
			rp := kmsg.NewProduceResponseTopicPartition()
			rp.Partition = p.Partition
			rp.ErrorCode = kerr.ThrottlingQuotaExceeded.Code
			rp.BaseOffset = -1
			rt.Partitions = append(rt.Partitions, rp)
		}
		resp.Topics = append(resp.Topics, rt)
	}
	return resp, nil, true
}

func requestBytes(r *kmsg.ProduceRequest) (n int64) {
	for _, t := range r.Topics {
		for _, p := range t.Partitions {
			n += int64(len(p.Records))
		}
	}
	return n
}

func (b *Broker) trimLoop() {
	defer b.done.Done()
	t := time.NewTicker(b.cfg.TrimInterval)
	defer t.Stop()
	for {
		select {
		case <-b.stop:
			return
		case <-t.C:
			b.Trim()
		}
	}
}

// Trim deletes what every group of Config.Consumers has committed, except the last batch of each partition, and counts what is left.
func (b *Broker) Trim() {
	var held int64
	for topic, groups := range b.cfg.Consumers {
		for _, p := range b.kafka.PartitionInfos(topic) {
			to, ok := b.committed(topic, p.Partition, groups)
			// The broker derives a partition's next offset from its last batch: after a crash, an emptied one would count from 0 again.
			to = min(to, p.HighWatermark-1)
			if !ok || to <= p.LogStartOffset {
				continue
			}
			if err := b.kafka.DeleteRecords(topic, p.Partition, to); err != nil {
				b.log.Warn("delete consumed records", zap.String("topic", topic), zap.Int32("partition", p.Partition),
					zap.Int64("below", to), zap.Error(err))
				continue
			}
			b.metrics.trimmed.Add(float64(to - p.LogStartOffset))
		}
	}
	// The sum replaces what admit added since; a request being appended may be missed once, and shifts the cap until the next count.
	for topic := range b.cfg.Consumers {
		for _, p := range b.kafka.PartitionInfos(topic) {
			held += p.NumBytes
		}
	}
	b.held.Store(held)
	b.metrics.held.Set(float64(held))
	b.metrics.limit.Set(float64(b.cfg.MaxBytes))
}

// committed returns the lowest offset the groups have committed; ok is false if one of
// them has committed none, or no group is named.
func (b *Broker) committed(topic string, partition int32, groups []string) (low int64, ok bool) {
	for i, g := range groups {
		info := b.kafka.GroupInfo(g)
		if info == nil {
			return 0, false
		}
		c, found := info.Commits[topic][partition]
		if !found {
			return 0, false
		}
		if i == 0 || c.Offset < low {
			low = c.Offset
		}
	}
	return low, len(groups) > 0
}

// verify compares every commit with the log that was loaded, before any client connects, and replaces those that need records the log does
// not have: the log would assign the same offsets again, and a consumer would wait for them silently, or mistake new records for old ones.
func (b *Broker) verify() error {
	check := b.cfg.Verify
	if check == nil {
		check = func(committed int64, _ string, hw int64) (string, bool) { return "", committed <= hw }
	}
	for topic, groups := range b.cfg.Consumers {
		for _, group := range groups {
			info := b.kafka.GroupInfo(group)
			if info == nil {
				continue
			}
			for partition, c := range info.Commits[topic] {
				var start, end int64
				if p := b.kafka.PartitionInfo(topic, partition); p != nil {
					start, end = p.LogStartOffset, p.HighWatermark
				}
				metadata, ok := check(c.Offset, c.Metadata, end)
				if ok {
					continue
				}
				b.metrics.resets.Inc()
				b.log.Error("the log is shorter than what was consumed: records were lost, offsets start over",
					zap.String("topic", topic), zap.Int32("partition", partition), zap.String("group", group),
					zap.Int64("committed", c.Offset), zap.Int64("log_start", start), zap.Int64("log_end", end))
				if err := b.reset(group, topic, partition, start, metadata); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (b *Broker) reset(group, topic string, partition int32, offset int64, metadata string) error {
	transport := &kafka.Transport{Dial: b.Dial}
	defer transport.CloseIdleConnections()
	client := &kafka.Client{Addr: kafka.TCP(address), Transport: transport, Timeout: 10 * time.Second}
	resp, err := client.OffsetCommit(context.Background(), &kafka.OffsetCommitRequest{
		GroupID:      group,
		GenerationID: -1,
		Topics:       map[string][]kafka.OffsetCommit{topic: {{Partition: int(partition), Offset: offset, Metadata: metadata}}},
	})
	if err == nil {
		for _, p := range resp.Topics[topic] {
			if p.Error != nil {
				err = p.Error
			}
		}
	}
	if err != nil {
		return fmt.Errorf("reset the commit of group %s on %s/%d: %w", group, topic, partition, err)
	}
	return nil
}
