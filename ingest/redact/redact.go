// Package redact keeps secrets out of what Retrial stores and sends on. Events and watched objects are redacted before they rest anywhere.
//
// Never kept are:
//   - the values of a Secret: in a body, a list, a table or a patch, in a copy in an annotation, in a
//     message that quotes them (public fields of bootstrap tokens stay);
//   - tokens: in TokenRequests, TokenReviews and ExecCredentials, and JSON Web Tokens anywhere;
//   - private keys in PEM, credentials after Bearer and Basic, values of Authorization headers;
//   - parameters of a URI and extras of a user whose names indicate a secret (token, password, key,
//     session …), and what a user agent or a message assigns to such a name;
//   - the arguments of exec and attach (the program stays);
//   - of text that is not an audit event: all but the members that are public in every event.
//
// What may be needed for correlation is replaced with a keyed hash, see [Redactor]. Names, kinds and
// everything that RBAC decides by stay.
//
// The package is pure: no I/O, no clock, no logging.
package redact

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"hash"
	"slices"
	"strings"
	"sync"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/internal/jsontext"
)

// Redactor removes secrets from events and objects before they are stored. What may be needed
// for correlation is replaced with a keyed HMAC, `hmac:` and 22 characters of base64url; with one
// key, equal secrets give equal replacements, so repeated deliveries stay identical. A value that
// already has that form is unchanged: redaction is idempotent.
//
// It is safe for concurrent use.
type Redactor struct {
	passes sync.Pool // of *pass; a keyed hash costs more to make than to use
}

// New returns a Redactor for an installation's key, of at least 16 bytes; it panics
// on a shorter one, which would make short secrets guessable. The key must not be kept with the
// redacted data.
func New(key []byte) *Redactor {
	if len(key) < 16 {
		panic("redact: key shorter than 16 bytes")
	}
	own := append([]byte(nil), key...)
	return &Redactor{passes: sync.Pool{New: func() any { return &pass{mac: hmac.New(sha256.New, own)} }}}
}

// begin returns a fresh pass; end gives it back.
func (r *Redactor) begin() *pass { return r.passes.Get().(*pass) }

func (r *Redactor) end(p *pass) {
	clear(p.found)
	p.found = p.found[:0]
	r.passes.Put(p)
}

const (
	tokenPrefix = "hmac:"
	tokenLen    = len(tokenPrefix) + 22
)

// token returns the replacement of a secret.
func (p *pass) token(secret []byte) string {
	p.mac.Reset()
	_, _ = p.mac.Write(secret) // never fails
	var out [tokenLen]byte
	copy(out[:], tokenPrefix)
	base64.RawURLEncoding.Encode(out[len(tokenPrefix):], p.mac.Sum(p.sum[:0])[:16])
	return string(out[:])
}

// isToken reports whether a text is already a replacement.
func isToken(s string) bool {
	if len(s) != tokenLen || s[:len(tokenPrefix)] != tokenPrefix {
		return false
	}
	return runLen(s[len(tokenPrefix):], isBase64URL) == len(s)-len(tokenPrefix)
}

// target is what a request is about, as far as redaction is concerned.
type target uint8

const (
	targetOther  target = iota
	targetSecret        // secrets: whatever a body holds is secret unless known not to be
	targetToken         // token reviews and token requests
	targetExec          // exec and attach: the command's arguments
)

// targetOf reads the target from the path, and from the object reference, which may be incomplete or missing: the stricter of both.
func targetOf(e *event.Event) target {
	if r := e.ObjectRef; r != nil {
		switch {
		case r.Resource == "secrets":
			return targetSecret
		case r.Resource == "tokenreviews", r.Resource == "serviceaccounts" && r.Subresource == "token":
			return targetToken
		case r.Subresource == "exec", r.Subresource == "attach":
			return targetExec
		}
	}
	path, _, _ := strings.Cut(e.RequestURI, "?")
	return targetOfPath(path)
}

