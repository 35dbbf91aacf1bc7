package stream

import (
	"reflect"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
)

func TestRecordSurvivesTheBroker(t *testing.T) {
	w := newWorld(t)
	want := []Record{
		{Topic: TopicPolicy, Key: []byte("prod"), Value: []byte(`{"kind":"Event"}`), Kind: KindPolicyEvent, Cluster: "prod",
			Source: "webhook", APIServer: "apiserver-2", Received: time.UnixMicro(1700000000123456).UTC(),
			Content: event.Hash128{Hi: 0x0102030405060708, Lo: 0xf1f2f3f4f5f6f7f8}},
		{Topic: TopicPolicy, Key: []byte("prod"), Value: []byte{0, 255, 10, 13}, Kind: KindObservation, Cluster: "prod",
			Received: time.UnixMicro(1).UTC()},
		{Topic: TopicPolicy, Key: []byte("prod"), Value: []byte("x"), Kind: KindObservation, Cluster: "prod", Source: "import",
			Received: time.UnixMicro(0).UTC()},
	}
	before := time.Now().Add(-time.Millisecond)
	if err := w.Producer().Produce(deadline(t), want...); err != nil {
		t.Fatal(err)
	}
	var got []Record
	all := make(chan struct{})
	r := w.ReadPolicy(deadline(t), nil, func(rs []Record) error {
		if got = append(got, rs...); len(got) == len(want) {
			close(all)
		}
		return nil
	}, nil)
	wait(t, "records", all)
	r.Close()
	for i := range got {
		g := got[i]
		if g.Appended.Before(before.Truncate(time.Millisecond)) || g.Appended.After(time.Now()) {
			t.Errorf("record %d appended at %v", i, g.Appended)
		}
		if g.Position.Epoch == 0 || g.Position.Offset != int64(i) || g.Position.Partition != PartitionOf(g.Key, DefaultPartitions) {
			t.Errorf("record %d at %+v", i, g.Position)
		}
		g.Appended, g.Position, g.fingerprint = time.Time{}, event.Position{}, 0
		if !reflect.DeepEqual(g, want[i]) {
			t.Errorf("record %d\n got %+v\nwant %+v", i, g, want[i])
		}
	}
}

func TestConsumerReadsEverythingInOrder(t *testing.T) {
	w := newWorld(t)
	const n = 2000
	if err := w.Producer().Produce(deadline(t), recs(0, n)...); err != nil {
		t.Fatal(err)
	}
	c := newCollector(n)
	stop := w.consume(t, c)
	wait(t, "all records", c.full)
	stop()
	for v, times := range c.seen {
		if times != 1 {
			t.Errorf("%s was read %d times", v, times)
		}
	}
	if len(c.parts) != DefaultPartitions {
		t.Errorf("records in %d partitions, want %d", len(c.parts), DefaultPartitions)
	}
	for p, offsets := range c.parts {
		for i, o := range offsets {
			if o != int64(i) {
				t.Fatalf("partition %d: record %d has offset %d", p, i, o)
			}
		}
	}
}
