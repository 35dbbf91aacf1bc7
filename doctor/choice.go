package doctor

import "strings"

// choice is a value of a flag, with what it means in some words.
type choice struct{ name, what string }

func (c choice) chosen() choice { return c }

// choosable is something a flag selects: it embeds a choice.
type choosable interface{ chosen() choice }

// ChoiceNames lists the values.
func ChoiceNames[T choosable](from []T) []string {
	var names []string
	for _, c := range from {
		names = append(names, c.chosen().name)
	}
	return names
}

// ChoiceHelp words the values.
func ChoiceHelp[T choosable](from []T) string {
	var words []string
	for _, c := range from {
		words = append(words, c.chosen().name+" ("+c.chosen().what+")")
	}
	return strings.Join(words, ", ")
}

// Choose returns what has a name, false if nothing does.
func Choose[T choosable](from []T, name string) (T, bool) {
	for _, c := range from {
		if c.chosen().name == name {
			return c, true
		}
	}
	var none T
	return none, false
}
