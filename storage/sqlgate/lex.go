package sqlgate

import (
	"fmt"
	"strings"
)

// token is a word of a canonical text.
type token struct {
	kind tokenKind
	text string // of names without their quotes
}

type tokenKind int

const (
	tokenName   tokenKind = iota // bare name or keyword
	tokenQuoted                  // name in back quotes
	tokenString
	tokenNumber
	tokenMark // one character of anything else
)

// lex splits a canonical text into tokens. It accepts only what such a text can hold: no
// comments, one way of quoting each; anything else is an error, so that no text is misread.
func lex(s string) ([]token, error) {
	var out []token
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == ' ' || c == '\n' || c == '\t':
			i++
		case c == '\'' || c == '`':
			end, err := quoted(s, i)
			if err != nil {
				return nil, err
			}
			text := s[i+1 : end-1]
			if c == '`' {
				// The tree is printed with names as they are: a name with a line break could forge lines.
				if strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r == '\\' || r == 0x7f }) {
					return nil, fmt.Errorf("the name %q has control characters or back slashes", text)
				}
				out = append(out, token{tokenQuoted, text})
			} else {
				out = append(out, token{tokenString, text})
			}
			i = end
		case nameByte(c) && !digit(c):
			end := i
			for end < len(s) && nameByte(s[end]) {
				end++
			}
			out = append(out, token{tokenName, s[i:end]})
			i = end
		case digit(c):
			end := i
			for end < len(s) && (nameByte(s[end]) || s[end] == '.') {
				end++
			}
			out = append(out, token{tokenNumber, s[i:end]})
			i = end
		case strings.HasPrefix(s[i:], "--") || strings.HasPrefix(s[i:], "/*"):
			return nil, fmt.Errorf("a comment in a canonical text")
		case strings.IndexByte("()[]{},.:;+-*/%=<>!|?^&~", c) >= 0:
			out = append(out, token{tokenMark, s[i : i+1]})
			i++
		default:
			return nil, fmt.Errorf("the character %q outside of quotes", c)
		}
	}
	return out, nil
}

// quoted returns the end of the quoted text that begins at i.
func quoted(s string, i int) (int, error) {
	for j := i + 1; j < len(s); j++ {
		switch s[j] {
		case '\\':
			j++
		case s[i]:
			return j + 1, nil
		}
	}
	return 0, fmt.Errorf("a quote is not closed")
}

func nameByte(c byte) bool {
	return c == '_' || digit(c) || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

func digit(c byte) bool { return c >= '0' && c <= '9' }
