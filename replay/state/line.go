package state

import (
	"slices"

	"github.com/retrial-io/retrial/replay/state/instant"
)

// A line is the steps of one name, in order. What follows holds of the lines of objects and of those of pods alike.

// bounds returns the span of a step.
func (s span) bounds() span { return s }

// stepAt returns the index of the first step that was not certainly in force at a moment.
func stepAt[S interface{ bounds() span }](line []S, at int64) int {
	i := len(line)
	for i > 0 && line[i-1].bounds().na > at {
		i--
	}
	return i
}

// sameSince reports whether two lines give the same answers about a moment and all later ones: what was in
// force then, the zero step where nothing was, is the same, and every later step is equal.
func sameSince[S interface{ bounds() span }](a, b []S, at int64, same, equal func(s, t *S) bool) bool {
	i, j := stepAt(a, at), stepAt(b, at)
	var was, is S
	if i > 0 {
		was = a[i-1]
	}
	if j > 0 {
		is = b[j-1]
	}
	return same(&was, &is) && slices.EqualFunc(a[i:], b[j:], func(s, t S) bool { return equal(&s, &t) })
}

// difference returns the length of the common beginning and of the common end of two lines; ok is false when the lines are equal.
func difference[S any](a, b []S, equal func(s, t *S) bool) (head, tail int, ok bool) {
	n := min(len(a), len(b))
	for head < n && equal(&a[head], &b[head]) {
		head++
	}
	if head == len(a) && head == len(b) {
		return 0, 0, false
	}
	for tail < n-head && equal(&a[len(a)-1-tail], &b[len(b)-1-tail]) {
		tail++
	}
	return head, tail, true
}

// differ notes in which stretch the answers of two lines differ, by all but the first head and the last
// tail steps, and returns where it begins.
func differ[S interface{ bounds() span }](e *Effect, was, is []S, head, tail int) (from int64) {
	from = noSight
	for _, line := range [...][]S{was, is} {
		for _, s := range line[head:] {
			from = min(from, s.bounds().nb)
		}
	}
	e.From = instant.Time(from)
	if tail > 0 {
		e.To = instant.Time(is[len(is)-tail].bounds().na)
	}
	return from
}
