package registry

import "slices"

// shrink returns the shortest sequence it finds that still fails: steps are left out, then what is
// odd about those that are left.
func shrink(seq sequence, fails func(sequence) bool) sequence {
	try := func(change func(s *sequence)) bool {
		next := seq
		next.Steps = slices.Clone(seq.Steps)
		change(&next)
		if !fails(next) {
			return false
		}
		seq = next
		return true
	}
	for size := max(1, len(seq.Steps)/2); size > 0; size /= 2 {
		for i := 0; i+size <= len(seq.Steps); {
			if !try(func(s *sequence) { s.Steps = slices.Delete(s.Steps, i, i+size) }) {
				i++
			}
		}
	}
	for i := range seq.Steps {
		for _, change := range []func(*step){
			func(st *step) { st.Late = 0 },
			func(st *step) { st.Twice = false },
			func(st *step) { st.Cut = false },
			func(st *step) { st.Overlap = false },
			func(st *step) { st.Span = 0 },
			func(st *step) { st.Since = false },
			func(st *step) { st.Accept = "" },
			func(st *step) { st.Pace = pace{} },
			func(st *step) { st.Wait = 1_000_000_000 },
		} {
			if before := seq.Steps[i]; true {
				after := before
				if change(&after); after != before {
					try(func(s *sequence) { s.Steps[i] = after })
				}
			}
		}
	}
	return seq
}
