package event

// What an apiserver writes is nearly always the canonical form already, except for kind and
// apiVersion, which the items of a list omit. The decoder detects it (decoder.odd is false at the
// end), and then the encoder only copies.

// plain returns the text of the event just decoded from its member level on; nil if that is not
// the canonical form.
func (d *decoder) plain() []byte {
	if d.Odd {
		return nil
	}
	return d.Buf[d.plainAt:d.Pos:d.Pos]
}

// plainHead is what the canonical form begins with.
const plainHead = `{"kind":"Event","apiVersion":"audit.k8s.io/v1",`

// AppendJSON appends what the function [AppendJSON] appends for the item's event, which may have
// been changed by the item's methods only.
func (it *Item) AppendJSON(dst []byte) []byte {
	if it.plain == nil {
		return AppendJSON(dst, it.Event)
	}
	return append(append(dst, plainHead...), it.plain...)
}

// StripBodies does to the item's event what the function [StripBodies] does.
func (it *Item) StripBodies(size int, digest string) {
	it.plain = nil
	StripBodies(it.Event, size, digest)
}

// KeepBodies does to the item's event what the function [KeepBodies] does.
func (it *Item) KeepBodies(request, response []byte, room int) {
	it.plain = nil
	KeepBodies(it.Event, request, response, room)
}

// RedactWith redacts the item's event. If anything changed, the item's text is no longer used.
func (it *Item) RedactWith(r interface{ Redact(e *Event) }) {
	if it.plain == nil {
		r.Redact(it.Event)
		return
	}
	before := *it.Event
	var ref ObjectRef
	var impersonated User
	if before.ObjectRef != nil {
		ref = *before.ObjectRef
	}
	if before.ImpersonatedUser != nil {
		impersonated = *before.ImpersonatedUser
	}
	r.Redact(it.Event)
	e := it.Event
	// A redactor replaces and never writes into what it was given, except for the event, its
	// object reference and its users.
	same := e.Level == before.Level && e.AuditID == before.AuditID && e.Stage == before.Stage && e.RequestURI == before.RequestURI &&
		e.Verb == before.Verb && e.UserAgent == before.UserAgent && sameUser(&e.User, &before.User) &&
		e.ImpersonatedUser == before.ImpersonatedUser && e.AuthenticationMetadata == before.AuthenticationMetadata &&
		e.ObjectRef == before.ObjectRef && e.ResponseStatus == before.ResponseStatus &&
		sameSlice(e.SourceIPs, before.SourceIPs) && sameSlice(e.RequestObject, before.RequestObject) &&
		sameSlice(e.ResponseObject, before.ResponseObject) && sameSlice(e.Annotations, before.Annotations) &&
		sameSlice(e.Unknown, before.Unknown)
	if same && e.ObjectRef != nil {
		a, b := e.ObjectRef, &ref
		same = a.Resource == b.Resource && a.Namespace == b.Namespace && a.Name == b.Name && a.UID == b.UID && a.APIGroup == b.APIGroup &&
			a.APIVersion == b.APIVersion && a.ResourceVersion == b.ResourceVersion && a.Subresource == b.Subresource &&
			sameSlice(a.Unknown, b.Unknown)
	}
	if same && e.ImpersonatedUser != nil {
		same = sameUser(e.ImpersonatedUser, &impersonated)
	}
	if !same {
		it.plain = nil
	}
}

func sameUser(a, b *User) bool {
	return a.Username == b.Username && a.UID == b.UID && sameSlice(a.Groups, b.Groups) && sameSlice(a.Extra, b.Extra) &&
		sameSlice(a.Unknown, b.Unknown)
}

// sameSlice reports whether two slices are the same memory.
func sameSlice[T any](a, b []T) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}
