package storage

import (
	"fmt"
	"slices"
	"testing"
)

// A set of groups has one key, in whatever order and however often its members come.
func TestGroupSet(t *testing.T) {
	for _, n := range []int{0, 1, 3, manyGroups, 3 * manyGroups} {
		var groups []string
		for i := range n {
			groups = append(groups, fmt.Sprint("group-", i))
		}
		want := groupSet(groups)
		again := slices.Concat(groups, groups)
		slices.Reverse(again)
		if groupSet(again) != want {
			t.Errorf("%d groups: order and repetition change the key", n)
		}
		if groupSet(append(again, "another")) == want {
			t.Errorf("%d groups: another member does not change the key", n)
		}
	}
}
