package redact

import (
	"encoding/base64"
	"strings"

	"github.com/retrial-io/retrial/internal/jsontext"
	"github.com/retrial-io/retrial/internal/kubenames"
)

// body redacts a request or response body. Nothing is copied if nothing is found.
func (p *pass) body(raw []byte, t target) []byte {
	if len(raw) == 0 || t != targetSecret && t != targetToken && !suspicious(raw) {
		return raw
	}
	return p.parsed(raw, func(b body) {
		switch t {
		case targetSecret:
			b.onSecrets(0)
		case targetToken:
			b.tokens(0)
		default:
			b.generic(0)
		}
	})
}

// parsed redacts a JSON value by its tree. What is not JSON, and so not from the decoder, is replaced:
// its parts cannot be distinguished.
func (p *pass) parsed(raw []byte, redact func(body)) []byte {
	doc, ok := jsontext.ParseTree(raw)
	if !ok {
		return jsontext.AppendString(nil, p.token(raw))
	}
	redact(body{pass: p, Tree: doc})
	return doc.Edited()
}

// statusBody redacts a Status object's text.
func (p *pass) statusBody(raw []byte, t target) []byte {
	return p.parsed(raw, func(b body) { b.status(0, t == targetSecret) })
}

// whole redacts a value that is secret as a whole.
func (p *pass) whole(raw []byte) []byte { return p.parsed(raw, func(b body) { b.leaves(0, false) }) }

// embedded redacts a text that may be JSON itself, as last-applied copies are.
func (p *pass) embedded(s string, t target) string {
	trimmed := strings.TrimLeft(s, " \t\r\n")
	if trimmed == "" || trimmed[0] != '{' && trimmed[0] != '[' {
		return p.text(s)
	}
	doc, ok := jsontext.ParseTree(jsontext.StringBytes(s))
	if !ok {
		if t == targetSecret || strings.Contains(s, `Secret"`) {
			return p.secret(s) // a truncated copy
		}
		return p.text(s)
	}
	b := body{pass: p, Tree: doc}
	if t == targetSecret {
		b.onSecrets(0)
	} else {
		b.generic(0)
	}
	if doc.Changed() {
		return string(doc.Edited())
	}
	return s
}

// secretPatch redacts what a mutating webhook did to a secret: {"patch": [...], ...}.
func (p *pass) secretPatch(s string) string {
	doc, ok := jsontext.ParseTree(jsontext.StringBytes(s))
	if !ok {
		return p.secret(s)
	}
	b := body{pass: p, Tree: doc}
	doc.Members(0, func(name string, v int) {
		if name == "patch" {
			b.onSecrets(v)
		} else {
			b.generic(v)
		}
	})
	if doc.Kind(0) != '{' {
		b.leaves(0, false)
	}
	return string(doc.Edited())
}

type body struct {
	*pass
	*jsontext.Tree
}

// generic redacts a value of no particular kind: patterns in strings, and objects of a kind
// that holds secrets.
func (b body) generic(i int) {
	switch b.Kind(i) {
	case '"':
		if suspicious(b.Tree.Text(i)) {
			s := b.Str(i)
			if clean := b.embedded(s, targetOther); clean != s {
				b.Replace(i, clean)
			}
		}
	case '[':
		b.Elements(i, b.generic)
	case '{':
		switch b.GetString(i, "kind") {
		case "Secret":
			// Many objects refer to a Secret by its kind and name.
			if b.holdsData(i) {
				b.secretObject(i)
				return
			}
		case "SecretList":
			b.onSecrets(i)
			return
		case "TokenReview", "TokenRequest", "ExecCredential":
			b.tokens(i)
			return
		case "PodExecOptions", "PodAttachOptions":
			b.command(i)
			return
		}
		header := strings.EqualFold(b.GetString(i, "name"), "authorization")
		b.Members(i, func(name string, v int) {
			if header && name == "value" || strings.EqualFold(name, "authorization") && b.Kind(v) == '"' {
				b.leaves(v, false)
				return
			}
			b.generic(v)
		})
	}
}

// holdsData reports whether an object has data of its own, in any spelling.
func (b body) holdsData(i int) bool {
	found := false
	b.Members(i, func(name string, _ int) {
		found = found || strings.EqualFold(name, "data") || strings.EqualFold(name, "stringData")
	})
	return found
}

// onSecrets redacts the body of a request for secrets, or one item of it, by its kind. What is
// not known to be harmless is secret.
func (b body) onSecrets(i int) {
	switch b.Kind(i) {
	case '[': // a JSON patch
		b.Elements(i, b.patchOperation)
		return
	case '"', '0':
		b.leaves(i, false)
		return
	}
	kind := b.Get(i, "kind")
	if kind < 0 {
		b.secretObject(i)
		return
	}
	switch b.Str(kind) {
	case "Secret", "SecretList", "List":
		b.secretObject(i)
	case "Status":
		b.status(i, true)
	case "Table":
		b.Members(i, func(name string, v int) {
			if name != "rows" {
				b.known(name, v)
				return
			}
			b.Elements(v, func(row int) {
				b.Members(row, func(name string, v int) {
					if name == "object" {
						b.onSecrets(v)
					} else {
						b.known(name, v)
					}
				})
			})
		})
	case "PartialObjectMetadata", "PartialObjectMetadataList", "DeleteOptions", "CreateOptions", "UpdateOptions", "PatchOptions":
		b.Members(i, b.known)
	default:
		b.Members(i, func(name string, v int) {
			switch name {
			case "kind", "apiVersion", "metadata":
				b.inSecret(v)
			default:
				b.leaves(v, false)
			}
		})
	}
}

