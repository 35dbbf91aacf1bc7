package redact

import "github.com/retrial-io/retrial/internal/jsontext"

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
			dst = append(dst, b.public(v)...)
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

// public returns a public member of a Secret, redacted.
func (b body) public(i int) []byte {
	doc, ok := jsontext.ParseTree(b.Tree.Text(i))
	if !ok {
		return []byte("null") // impossible: it is part of a text that parsed
	}
	own := body{pass: b.pass, Tree: doc}
	own.inSecret(0)
	return doc.Edited()
}