// targetOfPath finds resource and subresource in a path. Empty segments are skipped: better redact what the apiserver did not route.
func targetOfPath(path string) target {
	path = queryUnescape(path, false)
	if !mayTarget(path) {
		return targetOther
	}
	var parts []string
	for part := range strings.SplitSeq(path, "/") {
		if part != "" {
			parts = append(parts, part)
		}
	}
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		parts = parts[3:]
	default:
		return targetOther
	}
	if len(parts) > 1 && (parts[0] == "watch" || parts[0] == "proxy") {
		parts = parts[1:]
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	sub := ""
	if len(parts) > 2 {
		sub = parts[2]
	}
	switch {
	case parts[0] == "secrets":
		return targetSecret
	case parts[0] == "tokenreviews", parts[0] == "serviceaccounts" && sub == "token":
		return targetToken
	case sub == "exec", sub == "attach":
		return targetExec
	case sub == "proxy" && len(parts) > 3 && (parts[3] == "exec" || parts[3] == "attach" || parts[3] == "run"):
		return targetExec // through the kubelet's own API
	}
	return targetOther
}

// mayTarget reports whether a path has a segment that begins like those that make it a target.
func mayTarget(path string) bool {
	for {
		switch {
		case path == "":
			return false
		case path[0] == 's' && strings.HasPrefix(path, "secrets"), path[0] == 't' && strings.HasPrefix(path, "token"),
			path[0] == 'e' && strings.HasPrefix(path, "exec"), path[0] == 'a' && strings.HasPrefix(path, "attach"),
			path[0] == 'r' && strings.HasPrefix(path, "run"):
			return true
		}
		i := strings.IndexByte(path, '/')
		if i < 0 {
			return false
		}
		path = path[i+1:]
	}
}

// pass is the state of one redaction: the keyed hash, and the secrets found so far.
type pass struct {
	mac   hash.Hash
	sum   [sha256.Size]byte
	found []string // secrets in clear, to find their echoes in messages
}

// maxFound bounds the secrets whose echoes are searched for; minEcho is the shortest echo that is not just a word that is also a password.
const (
	maxFound = 64
	minEcho  = 6
)

// note remembers a secret for the search for echoes.
func (p *pass) note(secret string) {
	if len(secret) >= minEcho && len(p.found) < maxFound && !isToken(secret) {
		p.found = append(p.found, secret)
	}
}

// Redact removes the secrets from an event, in place: it replaces fields and writes into no memory they alias. Keys and encoding follow.
func (r *Redactor) Redact(e *event.Event) {
	p := r.begin()
	defer r.end(p)
	t := targetOf(e)
	if clean := p.uri(e.RequestURI, t == targetExec); clean != e.RequestURI {
		e.RequestURI = clean
		if r := e.ObjectRef; r != nil {
			// Parts of the path again.
			p.plain(&r.Resource)
			p.plain(&r.Namespace)
			p.plain(&r.Subresource)
		}
	}
	e.RequestObject = p.body(e.RequestObject, t)
	if t != targetSecret && e.Code() >= 300 && bytes.Contains(e.ResponseObject, []byte(`"Status"`)) {
		// The response status again: its message must not reveal more.
		e.ResponseObject = p.statusBody(e.ResponseObject, t)
	} else {
		e.ResponseObject = p.body(e.ResponseObject, t)
	}
	p.status(e, t)
	p.annotations(e, t)

	p.plain(&e.AuditID)
	p.user(&e.User)
	if e.ImpersonatedUser != nil {
		p.user(e.ImpersonatedUser)
	}
	e.UserAgent = p.message(e.UserAgent)
	if e.ObjectRef != nil {
		p.plain(&e.ObjectRef.Name)
		e.ObjectRef.Unknown = p.unknown(e.ObjectRef.Unknown)
	}
	if e.AuthenticationMetadata != nil {
		e.AuthenticationMetadata.Unknown = p.unknown(e.AuthenticationMetadata.Unknown)
	}
	e.Unknown = p.unknown(e.Unknown)
}

// plain redacts a text in place.
func (p *pass) plain(s *string) {
	if suspicious(jsontext.StringBytes(*s)) {
		*s = p.text(*s)
	}
}

