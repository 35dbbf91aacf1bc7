package codec

import (
	"sync"

	"github.com/retrial-io/retrial/verdict"
)

// comparisons are the columns' own, of those that tell verdicts apart.
var comparisons = sync.OnceValue(func() (out []func(a, b *verdict.Verdict) bool) { //nolint:gochecknoglobals // constant table
	for _, c := range NewStored().table {
		if c.same != nil {
			out = append(out, c.same)
		}
	}
	return out
})

// SameVerdict tells whether two verdicts of one request say the same to whoever reads them
// here. What the table of columns leaves out is the revision, the engine and the configuration:
// that nothing changed under a newer one is not news; the attributes and the recorded decision,
// which come from the event alone; and the order of the grants.
func SameVerdict(a, b *verdict.Verdict) bool {
	for _, same := range comparisons() {
		if !same(a, b) {
			return false
		}
	}
	return true
}
