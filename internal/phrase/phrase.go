// Package phrase formats numbers, times and names for people.
package phrase

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Shorten returns s cut to 100 characters.
func Shorten(s string) string {
	if r := []rune(s); len(r) > 100 {
		return string(r[:100]) + "…"
	}
	return s
}

// Number returns a count with its noun, in the plural unless the count is one.
func Number(n int, word string) string {
	if n == 1 {
		return "1 " + word
	}
	return strconv.Itoa(n) + " " + plural(word)
}

// plural returns the plural of a noun: access, accesses.
func plural(noun string) string {
	if strings.HasSuffix(noun, "s") {
		return noun + "es"
	}
	return noun + "s"
}

// Count is [Number] with the digits in groups of three.
func Count(n int64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return Thousands(n) + " " + plural(thing)
}

// Thousands returns a number with its digits in groups of three.
func Thousands(n int64) string {
	digits := fmt.Sprint(n)
	var out strings.Builder
	for i, d := range digits {
		if left := len(digits) - i; i > 0 && left%3 == 0 && digits[i-1] != '-' {
			out.WriteByte(',')
		}
		out.WriteRune(d)
	}
	return out.String()
}

// Ago returns how long ago then was.
func Ago(now, then time.Time) string {
	d := now.Sub(then)
	switch {
	case d < 2*time.Second:
		return "just now"
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s ago", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min ago", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", int(d.Hours()))
	}
	return "on " + then.UTC().Format(time.DateOnly)
}

// DidYouMean asks whether one of some names was meant, after a separator such as "; "; it is empty without any.
func DidYouMean(separator string, near []string) string {
	if len(near) == 0 {
		return ""
	}
	return separator + "did you mean " + strings.Join(near, " or ") + "?"
}

// KubectlObject returns the words by which kubectl is told of an object, quoted for a POSIX shell: kind/name, and its namespace if it has
// one.
func KubectlObject(kind, namespace, name string) string {
	words := ShellWord(strings.ToLower(kind) + "/" + name)
	if namespace != "" {
		words += " -n " + ShellWord(namespace)
	}
	return words
}

// ShellWord returns s, quoted for a POSIX shell if need be.
func ShellWord(s string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@%+", r)
	}
	if s != "" && strings.IndexFunc(s, func(r rune) bool { return !plain(r) }) < 0 && s[0] != '-' {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}
