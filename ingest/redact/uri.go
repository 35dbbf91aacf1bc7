package redact

import (
	"net/url"
	"strings"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// uri redacts a request URI: values of parameters with names of secrets, in any encoding; arguments of exec and attach; tokens and keys.
func (p *pass) uri(uri string, exec bool) string {
	path, query, has := strings.Cut(uri, "?")
	clean := p.path(path)
	if !has {
		return clean
	}
	var out []byte
	commands := 0
	done := 0
	for from := 0; from <= len(query); {
		end := from + runLen(query[from:], func(c byte) bool { return c != '&' && c != ';' })
		name, value, assigned := strings.Cut(query[from:end], "=")
		if assigned && value != "" {
			if v := p.parameter(name, value, exec, &commands); v != value {
				out = append(out, query[done:end-len(value)]...)
				out = append(out, v...)
				done = end
			}
		} else if suspicious(jsontext.StringBytes(name)) {
			if v := p.text(queryUnescape(name, true)); v != queryUnescape(name, true) {
				out = append(out, query[done:from]...)
				out = append(out, queryEscape(v)...)
				done = from + len(name)
			}
		}
		from = end + 1
	}
	if done == 0 && clean == path {
		return uri
	}
	return clean + "?" + string(out) + query[done:]
}

// path redacts the part before the query.
func (p *pass) path(path string) string {
	if path != "" && path[0] != '/' {
		// A request in absolute form may carry a user and a password.
		if scheme, rest, ok := strings.Cut(path, "://"); ok {
			host, _, _ := strings.Cut(rest, "/")
			if at := strings.LastIndexByte(host, '@'); at > 0 {
				path = scheme + "://" + p.secret(rest[:at]) + rest[at:]
			}
		}
	}
	plain := queryUnescape(path, false)
	clean := plain
	switch p.plain(&clean); {
	case clean == plain:
		return path
	case plain == path:
		return clean
	}
	return (&url.URL{Path: clean}).EscapedPath()
}

// parameter returns a parameter's value redacted; both are as in the URI.
func (p *pass) parameter(name, value string, exec bool, commands *int) string {
	if harmlessName(name) {
		return value
	}
	name = queryUnescape(name, true)
	if exec && (name == "command" || name == "cmd") {
		*commands++
		plain := queryUnescape(value, true)
		if *commands > 1 {
			return p.secret(plain)
		}
		// A whole command line in one word: keep the program.
		if at := strings.IndexAny(plain, " \t\n"); at >= 0 && !isToken(strings.TrimLeft(plain[at:], " ")) {
			return queryEscape(plain[:at]) + "+" + p.secret(plain[at:])
		}
		if plain == value {
			return value
		}
	}
	if sensitiveName(name) {
		return p.secret(queryUnescape(value, true))
	}
	plain := queryUnescape(value, true)
	clean := plain
	if p.plain(&clean); clean == plain {
		return value
	}
	return queryEscape(clean)
}

// queryUnescape decodes percent escapes, and plus signs of a query, as far as they are
// well-formed; the rest stays.
func queryUnescape(s string, query bool) string {
	if strings.IndexByte(s, '%') < 0 && (!query || strings.IndexByte(s, '+') < 0) {
		return s
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' && i+2 < len(s) {
			if v := jsontext.Hex4([]byte{'0', '0', s[i+1], s[i+2]}); v >= 0 {
				c = byte(v)
				i += 2
			}
		} else if c == '+' && query {
			c = ' '
		}
		out = append(out, c)
	}
	return string(out)
}

// queryEscape escapes a text for a query, and leaves replacements legible.
func queryEscape(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), url.QueryEscape(tokenPrefix), tokenPrefix)
}

// harmlessName reports whether a parameter is one of those in nearly every request, which so
// cost nothing.
func harmlessName(name string) bool {
	switch name {
	case "limit", "watch", "timeout", "timeoutSeconds", "resourceVersion", "resourceVersionMatch",
		"allowWatchBookmarks", "sendInitialEvents", "fieldValidation", "dryRun", "force", "pretty",
		"container", "stdin", "stdout", "stderr", "tty", "follow", "tailLines":
		return true
	}
	return false
}

// sensitiveName reports whether a parameter or member of that name holds a secret. Case and
// punctuation are ignored.
func sensitiveName(name string) bool {
	if name == "" || len(name) > 256 {
		return len(name) > 256
	}
	var room [256]byte
	b := room[:0]
	for i := 0; i < len(name); i++ {
		switch c := name[i]; {
		case c >= 'A' && c <= 'Z':
			b = append(b, c|0x20)
		case c >= 'a' && c <= 'z', c >= '0' && c <= '9':
			b = append(b, c)
		}
	}
	switch string(b) {
	case "pwd", "pass", "key", "sig", "auth", "code", "otp":
		return true // words that occur in too many others
	}
	for i := range b {
		found := false
		switch rest := b[i:]; rest[0] {
		case 't':
			found = begins(rest, "token")
		case 'p':
			found = begins(rest, "password") || begins(rest, "passwd") || begins(rest, "passphrase") || begins(rest, "privatekey")
		case 's':
			found = begins(rest, "secret") || begins(rest, "signature") || begins(rest, "session")
		case 'a':
			found = begins(rest, "apikey") || begins(rest, "accesskey") || begins(rest, "authorization") || begins(rest, "assertion")
		case 'c':
			found = begins(rest, "credential") || begins(rest, "clientkeydata") || begins(rest, "cookie")
		case 'b':
			found = begins(rest, "bearer")
		case 'j':
			found = begins(rest, "jwt")
		}
		if found {
			return true
		}
	}
	return false
}

// sensitiveExtra reports whether a user's extra of that key holds a secret, by its name's last part; credential IDs are what correlates.
func sensitiveExtra(key string) bool {
	last := key[strings.LastIndexByte(key, '/')+1:]
	if last == "credential-id" || strings.HasPrefix(last, "scopes.") {
		return false
	}
	return sensitiveName(last)
}
