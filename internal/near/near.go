// Package near finds the words that somebody may have meant by one that is not known.
package near

import (
	"cmp"
	"slices"
	"strings"

	"github.com/retrial-io/retrial/internal/kubenames"
)

const (
	// mostSteps bounds the letters that are compared, some tens of milliseconds: who writes policy decides how many names there are.
	mostSteps = 16 << 20
	// mostLetters is the most letters by which two words that are spelt alike differ.
	mostLetters = 4
)

// Words returns up to most of the words that resemble one, the closest first: those that
// differ in a third of its letters, four at most, in their case, or that it begins.
func Words(word string, words []string, most int) []string {
	type candidate struct {
		word string
		far  int
	}
	written, word := word, strings.ToLower(word)
	allowed := min(mostLetters, max(1, len(word)/3))
	steps := mostSteps
	var found []candidate
	for _, w := range words {
		far := allowed + 1
		if steps > 0 {
			far = distance(word, strings.ToLower(w), allowed, &steps)
		}
		if strings.HasPrefix(w, word) && len(word) >= 3 {
			far = min(far, 1)
		}
		if w != written && far <= allowed {
			found = append(found, candidate{w, far})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int {
		return cmp.Or(a.far-b.far, strings.Compare(a.word, b.word))
	})
	var out []string
	for _, c := range found {
		if len(out) == most {
			break
		}
		if !slices.Contains(out, c.word) {
			out = append(out, c.word)
		}
	}
	return out
}

// distance counts the letters to insert, drop, change or swap with the next one to make b of a. Words
// that differ in more than most, or are too long to be names, are one farther than that.
func distance(a, b string, most int, steps *int) int {
	if len(a) > 128 || len(b) > 128 || max(len(a)-len(b), len(b)-len(a)) > most {
		*steps--
		return most + 1
	}
	var rows [3][129]int
	before, last, row := &rows[0], &rows[1], &rows[2]
	for j := range len(b) + 1 {
		last[j] = j
	}
	for i := range len(a) {
		*steps -= len(b)
		row[0] = i + 1
		nearest := row[0]
		for j := range len(b) {
			change := last[j]
			if a[i] != b[j] {
				change++
			}
			row[j+1] = min(change, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && a[i] == b[j-1] && a[i-1] == b[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
			nearest = min(nearest, row[j+1])
		}
		if nearest > most {
			return most + 1
		}
		before, last, row = last, row, before
	}
	return min(last[len(b)], most+1)
}

// Subjects returns up to most of the subjects whose names resemble a name: those spelt alike, the closest first, then
// those in which it stands. Words that Kubernetes puts before names, such as system:serviceaccount:, make no two names alike.
func Subjects(name string, subjects []string, most int) []string {
	prefix := ""
	for _, p := range []string{kubenames.ServiceAccountPrefix, kubenames.NodePrefix} {
		if strings.HasPrefix(name, p) {
			prefix = p
		}
	}
	var alike, within []string
	for _, s := range subjects {
		if rest, ok := strings.CutPrefix(s, prefix); ok {
			alike = append(alike, rest)
		}
		if s != name && name != "" && strings.Contains(s, name) {
			within = append(within, s)
		}
	}
	out := Words(strings.TrimPrefix(name, prefix), alike, most)
	for i := range out {
		out[i] = prefix + out[i]
	}
	slices.Sort(within)
	for _, s := range within {
		if len(out) < most && !slices.Contains(out, s) {
			out = append(out, s)
		}
	}
	return out
}
