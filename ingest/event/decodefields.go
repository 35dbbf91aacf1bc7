package event

import (
	"strconv"
	"time"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// annotations consumes an object of strings, or null.
func (d *decoder) annotations() Pairs {
	out := entries(d, &d.pairs, &d.usedPairs, "object of strings", func(d *decoder, name string) Pair { return Pair{name, d.text()} })
	return lastPairs(out)
}

// extras consumes a user's extra: an object of arrays of strings, or null.
func (d *decoder) extras() Extra {
	out := entries(d, &d.extra, &d.usedExtra, "object of string arrays",
		func(d *decoder, name string) ExtraEntry { return ExtraEntry{name, d.list()} })
	return lastExtra(out)
}

// entries consumes an object of which every member becomes an entry of a list, or null. The list is cut from room, counted in used, or nil.
func entries[T any](d *decoder, room *[]T, used *int, want string, entry func(d *decoder, name string) T) []T {
	if d.Null() || !d.Open('{', want) {
		return nil
	}
	out, last := (*room)[:0], ""
	for first := true; ; first = false {
		name, more := d.Member(first)
		if !more {
			break
		}
		e := entry(d, name)
		if d.Err != nil {
			return nil
		}
		d.Odd = d.Odd || !first && name <= last
		last = name
		if len(out) == cap(out) {
			out = grown(out, d.more)
		}
		out = append(out, e)
	}
	if len(out) == 0 || d.Err != nil {
		d.Odd = true
		return nil
	}
	*room = out[len(out):cap(out)]
	*used += len(out)
	return out
}

// user consumes a UserInfo, or null.
func (d *decoder) user(u *User) {
	*u = User{}
	if d.Null() || !d.Open('{', "object") {
		return
	}
	for w := (walk{d: d, of: userLayout}); w.next(); {
		switch w.last {
		case userUsername:
			u.Username = d.optional()
		case userUID:
			u.UID = d.optional()
		case userGroups:
			u.Groups = d.list()
		case userExtra:
			u.Extra = d.extras()
		default:
			u.Unknown = d.unknown(u.Unknown, w.name)
		}
		if d.Err != nil {
			w.failed()
			return
		}
	}
	u.Unknown = lastMembers(u.Unknown)
}

// authentication consumes an AuthenticationMetadata, or null.
func (d *decoder) authentication() *AuthenticationMetadata {
	if d.Null() || !d.Open('{', "object") {
		return nil
	}
	a := new(AuthenticationMetadata)
	for w := (walk{d: d, of: authenticationLayout}); w.next(); {
		if w.last > 0 {
			a.ImpersonationConstraint = d.optional()
		} else {
			a.Unknown = d.unknown(a.Unknown, w.name)
		}
		if d.Err != nil {
			w.failed()
			return nil
		}
	}
	a.Unknown = lastMembers(a.Unknown)
	return a
}

// ref consumes an ObjectReference.
func (d *decoder) ref(r *ObjectRef) {
	*r = ObjectRef{}
	if !d.Open('{', "object") {
		return
	}
	for w := (walk{d: d, of: refLayout}); w.next(); {
		var to *string
		switch w.last {
		case refResource:
			to = &r.Resource
		case refNamespace:
			to = &r.Namespace
		case refName:
			to = &r.Name
		case refUID:
			to = &r.UID
		case refAPIGroup:
			to = &r.APIGroup
		case refAPIVersion:
			to = &r.APIVersion
		case refResourceVersion:
			to = &r.ResourceVersion
		case refSubresource:
			to = &r.Subresource
		default:
			r.Unknown = d.unknown(r.Unknown, w.name)
		}
		if to != nil {
			*to = d.optional()
		}
		if d.Err != nil {
			w.failed()
			return
		}
	}
	r.Unknown = lastMembers(r.Unknown)
}

// DecodeStatus decodes the metav1.Status at the beginning of raw, as Decode decodes that of an event.
// It aliases raw.
func DecodeStatus(raw []byte) (*Status, error) {
	s := new(Status)
	d := decoder{Scanner: jsontext.Scanner{Buf: raw}}
	if d.status(s); d.Err != nil {
		return nil, d.Err
	}
	return s, nil
}

// status consumes a metav1.Status and keeps its text.
func (d *decoder) status(s *Status) {
	*s = Status{}
	start, odd := d.Pos, d.Odd
	d.Spaced = false
	if !d.Open('{', "object") {
		return
	}
	for w := (walk{d: d, of: statusLayout}); w.next(); {
		switch w.last {
		case statusStatus:
			s.Status = d.text()
		case statusMessage:
			s.Message = d.text()
		case statusReason:
			s.Reason = d.text()
		case statusCode:
			s.Code = d.code()
		case statusKind, statusAPIVersion:
			d.text()
		case statusMetadata, statusDetails:
			if c := d.Peek(); c != '{' && c != 'n' {
				d.Unexpected(d.Pos, "object")
			} else {
				d.Skip()
			}
		default:
			d.Skip()
		}
		if d.Err != nil {
			w.failed()
			return
		}
	}
	s.Raw = d.Buf[start:d.Pos:d.Pos]
	d.Odd = odd || d.Spaced // its text is kept as written
	if d.Spaced && d.Err == nil {
		s.Raw = jsontext.Compact(s.Raw)
	}
}

// code consumes an int32, or null.
func (d *decoder) code() int32 {
	if d.Null() {
		return 0
	}
	start := d.Pos
	if c := d.Peek(); c != '-' && c-'0' > 9 {
		d.Unexpected(start, "number")
		return 0
	}
	if !d.Number() {
		return 0
	}
	n, err := strconv.ParseInt(string(d.Buf[start:d.Pos]), 10, 32)
	if err != nil {
		d.Fail(start, "not a 32-bit integer")
	}
	return int32(n)
}

// time consumes a timestamp, or null for the zero time.
func (d *decoder) time() time.Time {
	at := d.Pos
	if d.Null() {
		return time.Time{}
	}
	v := d.text()
	if d.Err != nil {
		return time.Time{}
	}
	t, ok := parseTime(v)
	if !ok {
		d.Fail(at, "not an RFC 3339 timestamp")
	}
	const six = "2006-01-02T15:04:05.000000Z"
	d.Odd = d.Odd || len(v) != len(six) || v[len(v)-1] != 'Z' || t.IsZero()
	return t
}

// unknown keeps a member the type does not model.
func (d *decoder) unknown(to []Member, name string) []Member {
	start := d.Pos
	v, ok := d.Raw()
	if !ok {
		return to
	}
	if v == nil {
		v = d.Buf[start:d.Pos:d.Pos] // null is significant here
	}
	return append(to, Member{name, v})
}
