package stream

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/segmentio/kafka-go"
	"go.uber.org/zap"

	"github.com/retrial-io/retrial/internal/sleep"
)

// GroupLease is the prefix of the consumer groups through which leases are held, and work is divided.
const GroupLease = "retrial-lease-"

// Lease runs f while this process holds the named lease, until ctx ends; it then returns nil. Of all processes that request the lease on
// one Kafka, one holds it: the member of a group that is assigned the first partition of TopicDeadLetter, of which nothing is read. The
// context of f ends when the lease is lost; f must then return. A holder that is cut off notices only after a while, so for the length of a
// session two may believe they hold it: f must tolerate that. If f returns before its context has ended, any candidate gets the lease after
// a pause.
func (c *Client) Lease(ctx context.Context, name string, f func(ctx context.Context) error) error {
	log := c.log.With(zap.String("lease", name))
	err := c.join(ctx, GroupLease+name, TopicDeadLetter, log, func(gen *kafka.Generation, _ int) {
		first := func(a kafka.PartitionAssignment) bool { return a.ID == 0 }
		if slices.ContainsFunc(gen.Assignments[c.topic(TopicDeadLetter)], first) { // otherwise another process holds it
			during(ctx, gen, func(ctx context.Context) { hold(ctx, log, f) })
		}
	})
	if err != nil {
		return fmt.Errorf("lease %s: %w", name, err)
	}
	return nil
}

// Divide divides work among all processes that ask for a share of it on one Kafka, and runs f with that of this process, until ctx ends; it
// then returns nil. There are as many parts as TopicEvents has partitions, of which nothing is read, and each has one process. For f the
// same holds as for Lease; whoever comes or goes, all shares are given anew.
func (c *Client) Divide(ctx context.Context, name string, f func(ctx context.Context, s *Share) error) error {
	log, group := c.log.With(zap.String("lease", name)), GroupLease+name
	err := c.join(ctx, group, TopicEvents, log, func(gen *kafka.Generation, counted int) {
		during(ctx, gen, func(ctx context.Context) {
			s := &Share{Of: counted, c: c, group: group, generation: int(gen.ID), member: gen.MemberID}
			for _, a := range gen.Assignments[c.topic(TopicEvents)] {
				s.Parts, s.Of = append(s.Parts, int32(a.ID)), max(s.Of, a.ID+1)
			}
			if counted == 0 {
				err := c.retry(ctx, func(ctx context.Context) error {
					n, err := c.count(ctx, TopicEvents)
					s.Of = max(s.Of, n)
					return err
				})
				if err != nil {
					return // and the share is given anew
				}
			}
			ctx, cancel := context.WithCancel(ctx)
			watched := make(chan struct{})
			go func() {
				defer close(watched)
				defer cancel()
				c.watchPartitions(ctx, TopicEvents, s.Of)
			}()
			if len(s.Parts) > 0 { // otherwise there are more processes than parts
				hold(ctx, log.With(zap.Int32s("parts", s.Parts), zap.Int("of", s.Of)), func(ctx context.Context) error { return f(ctx, s) })
				cancel()
			}
			<-watched
			cancel()
		})
	})
	if err != nil {
		return fmt.Errorf("divide %s: %w", name, err)
	}
	return nil
}

// Share is what one process has of work that is divided by name.
type Share struct {
	Parts []int32
	Of    int // parts there are

	c             *Client
	group, member string
	generation    int
}

// All reports whether this process has all parts.
func (s *Share) All() bool { return len(s.Parts) == s.Of }

// Has reports whether what has the name belongs to the share.
func (s *Share) Has(name string) bool {
	return slices.Contains(s.Parts, PartitionOf([]byte(name), s.Of))
}

// Since returns up to when all parts are known to have been done, by whichever process had them: see Done. It is zero if that is not known.
func (s *Share) Since(ctx context.Context) (at time.Time, err error) {
	commits, err := s.c.committed(ctx, s.group, TopicEvents, s.Parts...)
	for _, c := range commits {
		text, given := strings.CutPrefix(c.metadata, doneUntil)
		us, invalid := strconv.ParseInt(text, 10, 64)
		if until := time.UnixMicro(us); given && invalid == nil && (at.IsZero() || until.Before(at)) {
			at = until
		}
	}
	return at, err
}

// doneUntil is what the metadata of a part's commit begins with; microseconds since 1970 follow.
const doneUntil = "until="

// Done notes for whoever has the parts next up to when they are done. It is refused if this process has lost them.
func (s *Share) Done(ctx context.Context, until time.Time) error {
	// Commits need an offset, though nothing is read. With that of the group that stores events, this one shows no lag of its own.
	stored, err := s.c.committed(ctx, GroupReplay, TopicEvents, s.Parts...)
	if err != nil {
		return err
	}
	offsets := map[int32]int64{}
	for _, p := range s.Parts {
		offsets[p] = max(stored[p].offset, 0)
	}
	text := doneUntil + strconv.FormatInt(until.UnixMicro(), 10)
	return s.c.commit(ctx, commitRequest{group: s.group, generation: s.generation, member: s.member, topic: TopicEvents, offsets: offsets,
		metadata: func(int32) string { return text }})
}

// pauseOfFailure is how long the lease is idle after its holder's work failed.
const pauseOfFailure = time.Second

func hold(ctx context.Context, log *zap.Logger, f func(ctx context.Context) error) {
	log.Info("lease taken")
	err := f(ctx)
	if ctx.Err() != nil {
		log.Info("lease released")
		return
	}
	if err == nil {
		err = errors.New("the work ended by itself")
	}
	log.Warn("work under a lease failed, another process may try", zap.Error(err))
	_ = sleep.For(ctx, pauseOfFailure) // nothing follows
}
