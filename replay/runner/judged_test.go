package runner

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

func TestJudged(t *testing.T) {
	at := func(minute int) time.Time { return time.Date(2026, 11, 20, 12, minute, 0, 0, time.UTC) }
	row := func(cluster string, received, ended int) verdict.Row {
		return verdict.Row{Cluster: cluster, Event: &event.Event{RequestReceivedTimestamp: at(received), StageTimestamp: at(ended)}}
	}
	// The first block was judged with the policy below 10, the second with that below 20.
	blocks := func() judged {
		j := judged{judgedEarlier(nil)}
		j.add(judgedBlock{knows: map[int32]int64{0: 10}, spans: spansOf([]verdict.Row{row("a", 10, 10), row("a", 20, 40)})})
		j.add(judgedBlock{knows: map[int32]int64{0: 20}, spans: spansOf([]verdict.Row{row("a", 21, 21), row("b", 21, 21)})})
		return j
	}
	from := func(minute int) verdict.AffectedFilter {
		return verdict.AffectedFilter{From: at(minute).Add(-time.Hour), Ended: at(minute)}
	}
	for _, c := range []struct {
		name  string
		j     judged
		found change
		want  int // filters that are left
	}{
		{"known to all blocks", blocks(), change{offset: 9, cluster: "a", filters: []verdict.AffectedFilter{{}}}, 0},
		{"known to the later block, of the earlier one's time", blocks(), change{offset: 12, cluster: "a",
			filters: []verdict.AffectedFilter{from(15)}}, 1},
		{"of a request of the earlier block that went on", blocks(), change{offset: 12, cluster: "a",
			filters: []verdict.AffectedFilter{from(39)}}, 1},
		{"known to the later block, after all of the earlier one", blocks(), change{offset: 12, cluster: "a",
			filters: []verdict.AffectedFilter{from(41)}}, 0},
		{"begins after all requests", blocks(), change{offset: 30, cluster: "a", filters: []verdict.AffectedFilter{{From: at(22)}}}, 0},
		{"over before all requests", blocks(), change{offset: 30, cluster: "a", filters: []verdict.AffectedFilter{{To: at(9)}}}, 0},
		{"over at the first request", blocks(), change{offset: 30, cluster: "a", filters: []verdict.AffectedFilter{{To: at(10)}}}, 1},
		{"known to no block, of any time", blocks(), change{offset: 30, cluster: "b", filters: []verdict.AffectedFilter{{}}}, 1},
		{"some of its filters", blocks(), change{offset: 30, cluster: "a", filters: []verdict.AffectedFilter{{}, from(50), from(40)}}, 2},
		{"another cluster", blocks(), change{offset: 30, cluster: "c", filters: []verdict.AffectedFilter{{}}}, 0},
		{"another partition of the policy", blocks(), change{partition: 1, offset: 0, cluster: "a", filters: []verdict.AffectedFilter{{}}},
			1},
		{"rows of an earlier owner, which went on for nobody knows how long",
			judged{judgedEarlier([]verdict.Span{{Cluster: "a", From: at(1), To: at(9)}})},
			change{offset: 9, cluster: "a", filters: []verdict.AffectedFilter{from(59)}}, 1},
		{"rows of an earlier owner, too long ago", judged{judgedEarlier([]verdict.Span{{Cluster: "a", From: at(1), To: at(9)}})},
			change{offset: 9, cluster: "a", filters: []verdict.AffectedFilter{{From: at(10)}}}, 0},
		{"nothing stored", judged{judgedEarlier(nil)}, change{offset: 9, cluster: "a", filters: []verdict.AffectedFilter{{}}}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := 0
			for _, left := range c.j.outlived([]change{c.found}) {
				n += len(left.filters)
			}
			if n != c.want {
				t.Errorf("%d filters are left, want %d", n, c.want)
			}
		})
	}
}

// Of changes that were forgotten, those clusters need a look that have rows judged before all of the changes were applied.
func TestJudgedBefore(t *testing.T) {
	at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	block := func(knows map[int32]int64, clusters ...string) judgedBlock {
		var rows []verdict.Row
		for _, c := range clusters {
			rows = append(rows, verdict.Row{Cluster: c, Event: &event.Event{RequestReceivedTimestamp: at}})
		}
		return judgedBlock{knows: knows, spans: spansOf(rows)}
	}
	j := judged{judgedEarlier([]verdict.Span{{Cluster: "earlier", From: at, To: at}})}
	j.add(block(map[int32]int64{0: 10, 1: 5}, "a", "b"))
	j.add(block(map[int32]int64{0: 20, 1: 5}, "a", "c"))
	for _, c := range []struct {
		name  string
		below offsets
		want  []string
	}{
		{"nothing forgotten", nil, nil},
		{"what every block of this process knew", offsets{0: 10}, []string{"earlier"}},
		{"what the later block knew", offsets{0: 20}, []string{"a", "b", "earlier"}},
		{"what no block knew", offsets{0: 21}, []string{"a", "b", "c", "earlier"}},
		{"another partition, which nobody knew as far", offsets{0: 10, 1: 6}, []string{"a", "b", "c", "earlier"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			below := map[string]offsets{}
			for _, cluster := range []string{"a", "b", "c", "earlier", "without rows"} {
				below[cluster] = c.below
			}
			if got := slices.Sorted(maps.Keys(j.before(below))); !slices.Equal(got, c.want) {
				t.Errorf("clusters %v, want %v", got, c.want)
			}
		})
	}
	if got := j.before(map[string]offsets{"b": {0: 11}, "c": {0: 11}}); len(got) != 1 || !got["b"] {
		t.Errorf("clusters %v, want b: c knew what was forgotten of it", got)
	}
}

// What is remembered together knows as little as its first block and covers all of them.
func TestJudgedForgetsWithoutLoss(t *testing.T) {
	var j judged
	begin := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	const n = 3 * judgedBlocks
	for i := range n {
		e := &event.Event{RequestReceivedTimestamp: begin.Add(time.Duration(i) * time.Minute)}
		j.add(judgedBlock{knows: map[int32]int64{0: int64(i)}, spans: spansOf([]verdict.Row{{Cluster: "a", Event: e}})})
	}
	if len(j) != judgedBlocks {
		t.Errorf("%d blocks are remembered", len(j))
	}
	for i := range n {
		minute := begin.Add(time.Duration(i) * time.Minute)
		c := change{offset: n, cluster: "a", filters: []verdict.AffectedFilter{{From: minute, To: minute}}}
		if len(j.outlived([]change{c})) != 1 {
			t.Errorf("block %d is forgotten", i)
		}
		if c.offset = int64(i) - 1; i > 2*judgedBlocks && len(j.outlived([]change{c})) != 0 {
			t.Errorf("block %d, which knew the change, would be judged again", i)
		}
	}
}
