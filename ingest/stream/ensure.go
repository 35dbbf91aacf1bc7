package stream

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"
)

// EnsureTopics creates the topics that are missing and learns how many partitions each
// has. Topics that exist keep their settings, except that max.message.bytes is raised when
// it is too low for Config.MaxRecordBytes. A user without the rights to create topics, or to
// read and alter their settings, may use topics that an administrator has set up.
//
// Errors: ErrAuth; errors that say what is wrong with the configuration or the topics;
// ErrTransient if ctx ended first.
func (c *Client) EnsureTopics(ctx context.Context) error {
	if err := c.Ping(ctx); err != nil {
		return err
	}
	return c.retry(ctx, func(ctx context.Context) error {
		missing, err := c.missing(ctx)
		if err == nil {
			err = c.create(ctx, missing)
		}
		if err == nil {
			err = c.raiseLimits(ctx)
		}
		if err == nil {
			err = c.refresh(ctx)
		}
		if err == nil {
			err = c.beginLayout(ctx)
		}
		return err
	})
}

func (c *Client) missing(ctx context.Context) ([]string, error) {
	resp, err := c.kafka.Metadata(ctx, &kafka.MetadataRequest{Topics: c.topics()})
	if err != nil {
		return nil, fmt.Errorf("read topics: %w", c.explain(right{"see topics", ""}, err))
	}
	var missing []string
	for _, t := range resp.Topics {
		r := right{"see topic", t.Name}
		switch {
		case errors.Is(t.Error, kafka.UnknownTopicOrPartition):
			missing = append(missing, strings.TrimPrefix(t.Name, c.cfg.TopicPrefix))
		case errors.Is(t.Error, kafka.TopicAuthorizationFailed):
			return nil, c.denied(r, fmt.Sprintf("topic %s: grant Read and Write on it, and Create unless it exists", t.Name), t.Error)
		case t.Error == nil:
			_ = c.answered(r, nil)
		}
	}
	return missing, nil
}

func (c *Client) create(ctx context.Context, topics []string) error {
	if len(topics) == 0 {
		return nil
	}
	retention := "-1"
	if c.cfg.Retention > 0 {
		retention = strconv.FormatInt(c.cfg.Retention.Milliseconds(), 10)
	}
	req := &kafka.CreateTopicsRequest{}
	for _, t := range topics {
		n := c.cfg.Partitions
		if t == TopicDeadLetter {
			n = 1
		}
		req.Topics = append(req.Topics, kafka.TopicConfig{
			Topic: c.topic(t), NumPartitions: n, ReplicationFactor: c.cfg.Replication,
			ConfigEntries: []kafka.ConfigEntry{
				{ConfigName: "cleanup.policy", ConfigValue: "delete"},
				{ConfigName: "compression.type", ConfigValue: "producer"},
				{ConfigName: "max.message.bytes", ConfigValue: strconv.Itoa(maxMessageBytes)},
				{ConfigName: "message.timestamp.type", ConfigValue: "CreateTime"},
				{ConfigName: "retention.ms", ConfigValue: retention},
				{ConfigName: "retention.bytes", ConfigValue: "-1"},
			},
		})
	}
	resp, err := c.kafka.CreateTopics(ctx, req)
	if err != nil {
		return fmt.Errorf("create topics: %w", c.explain(right{"create topics", ""}, err))
	}
	for _, t := range topics {
		switch err := resp.Errors[c.topic(t)]; {
		case err == nil, errors.Is(err, kafka.TopicAlreadyExists):
		case errors.Is(err, kafka.InvalidReplicationFactor):
			return fmt.Errorf("create topic %s with %d replicas, more than this Kafka has brokers: %w",
				c.topic(t), c.cfg.Replication, err)
		case errors.Is(err, kafka.TopicAuthorizationFailed):
			return c.denied(right{"create topic", c.topic(t)},
				fmt.Sprintf("topic %s does not exist: create it, or grant Create on it", c.topic(t)), err)
		default:
			return fmt.Errorf("create topic %s: %w", c.topic(t), err)
		}
	}
	return nil
}

func (c *Client) raiseLimits(ctx context.Context) error {
	needed := max(c.cfg.MaxRecordBytes, c.cfg.BatchBytes) + batchHeader + recordOverhead
	req := &kafka.DescribeConfigsRequest{}
	for _, t := range topicNames {
		req.Resources = append(req.Resources, kafka.DescribeConfigRequestResource{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: c.topic(t), ConfigNames: []string{"max.message.bytes"}})
	}
	resp, err := c.kafka.DescribeConfigs(ctx, req)
	if err != nil {
		return fmt.Errorf("describe topics: %w", err)
	}
	var low []kafka.IncrementalAlterConfigsRequestResource
	for _, r := range resp.Resources {
		if errors.Is(r.Error, kafka.TopicAuthorizationFailed) {
			c.log.Warn("cannot check whether a topic accepts the largest events: "+
				"grant DescribeConfigs on it, or make sure that max.message.bytes is at least the value",
				zap.String("topic", r.ResourceName), zap.Int("value", needed))
			continue
		}
		if r.Error != nil {
			return fmt.Errorf("describe topic %s: %w", r.ResourceName, r.Error)
		}
		for _, e := range r.ConfigEntries {
			if n, err := strconv.Atoi(e.ConfigValue); e.ConfigName == "max.message.bytes" && err == nil && n < needed {
				low = append(low, kafka.IncrementalAlterConfigsRequestResource{
					ResourceType: kafka.ResourceTypeTopic, ResourceName: r.ResourceName,
					Configs: []kafka.IncrementalAlterConfigsRequestConfig{{
						Name: e.ConfigName, Value: strconv.Itoa(maxMessageBytes), ConfigOperation: kafka.ConfigOperationSet}}})
			}
		}
	}
	if len(low) == 0 {
		return nil
	}
	altered, err := c.kafka.IncrementalAlterConfigs(ctx, &kafka.IncrementalAlterConfigsRequest{Resources: low})
	if err != nil {
		return fmt.Errorf("raise max.message.bytes to %d: %w", maxMessageBytes, err)
	}
	for _, r := range altered.Resources {
		switch {
		case errors.Is(r.Error, kafka.TopicAuthorizationFailed):
			return c.denied(right{"alter topic", r.ResourceName}, fmt.Sprintf("max.message.bytes of topic %s is below %d, "+
				"which the largest events need: raise it, or grant AlterConfigs on the topic",
				r.ResourceName, needed), r.Error)
		case r.Error != nil:
			return fmt.Errorf("raise max.message.bytes of topic %s to %d: %w", r.ResourceName, maxMessageBytes, r.Error)
		}
	}
	return nil
}
