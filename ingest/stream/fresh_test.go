package stream

import (
	"testing"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"
)

// TestFreshCommitsAreQuiet: where nothing was consumed there is nothing to read from a commit,
// and nothing to warn of: with no commit, with commits of nothing, and after each.
func TestFreshCommitsAreQuiet(t *testing.T) {
	for name, made := range map[string]bool{"no commits": false, "commits of nothing": true} {
		t.Run(name, func(t *testing.T) {
			core, logs := observer.New(zap.WarnLevel)
			w := newWorld(t, func(c *Config) { c.Log = zap.New(core) })
			none := map[string]map[int32]int64{TopicPolicy: {}, TopicEvents: {}}
			for topic := range none {
				parts, err := w.all(deadline(t), topic)
				if err != nil {
					t.Fatal(err)
				}
				for _, p := range parts {
					none[topic][p] = 0
				}
			}
			for group, topic := range map[string]string{GroupPolicy: TopicPolicy, GroupReplay: TopicEvents} {
				if !made {
					break
				}
				if err := w.commit(deadline(t), commitRequest{group: group, generation: -1, topic: topic, offsets: none[topic],
					metadata: func(int32) string { return "" }}); err != nil {
					t.Fatal(err)
				}
			}
			if err := w.CommitPolicy(deadline(t), none[TopicPolicy]); err != nil {
				t.Fatal(err)
			}
			var l policyLog
			r := w.ReadPolicy(deadline(t), nil, l.apply, nil)
			defer r.Close()
			c := newCollector(20)
			stop := w.consume(t, c)
			if err := w.Producer().Produce(deadline(t), append(recs(0, 20), policy("c", "x"))...); err != nil {
				t.Fatal(err)
			}
			wait(t, "events", c.full)
			marks, err := w.HighWatermarks(deadline(t), TopicPolicy)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.WaitFor(deadline(t), marks); err != nil {
				t.Fatal(err)
			}
			if err := w.CommitPolicy(deadline(t), marks); err != nil {
				t.Fatal(err)
			}
			stop()
			for _, a := range c.assign {
				if a.Epoch == 0 || a.Committed != 0 {
					t.Errorf("assigned %+v", a)
				}
			}
			commits, err := w.committed(deadline(t), GroupPolicy, TopicPolicy, 0)
			if err != nil {
				t.Fatal(err)
			}
			if m, err := decodeMetadata(commits[0].metadata); err != nil || m.epoch == 0 {
				t.Errorf("commit %+v is read as %+v, %v", commits[0], m, err)
			}
			for _, e := range logs.All() {
				t.Errorf("%s %v", e.Message, e.ContextMap())
			}
		})
	}
}
