// Package gzipped tells whether an answer may be compressed.
package gzipped

import (
	"regexp"
	"strings"
)

// refused matches the weight of nothing.
var refused = regexp.MustCompile(`^\s*q\s*=\s*0(\.0*)?\s*$`)

// Accepted reports whether a caller takes gzip, by its header Accept-Encoding. A browser names it; what is meant by "*" is not worth
// the trouble.
func Accepted(header string) bool {
	for part := range strings.SplitSeq(header, ",") {
		name, weight, _ := strings.Cut(part, ";")
		if strings.EqualFold(strings.TrimSpace(name), "gzip") {
			return !refused.MatchString(weight)
		}
	}
	return false
}
