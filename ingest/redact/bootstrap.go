package redact

import (
	"encoding/base64"
	"strings"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// typeBootstrap is the type of the Secrets that are bootstrap tokens: a public name, a secret
// part, and what the token may do. All but the secret part is public: the name is part of the
// token's user name, the groups are that user's.
const typeBootstrap = "bootstrap.kubernetes.io/token"

// publicField reports whether a field of a bootstrap token is public: by its name, and by its
// format, in case something else is kept there.
func publicField(name, value string) bool {
	all := func(s, set string) bool { return s != "" && strings.Trim(s, set) == "" }
	const digits, letters = "0123456789", "abcdefghijklmnopqrstuvwxyz"
	switch name {
	case "token-id":
		return len(value) == 6 && all(value, digits+letters)
	case "expiration":
		return len(value) >= len("2006-01-02T15:04:05Z") && len(value) <= len("2006-01-02T15:04:05.999999999+00:00") && value[4] == '-' &&
			all(value, digits+"TZ:+-.")
	case "usage-bootstrap-authentication", "usage-bootstrap-signing":
		return value == "true" || value == "false"
	case "auth-extra-groups":
		for group := range strings.SplitSeq(value, ",") {
			rest, ok := strings.CutPrefix(group, "system:bootstrappers:")
			if !ok || len(rest) > 64 || strings.Trim(rest, digits+letters+":-") != "" {
				return false
			}
		}
		return true
	}
	return false
}

// bootstrapField reports whether a member of a Secret's data, or stringData, is such a field.
func (b body) bootstrapField(name string, v int, encoded bool) bool {
	if b.Kind(v) != '"' {
		return false
	}
	value := b.Str(v)
	if encoded {
		plain, err := base64.StdEncoding.DecodeString(value)
		if err != nil {
			return false
		}
		value = string(plain)
	}
	return publicField(name, value)
}

// secretData redacts the data of a Secret, except the public fields of a bootstrap token.
func (b body) secretData(secret, data int, encoded bool) {
	if b.Kind(data) != '{' || b.GetString(secret, "type") != typeBootstrap {
		b.leaves(data, encoded)
		return
	}
	b.Members(data, func(name string, v int) {
		if !b.bootstrapField(name, v, encoded) {
			b.leaves(v, encoded)
		}
	})
}

// appendPublic appends the public fields of a bootstrap token's data.
func (b body) appendPublic(dst []byte, data int) []byte {
	dst = append(dst, '{')
	from := len(dst)
	if b.Kind(data) == '{' {
		b.Members(data, func(name string, v int) {
			if b.bootstrapField(name, v, true) {
				dst = append(jsontext.AppendString(append(dst, ','), name), ':')
				dst = append(dst, b.Tree.Text(v)...)
			}
		})
	}
	return append(jsontext.DropComma(dst, from), '}')
}
