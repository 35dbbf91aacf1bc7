package redact

import (
	"encoding/base64"
	"strings"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// RedactObject redacts one Kubernetes object, or a list of them, of a state file or a
// watch. resource is the plural with its group, as in "secrets" or
// "roles.rbac.authorization.k8s.io". Of a Secret only kind, apiVersion, metadata, type and
// immutable remain, of a bootstrap token also its public fields. The result aliases raw if nothing
// was redacted.
func (r *Redactor) RedactObject(resource string, raw []byte) []byte {
	p := r.begin()
	defer r.end(p)
	t := targetOther
	switch resource {
	case "secrets":
		t = targetSecret
	case "tokenreviews", "tokenreviews.authentication.k8s.io":
		t = targetToken
	}
	doc, ok := jsontext.ParseTree(raw)
	if !ok {
		return r.RedactBytes(raw)
	}
	if t == targetSecret {
		b := body{pass: p, Tree: doc}
		return b.appendBare(make([]byte, 0, len(raw)), 0)
	}
	return p.body(raw, t)
}

// appendBare appends the public part of a Secret, or of the Secrets of a list.
func (b body) appendBare(dst []byte, i int) []byte {
	if b.Kind(i) != '{' {
		return append(dst, "null"...)
	}
	dst = append(dst, '{')
	from := len(dst)
	b.Members(i, func(name string, v int) {
		switch name {
		case "kind", "apiVersion", "metadata", "type", "immutable", "items", "object":
		case "data":
			if b.GetString(i, "type") != typeBootstrap {
				return
			}
		default:
			return
		}
		dst = append(dst, ',')
		dst = append(jsontext.AppendString(dst, name), ':')
		switch {
		case name == "object":
			dst = b.appendBare(dst, v)
		case name == "data":
			dst = b.appendPublic(dst, v)
		case name != "items":
			dst = append(dst, b.parsed(b.Tree.Text(v), func(b body) { b.inSecret(0) })...)
		default:
			dst = append(dst, '[')
			at := len(dst)
			b.Elements(v, func(item int) {
				dst = b.appendBare(append(dst, ','), item)
			})
			dst = append(dst[:at], append(dst[min(at+1, len(dst)):], ']')...)
		}
	})
	return append(jsontext.DropComma(dst, from), '}')
}

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