// known redacts a member of an object that should have no data, in case it has.
func (b body) known(name string, v int) {
	switch name {
	case "data", "stringData":
		b.leaves(v, name == "data")
	default:
		b.inSecret(v)
	}
}

// secretObject redacts a Secret, a patch of one, a list of them or a watch event about one.
func (b body) secretObject(i int) {
	if b.Kind(i) != '{' {
		b.leaves(i, false)
		return
	}
	b.Members(i, func(name string, v int) {
		switch name {
		case "kind", "apiVersion", "metadata", "type", "immutable", "$patch", "$retainKeys":
			b.inSecret(v)
		case "items":
			if b.Kind(v) != '[' {
				b.leaves(v, false)
				return
			}
			b.Elements(v, b.onSecrets)
		case "object":
			b.onSecrets(v)
		case "data", "stringData":
			b.secretData(i, v, name == "data")
		default:
			b.leaves(v, false)
		}
	})
}

// inSecret redacts the public part of a Secret, whose annotations may copy the rest.
func (b body) inSecret(i int) {
	switch b.Kind(i) {
	case '{':
		b.Members(i, func(name string, v int) {
			switch name {
			case kubenames.LastApplied:
				b.copyOf(v)
			case "data", "stringData":
				b.leaves(v, name == "data")
			default:
				b.inSecret(v)
			}
		})
	case '[':
		b.Elements(i, b.inSecret)
	default:
		b.generic(i)
	}
}

// copyOf redacts a string that holds a Secret as JSON.
func (b body) copyOf(i int) {
	if b.Kind(i) != '"' {
		b.leaves(i, false)
		return
	}
	s := b.Str(i)
	clean := b.embedded(s, targetSecret)
	if trimmed := strings.TrimLeft(s, " \t\r\n"); trimmed != "" && trimmed[0] != '{' {
		clean = b.secret(s)
	}
	if clean != s {
		b.Replace(i, clean)
	}
}

// patchOperation redacts one operation of a JSON patch of a Secret.
func (b body) patchOperation(i int) {
	path := b.Get(i, "path")
	if b.Kind(i) != '{' || path < 0 || b.Kind(path) != '"' {
		b.leaves(i, false)
		return
	}
	pointer := b.Str(path)
	first, rest, _ := strings.Cut(strings.TrimPrefix(pointer, "/"), "/")
	first = strings.NewReplacer("~1", "/", "~0", "~").Replace(first)
	b.Members(i, func(name string, v int) {
		switch {
		case name == "op" || name == "path" || name == "from":
			b.generic(v)
		case name != "value":
			b.leaves(v, false)
		case pointer == "":
			b.onSecrets(v)
		case first == "metadata":
			if strings.Contains(rest, "last-applied") {
				b.copyOf(v)
			} else {
				b.inSecret(v)
			}
		case first == "kind" || first == "apiVersion" || first == "type" || first == "immutable":
			b.inSecret(v)
		default:
			b.leaves(v, first == "data")
		}
	})
}

// tokens redacts token reviews, token requests and exec credentials: every member token.
func (b body) tokens(i int) {
	switch b.Kind(i) {
	case '{':
		b.Members(i, func(name string, v int) {
			switch name {
			case "token", "clientKeyData":
				b.leaves(v, false)
			default:
				b.tokens(v)
			}
		})
	case '[':
		b.Elements(i, b.tokens)
	default:
		b.generic(i)
	}
}

// command redacts the arguments of a command, and keeps the program.
func (b body) command(i int) {
	b.Members(i, func(name string, v int) {
		if name != "command" {
			b.generic(v)
			return
		}
		program := true
		b.Elements(v, func(arg int) {
			if !program {
				b.leaves(arg, false)
			}
			program = false
		})
	})
}

// status redacts the messages of a Status, also those of its causes.
func (b body) status(i int, onSecret bool) {
	switch b.Kind(i) {
	case '{':
		b.Members(i, func(name string, v int) {
			switch {
			case name == "message" && b.Kind(v) == '"':
				s := b.Str(v)
				if clean := b.statusMessage(s, onSecret); clean != s {
					b.Replace(v, clean)
				}
			case onSecret && (name == "data" || name == "stringData"):
				b.leaves(v, name == "data")
			default:
				b.status(v, onSecret)
			}
		})
	case '[':
		b.Elements(i, func(v int) { b.status(v, onSecret) })
	default:
		b.generic(i)
	}
}

// leaves replaces every string and number in a value; structure and member names stay. The values
// of data are base64: the decoded value is hashed, so that a value gives the same in data and in
// stringData.
func (b body) leaves(i int, encoded bool) {
	switch b.Kind(i) {
	case '{', '[':
		for j := i + 1; j < b.Next(i); j++ {
			if k := b.Kind(j); k == '"' || k == '0' {
				b.leaves(j, encoded)
			}
		}
	case '"':
		s := b.Str(i)
		if s == "" || isToken(s) {
			return
		}
		b.note(s)
		if encoded {
			if plain, err := base64.StdEncoding.DecodeString(s); err == nil && len(plain) > 0 {
				s = string(plain)
				b.note(s)
			}
		}
		b.Replace(i, b.token(jsontext.StringBytes(s)))
	default:
		if c := b.Tree.Text(i)[0]; c == '-' || c-'0' <= 9 {
			b.Replace(i, b.token(b.Tree.Text(i)))
		}
	}
}
