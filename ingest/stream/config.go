package stream

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"
	"go.uber.org/zap"
)

// Config is what NewClient needs. Brokers is required; each other field states its default,
// which a zero value selects.
type Config struct {
	Brokers []string // host:port
	// Dial opens connections instead of the network, as embedded.Broker.Dial does. Nil:
	// TCP.
	Dial func(ctx context.Context, network, addr string) (net.Conn, error)
	TLS  *tls.Config // nil: plain text
	SASL *SASL       // nil: no authentication

	ClientID    string // as the broker logs it; "retrial"
	TopicPrefix string // before every topic and group name; ""

	// Settings of topics that EnsureTopics creates.
	Partitions int // of TopicEvents and TopicPolicy; DefaultPartitions
	// ClusterPartitions is how many partitions of a new TopicEvents a cluster is spread over; 0: over all.
	ClusterPartitions int
	Replication       int           // 0: the broker's default.replication.factor
	Retention         time.Duration // DefaultRetention; negative: unlimited

	MaxRecordBytes int           // DefaultMaxRecordBytes
	BatchBytes     int           // records of one batch, before compression; 1 MiB
	InFlightBytes  int64         // records in Produce calls that have not returned; 64 MiB
	ProduceTimeout time.Duration // of a Produce call, retries included; 20 s

	FetchBytes int64         // asked of the broker per fetch, as stored; 1 MiB
	FetchWait  time.Duration // how long the broker waits for a first record; 250 ms

	// InProcess means that the broker lives and dies with this process, like embedded.Broker.
	// Then no member of a group is dead while the others live: a silent one was stopped or
	// starved, and the coordinator with it, so it keeps its place.
	InProcess         bool
	HeartbeatInterval time.Duration // 1 s, InProcess 15 s; how fast a member notices a rebalance
	SessionTimeout    time.Duration // 10 s, InProcess a day; how fast a dead member is noticed
	RebalanceTimeout  time.Duration // 30 s; how long a handler may take to end
	// PartitionsEvery is how often it is looked whether a topic that is consumed has more partitions, which
	// are then assigned; 30 s. Negative: never.
	PartitionsEvery time.Duration
	// StallTimeout is how long a fetch may return nothing although there are records
	// before the group client is restarted; 60 s.
	StallTimeout time.Duration

	Log        *zap.Logger           // nil: silent
	Registerer prometheus.Registerer // nil: metrics are kept but not exposed
}

// SASL authenticates to the brokers.
type SASL struct {
	Mechanism string // "PLAIN", "SCRAM-SHA-256" or "SCRAM-SHA-512"
	User      string
	Password  string
}

func (s *SASL) mechanism() (sasl.Mechanism, error) {
	if s == nil {
		return nil, nil
	}
	switch s.Mechanism {
	case "PLAIN":
		return plain.Mechanism{Username: s.User, Password: s.Password}, nil
	case "SCRAM-SHA-256":
		return scram.Mechanism(scram.SHA256, s.User, s.Password)
	case "SCRAM-SHA-512":
		return scram.Mechanism(scram.SHA512, s.User, s.Password)
	}
	return nil, fmt.Errorf("unknown SASL mechanism %q: want PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512", s.Mechanism)
}

func (c *Config) setDefaults() {
	def := func(p *time.Duration, d time.Duration) {
		if *p == 0 {
			*p = d
		}
	}
	c.ClientID = cmp.Or(c.ClientID, "retrial")
	if c.Partitions <= 0 {
		c.Partitions = DefaultPartitions
	}
	c.Replication = cmp.Or(c.Replication, -1)
	if c.MaxRecordBytes <= 0 {
		c.MaxRecordBytes = DefaultMaxRecordBytes
	}
	c.BatchBytes = cmp.Or(c.BatchBytes, 1<<20)
	c.InFlightBytes = cmp.Or(c.InFlightBytes, 64<<20)
	c.FetchBytes = cmp.Or(c.FetchBytes, 1<<20)
	if c.Log == nil {
		c.Log = zap.NewNop()
	}
	def(&c.Retention, DefaultRetention)
	def(&c.ProduceTimeout, 20*time.Second)
	def(&c.FetchWait, 250*time.Millisecond)
	if c.InProcess {
		def(&c.HeartbeatInterval, 15*time.Second)
		def(&c.SessionTimeout, 24*time.Hour)
	}
	def(&c.HeartbeatInterval, time.Second)
	def(&c.SessionTimeout, 10*time.Second)
	def(&c.RebalanceTimeout, 30*time.Second)
	def(&c.PartitionsEvery, 30*time.Second)
	def(&c.StallTimeout, 60*time.Second)
}
