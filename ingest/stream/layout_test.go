package stream

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/segmentio/kafka-go"
)

// Fixed for all versions: other processes have appended by the same function.
func TestLayoutIsFixed(t *testing.T) {
	l := Layout{Epoch: 1, Partitions: 12, PerCluster: 3}
	got := ""
	for _, cluster := range []string{"prod", "staging", "east", "west"} {
		got += fmt.Sprint(l.PartitionsOf(cluster), l.PartitionOf(cluster, []byte("request-1")), " ")
	}
	if want := "[6 7 8] 8 [3 4 5] 5 [3 4 5] 5 [0 1 2] 2 "; got != want {
		t.Errorf("partitions are %q, want %q", got, want)
	}
	all := Layout{Partitions: 12, PerCluster: 12}
	for i := range 1000 {
		key := fmt.Append(nil, "key-", i)
		if all.PartitionOf("prod", key) != PartitionOf(key, 12) {
			t.Fatal("spread over all partitions, records are not where they were before there were layouts")
		}
	}
}

// Every request is in one of its cluster's partitions; groups are neighbours, disjoint, and of sizes that differ by one at most; with as
// many processes as divide the groups, none is cut.
func TestGroupsOfALayout(t *testing.T) {
	for p := int32(1); p <= 40; p++ {
		for k := int32(1); k <= p; k++ {
			l := Layout{Epoch: 1, Partitions: p, PerCluster: k}
			groups := map[int32][]int32{}
			for c := range 300 {
				cluster := fmt.Sprint("cluster-", c)
				parts := l.PartitionsOf(cluster)
				if at := l.PartitionOf(cluster, fmt.Append(nil, c)); !slices.Contains(parts, at) {
					t.Fatalf("%s: a request of %s is in %d, not among %v", l, cluster, at, parts)
				}
				if known, ok := groups[parts[0]]; ok && !slices.Equal(known, parts) {
					t.Fatalf("%s: groups %v and %v overlap", l, known, parts)
				}
				groups[parts[0]] = parts
			}
			number := (p + k - 1) / k
			for _, parts := range groups {
				if n := int32(len(parts)); n > k || n < p/number || parts[n-1]-parts[0] != n-1 || parts[n-1] >= p {
					t.Fatalf("%s: group %v", l, parts)
				}
			}
			for members := int32(1); members <= number; members++ {
				if number%members != 0 {
					continue
				}
				for m := int32(0); m < members; m++ { // as RangeGroupBalancer cuts
					for _, parts := range groups {
						first := m * p / members
						if parts[0] < first && parts[len(parts)-1] >= first {
							t.Fatalf("%s: %d processes cut group %v", l, members, parts)
						}
					}
				}
			}
		}
	}
}

// A broker lists partitions in any order; members get neighbours all the same.
func TestMembersGetNeighbours(t *testing.T) {
	var partitions []kafka.Partition
	for _, id := range []int{2, 5, 0, 3, 1, 4} {
		partitions = append(partitions, kafka.Partition{Topic: "t", ID: id})
	}
	got := new(neighbours).AssignGroups([]kafka.GroupMember{{ID: "b", Topics: []string{"t"}}, {ID: "a", Topics: []string{"t"}}}, partitions)
	if !slices.Equal(got["a"]["t"], []int{0, 1, 2}) || !slices.Equal(got["b"]["t"], []int{3, 4, 5}) {
		t.Errorf("assigned %v", got)
	}
}

// When partitions are added, clusters go to new ones only, and no more than the new ones' share.
func TestFewClustersMove(t *testing.T) {
	const clusters = 10_000
	for _, to := range []int32{13, 16, 24} {
		before, after := Layout{1, 12, 1}, Layout{2, to, 1}
		moved, load := 0, map[int32]int{}
		for c := range clusters {
			cluster := fmt.Sprint("cluster-", c)
			was, is := before.PartitionsOf(cluster)[0], after.PartitionsOf(cluster)[0]
			load[is]++
			if was != is {
				moved++
				if is < 12 {
					t.Fatalf("%s moved from %d to %d, which is not new", cluster, was, is)
				}
			}
		}
		share := float64(to-12) / float64(to)
		if got := float64(moved) / clusters; got < 0.9*share || got > 1.1*share {
			t.Errorf("to %d partitions %.1f %% of the clusters move, want about %.1f %%", to, 100*got, 100*share)
		}
		for p, n := range load {
			if mean := clusters / int(to); n < mean*8/10 || n > mean*12/10 {
				t.Errorf("partition %d of %d has %d clusters, the mean is %d", p, to, n, mean)
			}
		}
	}
}

