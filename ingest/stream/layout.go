package stream

import (
	"cmp"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/cespare/xxhash/v2"
)

// Layout says which partition of TopicEvents an event belongs to. The partitions are cut into groups of neighbours, of equal size as far as
// that is possible and of at most PerCluster; a cluster belongs to one group, and a request of it, by its key, to one partition of that.
// All stages of a request, and all copies of an event, belong to one partition.
//
// Group g of G has the partitions from g·P/G to (g+1)·P/G, which are whole shares of a process wherever the number of processes divides G.
// When a group is added, one cluster in G+1 moves, to the new group: that is how clusters are hashed (jump hash). With PerCluster of
// one, a group is a partition; with as many as there are partitions, there is one group, and the partition is the hash of the key.
//
// The zero Layout is that of a topic nobody has given one.
type Layout struct {
	Epoch      uint32 `json:"epoch"` // 0: all records are hashed over all partitions, and nobody looks whether they are
	Partitions int32  `json:"partitions"`
	PerCluster int32  `json:"perCluster"`
}

// Compare orders layouts: the later one is in force. Two that were given at the same time have one epoch; then the larger one is the later,
// for everybody.
func (l Layout) Compare(other Layout) int {
	return cmp.Or(cmp.Compare(l.Epoch, other.Epoch), cmp.Compare(l.Partitions, other.Partitions),
		cmp.Compare(l.PerCluster, other.PerCluster))
}

// String names the layout for logs and people.
func (l Layout) String() string {
	return fmt.Sprintf("epoch %d: %d partitions, a cluster in %d", l.Epoch, l.Partitions, min(l.PerCluster, l.Partitions))
}

// group returns the first partition of a cluster's group, and how many it has.
func (l Layout) group(cluster string) (first, size int32) {
	p, k := l.Partitions, max(l.PerCluster, 1)
	if k >= p {
		return 0, max(p, 1)
	}
	groups := (p + k - 1) / k
	g := jump(xxhash.Sum64String(cluster), groups)
	first = int32(int64(g) * int64(p) / int64(groups))
	return first, int32(int64(g+1)*int64(p)/int64(groups)) - first
}

// PartitionsOf returns where a cluster's events are, in ascending order.
func (l Layout) PartitionsOf(cluster string) []int32 {
	first, size := l.group(cluster)
	list := make([]int32, size)
	for i := range list {
		list[i] = first + int32(i)
	}
	return list
}

// PartitionOf returns the partition of an event of a cluster, by its request key. It is fixed for all versions of Retrial.
func (l Layout) PartitionOf(cluster string, key []byte) int32 {
	first, size := l.group(cluster)
	return first + PartitionOf(key, int(size))
}

// jump is the consistent hash of Lamping and Veach: of n buckets to n+1, a key stays or goes to the new one.
func jump(key uint64, buckets int32) int32 {
	b, j := int64(-1), int64(0)
	for j < int64(buckets) {
		b = j
		key = key*2862933555777941757 + 1
		j = int64(float64(b+1) * (float64(1<<31) / float64(key>>33+1)))
	}
	return int32(b)
}

func (l Layout) check() error {
	if l.Partitions < 1 || l.PerCluster < 1 || l.PerCluster > l.Partitions {
		return fmt.Errorf("no layout: %d partitions, a cluster in %d", l.Partitions, l.PerCluster)
	}
	return nil
}

// encode renders the layout for the metadata of commits: epoch, partitions, those of a cluster.
func (l Layout) encode() string { return fmt.Sprintf("%d,%d,%d", l.Epoch, l.Partitions, l.PerCluster) }

func decodeLayout(s string) (Layout, error) {
	parts := strings.Split(s, ",")
	if len(parts) < 3 { // more belongs to later releases
		return Layout{}, errors.New("want epoch, partitions and those of a cluster")
	}
	var n [3]uint64
	for i := range n {
		bits := 31
		if i == 0 {
			bits = 32
		}
		var err error
		if n[i], err = strconv.ParseUint(parts[i], 10, bits); err != nil {
			return Layout{}, err
		}
	}
	l := Layout{Epoch: uint32(n[0]), Partitions: int32(n[1]), PerCluster: int32(n[2])}
	return l, l.check()
}