// user redacts what a user's identity may carry: tokens in extra, or as a name.
func (p *pass) user(u *event.User) {
	p.plain(&u.Username)
	p.plain(&u.UID)
	u.Groups, _ = p.list(u.Groups, false)
	u.Extra, _ = edited(u.Extra, func(x event.ExtraEntry) (_ event.ExtraEntry, changed bool) {
		x.Values, changed = p.list(x.Values, sensitiveExtra(x.Key))
		return x, changed
	})
	u.Unknown = p.unknown(u.Unknown)
}

// edited returns a list with what edit makes of its elements. It does not write to the list itself:
// changed means that another is returned.
func edited[S ~[]E, E any](list S, edit func(E) (E, bool)) (out S, changed bool) {
	for i := range list {
		e, other := edit(list[i])
		if other && !changed {
			list, changed = slices.Clone(list), true
		}
		if other {
			list[i] = e
		}
	}
	return list, changed
}

// list redacts texts, as a whole if they are secrets.
func (p *pass) list(in []string, whole bool) (out []string, changed bool) {
	return edited(in, func(v string) (string, bool) {
		clean := v
		if whole {
			clean = p.secret(v)
		} else {
			p.plain(&clean)
		}
		return clean, clean != v
	})
}

// secret replaces a whole text.
func (p *pass) secret(s string) string {
	if s == "" || isToken(s) {
		return s
	}
	p.note(s)
	return p.token(jsontext.StringBytes(s))
}

func (p *pass) unknown(m []event.Member) []event.Member {
	m, _ = edited(m, func(one event.Member) (event.Member, bool) {
		before := one.Value
		if sensitiveName(one.Name) {
			one.Value = p.whole(before)
		} else {
			one.Value = p.body(before, targetOther)
		}
		return one, string(one.Value) != string(before)
	})
	return m
}

// annotations redacts annotation values. On requests for secrets, what webhooks write may quote it: only the apiserver's own stay.
func (p *pass) annotations(e *event.Event, t target) {
	e.Annotations, _ = edited(e.Annotations, func(a event.Pair) (event.Pair, bool) {
		v := a.Value
		if t == targetSecret && v != "" {
			a.Value = p.secretAnnotation(a.Key, v)
		} else if suspicious(jsontext.StringBytes(v)) {
			a.Value = p.embedded(v, targetOther)
		}
		return a, a.Value != v
	})
}

// secretAnnotation redacts an annotation of a request for secrets. What the authorizer wrote is compared later: a word of it that happens
// to be a password stays.
func (p *pass) secretAnnotation(key, v string) string {
	domain, _, _ := strings.Cut(key, "/")
	switch {
	case domain == "authorization.k8s.io":
		return p.text(v)
	case domain == "patch.webhook.admission.k8s.io":
		return p.secretPatch(v)
	case domain == "retrial.io", strings.HasSuffix(domain, "k8s.io"), strings.HasSuffix(domain, "kubernetes.io"):
		return p.message(p.echoes(v))
	}
	return p.secret(v)
}

// clean reports whether redaction would leave a status as it is. It errs on the safe side.
func (p *pass) clean(s *event.Status, t target) bool {
	if len(p.found) > 0 || suspicious(s.Raw) || p.message(s.Message) != s.Message {
		return false
	}
	messages := bytes.Count(s.Raw, []byte(`"message"`)) // also of causes
	if s.Message != "" && s.Raw != nil {
		messages--
	}
	onSecret := t == targetSecret && (s.Message != "" || s.Code >= 300)
	return messages == 0 && !(onSecret && (s.Raw == nil || quotes(s.Raw)))
}

func (p *pass) status(e *event.Event, t target) {
	s := e.ResponseStatus
	if s == nil || p.clean(s, t) { // as nearly always
		return
	}
	if s.Raw == nil {
		own := *s
		own.Message = p.statusMessage(s.Message, t == targetSecret)
		e.ResponseStatus = &own
		return
	}
	clean := p.statusBody(s.Raw, t)
	own, err := event.DecodeStatus(clean)
	if err != nil {
		own = &event.Status{Code: s.Code, Raw: clean}
	}
	e.ResponseStatus = own
}

func (p *pass) statusMessage(s string, onSecret bool) string {
	if onSecret {
		return p.secretMessage(s)
	}
	return p.message(p.echoes(s))
}