func TestLayoutRecordAndMetadata(t *testing.T) {
	l := Layout{Epoch: 1 << 31, Partitions: 12, PerCluster: 3}
	rec := LayoutRecord(l, time.Unix(1700000000, 0))
	read, _, err := NewDecoder().Next(AppendRecord(nil, &rec))
	if err != nil || read.Err != nil {
		t.Fatal(err, read.Err)
	}
	if got, ok := DecodeLayout(&read); !ok || got != l {
		t.Errorf("read %v %v", got, ok)
	}
	for _, value := range []string{"", "{}", `{"epoch":1,"partitions":2,"perCluster":3}`, `{"epoch":-1}`} {
		rec.Value = []byte(value)
		if got, ok := DecodeLayout(&rec); ok {
			t.Errorf("%q is taken for %v", value, got)
		}
	}
	text, err := metadata{epoch: 5, pending: Pending{First: 1, Last: 2, Layout: l, PolicyOffsets: map[int32]int64{0: 7}}}.encode()
	if err != nil {
		t.Fatal(err)
	}
	m, err := decodeMetadata(text)
	if err != nil || m.pending.Layout != l || m.pending.PolicyOffsets[0] != 7 {
		t.Errorf("%s is read as %+v, %v", text, m, err)
	}
	if m, err = decodeMetadata("r1;e=5;l=7,12,3,later"); err != nil || m.pending.Layout != (Layout{7, 12, 3}) {
		t.Errorf("a later release's is read as %+v, %v", m, err)
	}
	replacement, ok := VerifyCommit(10, text, 5)
	if m, err = decodeMetadata(replacement); ok || err != nil || m.pending.Layout != l || m.pending.Has() {
		t.Errorf("for a log that was lost: %q %v, %v", replacement, ok, err)
	}
}

// barriers consumes until it has seen so many of each partition, and keeps what stands where.
type barriers struct {
	*collector
	layouts map[int32][]Layout
	records map[int32][]Record
}

func (b *barriers) Partition(ctx context.Context, a Assignment, p *Partition) error {
	for {
		got, err := p.Fetch(ctx, 0, 0)
		if err != nil {
			return err
		}
		b.mu.Lock()
		for _, r := range got.Records {
			if l, ok := DecodeLayout(&r); ok {
				b.layouts[a.Partition] = append(b.layouts[a.Partition], l)
			}
			b.records[a.Partition] = append(b.records[a.Partition], r)
			if b.want--; b.want == 0 {
				close(b.full)
			}
		}
		b.mu.Unlock()
		if err := p.Commit(context.WithoutCancel(ctx), p.Position(), NoPending(nil)); err != nil {
			return err
		}
	}
}

// A topic begins with the layout of new ones, whoever comes first; a client follows a change; what is changed twice, or was interrupted, is
// changed once.
func TestSetLayout(t *testing.T) {
	w := newWorld(t, func(c *Config) { c.Partitions, c.ClusterPartitions = 4, 1 })
	ctx := deadline(t)
	first := Layout{Epoch: 1, Partitions: 4, PerCluster: 1}
	if l, err := w.Layout(ctx); err != nil || l != first {
		t.Fatalf("a new topic has the layout %v, %v", l, err)
	}
	if err := w.EnsureTopics(ctx); err != nil {
		t.Fatal(err)
	}
	if err := w.Producer().Produce(ctx, recs(0, 40)...); err != nil {
		t.Fatal(err)
	}
	if _, err := w.SetLayout(ctx, 3, 0); err == nil {
		t.Error("partitions were taken away")
	}
	if _, err := w.SetLayout(ctx, 4, 5); err == nil {
		t.Error("a cluster is in more partitions than there are")
	}
	second := Layout{Epoch: 2, Partitions: 4, PerCluster: 2}
	for range 2 {
		if l, err := w.SetLayout(ctx, 0, 2); err != nil || l != second {
			t.Fatalf("changed to %v, %v", l, err)
		}
	}
	if err := w.Producer().ProduceBy(ctx, first, recs(40, 50)...); err != nil {
		t.Fatal(err)
	}
	if err := w.Producer().Produce(ctx, recs(50, 90)...); err != nil {
		t.Fatal(err)
	}
	h := &barriers{newCollector(4 + 40 + 4 + 50), map[int32][]Layout{}, map[int32][]Record{}}
	w.consume(t, h)
	wait(t, "everything to be read", h.full)
	h.mu.Lock()
	defer h.mu.Unlock()
	for p := range int32(4) {
		if !slices.Equal(h.layouts[p], []Layout{first, second}) {
			t.Errorf("partition %d has the barriers %v", p, h.layouts[p])
		}
	}
	late := 0
	for p, list := range h.records {
		by := Layout{}
		for i, r := range list {
			if l, ok := DecodeLayout(&r); ok {
				by = l
				continue
			}
			if i == 0 {
				t.Errorf("partition %d does not begin with a barrier", p)
			}
			if by.PartitionOf(r.Cluster, r.Key) != p {
				late++
			}
		}
	}
	if late > 10 {
		t.Errorf("%d records stand in the wrong partition, of 10 that were appended late", late)
	}
}
