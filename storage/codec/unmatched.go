package codec

import (
	"slices"
	"strings"
)

// pathTo is where what is missing begins to say for which object it was missing: a node asks for thousands, and lacks the same for each.
const pathTo = " (path to "

// What the rollup of requests that do not match keeps of a verdict, over columns of events. The cause of an indeterminate verdict says once
// more what is missing.
const (
	FoldedMissing = "arrayDistinct(arrayMap(m -> splitByString('" + pathTo + "', m)[1], events.missing))"
	FoldedCause   = "if(outcome = 'indeterminate', '', events.cause)"
)

// FoldMissing is FoldedMissing.
func FoldMissing(missing []string) []string {
	var out []string
	for _, m := range missing {
		if m, _, _ = strings.Cut(m, pathTo); !slices.Contains(out, m) {
			out = append(out, m)
		}
	}
	return out
}
