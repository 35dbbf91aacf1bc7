package event

import (
	"strconv"
	"time"
)

// annotations consumes an object of strings, or null.
func (d *decoder) annotations() Pairs {
	if d.null() || !d.open('{', "object of strings") {
		return nil
	}
	out := d.pairs[:0]
	for first := true; ; first = false {
		name, more := d.member(first)
		if !more {
			break
		}
		v := d.text()
		if d.err != nil {
			return nil
		}
		if len(out) == cap(out) {
			out = grown(out, d.more)
		}
		out = append(out, Pair{name, v})
	}
	if len(out) == 0 || d.err != nil {
		d.odd = true
		return nil
	}
	d.pairs = out[len(out):cap(out)]
	d.usedPairs += len(out)
	for i := 1; i < len(out); i++ {
		d.odd = d.odd || out[i-1].Key >= out[i].Key
	}
	return lastPairs(out)
}

// extras consumes a user's extra: an object of arrays of strings, or null.
func (d *decoder) extras() Extra {
	if d.null() || !d.open('{', "object of string arrays") {
		return nil
	}
	out := d.extra[:0]
	for first := true; ; first = false {
		name, more := d.member(first)
		if !more {
			break
		}
		v := d.list()
		if d.err != nil {
			return nil
		}
		if len(out) == cap(out) {
			out = grown(out, d.more)
		}
		out = append(out, ExtraEntry{name, v})
	}
	if len(out) == 0 || d.err != nil {
		d.odd = true
		return nil
	}
	d.extra = out[len(out):cap(out)]
	d.usedExtra += len(out)
	for i := 1; i < len(out); i++ {
		d.odd = d.odd || out[i-1].Key >= out[i].Key
	}
	return lastExtra(out)
}

// user consumes a UserInfo, or null.
func (d *decoder) user(u *User) {
	*u = User{}
	if d.null() || !d.open('{', "object") {
		return
	}
	o := order{d: d}
	for first := true; ; first = false {
		name, more := d.member(first)
		if !more {
			break
		}
		switch name {
		case "username":
			o.next(1)
			u.Username = d.optional()
		case "uid":
			o.next(2)
			u.UID = d.optional()
		case "groups":
			o.next(3)
			u.Groups = d.list()
		case "extra":
			o.next(4)
			u.Extra = d.extras()
		default:
			d.odd = true
			if u.Unknown = d.unknown(u.Unknown, name); d.err != nil {
				return
			}
			continue
		}
		if !d.in(name) {
			return
		}
	}
	u.Unknown = lastMembers(u.Unknown)
}

// authentication consumes an AuthenticationMetadata, or null.
func (d *decoder) authentication() *AuthenticationMetadata {
	if d.null() || !d.open('{', "object") {
		return nil
	}
	a := new(AuthenticationMetadata)
	o := order{d: d}
	for first := true; ; first = false {
		name, more := d.member(first)
		if !more {
			break
		}
		if name != "impersonationConstraint" {
			d.odd = true
			if a.Unknown = d.unknown(a.Unknown, name); d.err != nil {
				return nil
			}
			continue
		}
		o.next(1)
		a.ImpersonationConstraint = d.optional()
		if !d.in(name) {
			return nil
		}
	}
	a.Unknown = lastMembers(a.Unknown)
	return a
}

// ref consumes an ObjectReference.
func (d *decoder) ref(r *ObjectRef) {
	*r = ObjectRef{}
	if !d.open('{', "object") {
		return
	}
	o := order{d: d}
	for first := true; ; first = false {
		name, more := d.member(first)
		if !more {
			break
		}
		var to *string
		switch name {
		case "resource":
			o.next(1)
			to = &r.Resource
		case "namespace":
			o.next(2)
			to = &r.Namespace
		case "name":
			o.next(3)
			to = &r.Name
		case "uid":
			o.next(4)
			to = &r.UID
		case "apiGroup":
			o.next(5)
			to = &r.APIGroup
		case "apiVersion":
			o.next(6)
			to = &r.APIVersion
		case "resourceVersion":
			o.next(7)
			to = &r.ResourceVersion
		case "subresource":
			o.next(8)
			to = &r.Subresource
		default:
			d.odd = true
			if r.Unknown = d.unknown(r.Unknown, name); d.err != nil {
				return
			}
			continue
		}
		*to = d.optional()
		if !d.in(name) {
			return
		}
	}
	r.Unknown = lastMembers(r.Unknown)
}

// status consumes a metav1.Status and keeps its text.
func (d *decoder) status(s *Status) {
	*s = Status{}
	start, odd := d.pos, d.odd
	d.spaced = false
	if !d.open('{', "object") {
		return
	}
	for first := true; ; first = false {
		name, more := d.member(first)
		if !more {
			break
		}
		switch name {
		case "status":
			s.Status = d.text()
		case "message":
			s.Message = d.text()
		case "reason":
			s.Reason = d.text()
		case "code":
			s.Code = d.code()
		case "kind", "apiVersion":
			d.text()
		case "metadata", "details":
			if c := d.peek(); c != '{' && c != 'n' {
				d.unexpected(d.pos, "object")
			} else {
				d.skip()
			}
		default:
			if !d.skip() {
				return
			}
		}
		if !d.in(name) {
			return
		}
	}
	s.Raw = d.buf[start:d.pos:d.pos]
	d.odd = odd || d.spaced // its text is kept, however it is written
	if d.spaced && d.err == nil {
		s.Raw = compact(s.Raw)
	}
}

// code consumes an int32, or null.
func (d *decoder) code() int32 {
	if d.null() {
		return 0
	}
	start := d.pos
	if c := d.peek(); c != '-' && c-'0' > 9 {
		d.unexpected(start, "number")
		return 0
	}
	if !d.number() {
		return 0
	}
	n, err := strconv.ParseInt(string(d.buf[start:d.pos]), 10, 32)
	if err != nil {
		d.fail(start, "not a 32-bit integer")
	}
	return int32(n)
}

// time consumes a timestamp, or null for the zero time.
func (d *decoder) time() time.Time {
	at := d.pos
	if d.null() {
		return time.Time{}
	}
	v := d.text()
	if d.err != nil {
		return time.Time{}
	}
	t, ok := parseTime(v)
	if !ok {
		d.fail(at, "not an RFC 3339 timestamp")
	}
	const six = "2006-01-02T15:04:05.000000Z"
	d.odd = d.odd || len(v) != len(six) || v[len(v)-1] != 'Z' || t.IsZero()
	return t
}

// unknown keeps a member the type does not model.
func (d *decoder) unknown(to []Member, name string) []Member {
	start := d.pos
	v, ok := d.raw()
	if !ok {
		return to
	}
	if v == nil {
		v = d.buf[start:d.pos:d.pos] // null says something here
	}
	return append(to, Member{name, v})
}
