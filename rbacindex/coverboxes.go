package rbacindex

import (
	"encoding/binary"

	rbacv1 "k8s.io/api/rbac/v1"
)

// want is one half of a wanted rule while it is compared.
type want struct {
	lattice  *lattice
	have     [dims][]string
	ids      [dims][]int32 // the numbers of these strings
	classes  [dims][]int32 // per string of a list its number among the different ones
	distinct [dims]int
	unnamed  bool // for every name
	found    *uncovered

	boxes []cube
	known map[string]bool // boxes, so that what many rules of the owner cover is there once

	words   int                // of a set of boxes
	sets    [dims][][]uint64   // per value the boxes that have it
	open    [dims + 1][]uint64 // boxes that have every value from the dimension on
	at      [dims]int          // the current piece
	covered [dims + 1]map[string]bool
	key     []byte
}

// meet adds what a cube has in common with the rule. whole: that is everything.
func (w *want) meet(c *cube) (whole, ok bool) {
	l := w.lattice
	var b cube
	whole = true
	for d := range l.n {
		if c[d].all {
			b[d].all = true
			continue
		}
		if !l.paths && d == dimName && w.unnamed {
			return false, true
		}
		if !l.steps.take(1 + len(c[d].values)) {
			return false, false
		}
		for _, v := range c[d].values {
			if at := l.place[d][v]; at != 0 {
				b[d].values = append(b[d].values, at-1)
			}
		}
		switch len(b[d].values) {
		case 0:
			return false, true
		case w.distinct[d]:
			b[d] = part{all: true}
		default:
			whole = false
		}
	}
	if whole {
		return true, true
	}
	w.key = w.key[:0]
	for d := range l.n {
		w.key = binary.AppendUvarint(w.key, uint64(len(b[d].values)))
		for _, v := range b[d].values {
			w.key = binary.AppendUvarint(w.key, uint64(v))
		}
	}
	if !w.known[string(w.key)] {
		if w.known == nil {
			w.known = map[string]bool{}
		}
		w.known[string(w.key)] = true
		w.boxes = append(w.boxes, b)
	}
	return false, true
}

// subtract finds the pieces that no box covers. It goes through the dimensions one after the
// other, with the set of boxes that are left: values that leave the same boxes leave the same
// pieces, and where a box has every value of the dimensions to come nothing is left.
func (w *want) subtract() bool {
	l, n := w.lattice, len(w.boxes)
	w.words = (n + 63) / 64
	total := l.n + 1
	for d := range l.n {
		total += w.distinct[d]
	}
	if !l.steps.take(total * w.words) {
		return false
	}
	for d := range l.n {
		w.sets[d] = make([][]uint64, w.distinct[d])
		for v := range w.sets[d] {
			w.sets[d][v] = make([]uint64, w.words)
		}
		w.covered[d+1] = map[string]bool{}
	}
	for d := range l.n + 1 {
		w.open[d] = make([]uint64, w.words)
	}
	for i := range w.boxes {
		word, bit := i/64, uint64(1)<<(i%64)
		full := true
		w.open[l.n][word] |= bit
		for d := l.n - 1; d >= 0; d-- {
			if w.boxes[i][d].all {
				for _, set := range w.sets[d] {
					set[word] |= bit
				}
				if !l.steps.take(len(w.sets[d])) {
					return false
				}
			} else {
				full = false
				for _, v := range w.boxes[i][d].values {
					w.sets[d][v][word] |= bit
				}
			}
			if full {
				w.open[d][word] |= bit
			}
		}
	}
	return w.below(0, w.open[l.n])
}

// below goes through a dimension with the boxes that are left; false if that takes too many
// steps.
func (w *want) below(d int, left []uint64) bool {
	if d == w.lattice.n {
		w.found.add(w)
		return w.lattice.steps.take(1)
	}
	none := true
	for _, word := range left {
		none = none && word == 0
	}
	next := left
	if !none {
		next = make([]uint64, w.words)
	}
	for i := range max(1, len(w.have[d])) {
		w.at[d] = i
		if !none {
			if !w.lattice.steps.take(2 + 2*w.words) {
				return false
			}
			if w.leave(d, next, left) || w.covered[d+1][string(w.text(next))] {
				continue
			}
		}
		before := len(w.found.list)
		switch ok := w.below(d+1, next); {
		case !ok:
			return false
		case w.found.more:
			return true
		case len(w.found.list) == before:
			w.covered[d+1][string(w.text(next))] = true
		}
	}
	return true
}

// leave puts into next the boxes of left that have the value at hand of a dimension. whole: one of
// them also has everything of the others.
func (w *want) leave(d int, next, left []uint64) (whole bool) {
	set := w.sets[d][0]
	if len(w.classes[d]) > 0 {
		set = w.sets[d][w.classes[d][w.at[d]]]
	}
	for j := range set {
		next[j] = left[j] & set[j]
		whole = whole || next[j]&w.open[d+1][j] != 0
	}
	return whole
}

// text writes a set of boxes as a key; it is good until the next call.
func (w *want) text(set []uint64) []byte {
	w.key = w.key[:0]
	for _, word := range set {
		w.key = binary.LittleEndian.AppendUint64(w.key, word)
	}
	return w.key
}

// uncovered are the pieces found, up to a number of them.
type uncovered struct {
	list []rbacv1.PolicyRule
	most int
	more bool // there is one more
}

// add adds the current piece.
func (u *uncovered) add(w *want) {
	if len(u.list) == u.most {
		u.more = true
		return
	}
	value := func(d int) []string { return []string{w.have[d][w.at[d]]} }
	r := rbacv1.PolicyRule{}
	if w.lattice.paths {
		r.Verbs, r.NonResourceURLs = value(dimPathVerb), value(dimPath)
	} else {
		r.Verbs, r.APIGroups, r.Resources = value(dimVerb), value(dimGroup), value(dimResource)
		if !w.unnamed {
			r.ResourceNames = value(dimName)
		}
	}
	u.list = append(u.list, r)
}
