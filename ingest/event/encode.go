package event

import (
	"slices"
	"strconv"
	"time"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// AppendJSON appends the canonical JSON of an event: kind and apiVersion first, members in
// the order of the upstream type, annotations and extra sorted by key, timestamps in
// microseconds UTC, unknown members last, absent members omitted as the apiserver omits
// them. Equal events give equal bytes, and decoding these gives the event again.
//
// Raw values (bodies, the status's Raw, unknown members) are written as they are and must be JSON. Invalid UTF-8 in strings becomes U+FFFD.
func AppendJSON(dst []byte, e *Event) []byte {
	dst = append(dst, `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":`...)
	dst = jsontext.AppendString(dst, string(e.Level))
	dst = appendMember(dst, `,"auditID":`, e.AuditID)
	dst = appendMember(dst, `,"stage":`, string(e.Stage))
	dst = appendMember(dst, `,"requestURI":`, e.RequestURI)
	dst = appendMember(dst, `,"verb":`, e.Verb)
	dst = append(dst, `,"user":`...)
	dst = appendUser(dst, &e.User)
	if e.ImpersonatedUser != nil {
		dst = append(dst, `,"impersonatedUser":`...)
		dst = appendUser(dst, e.ImpersonatedUser)
	}
	if a := e.AuthenticationMetadata; a != nil {
		dst = append(dst, `,"authenticationMetadata":{`...)
		from := len(dst)
		dst = appendOptional(dst, `,"impersonationConstraint":`, a.ImpersonationConstraint)
		dst = appendUnknown(dst, a.Unknown)
		dst = append(jsontext.DropComma(dst, from), '}')
	}
	if len(e.SourceIPs) > 0 {
		dst = append(dst, `,"sourceIPs":`...)
		dst = appendStrings(dst, e.SourceIPs)
	}
	dst = appendOptional(dst, `,"userAgent":`, e.UserAgent)
	if r := e.ObjectRef; r != nil {
		dst = append(dst, `,"objectRef":{`...)
		from := len(dst)
		dst = appendOptional(dst, `,"resource":`, r.Resource)
		dst = appendOptional(dst, `,"namespace":`, r.Namespace)
		dst = appendOptional(dst, `,"name":`, r.Name)
		dst = appendOptional(dst, `,"uid":`, r.UID)
		dst = appendOptional(dst, `,"apiGroup":`, r.APIGroup)
		dst = appendOptional(dst, `,"apiVersion":`, r.APIVersion)
		dst = appendOptional(dst, `,"resourceVersion":`, r.ResourceVersion)
		dst = appendOptional(dst, `,"subresource":`, r.Subresource)
		dst = appendUnknown(dst, r.Unknown)
		dst = append(jsontext.DropComma(dst, from), '}')
	}
	if e.ResponseStatus != nil {
		dst = append(dst, `,"responseStatus":`...)
		dst = appendStatus(dst, e.ResponseStatus)
	}
	dst = appendRaw(dst, `,"requestObject":`, e.RequestObject)
	dst = appendRaw(dst, `,"responseObject":`, e.ResponseObject)
	dst = appendTimestamp(dst, `,"requestReceivedTimestamp":`, e.RequestReceivedTimestamp)
	dst = appendTimestamp(dst, `,"stageTimestamp":`, e.StageTimestamp)
	if len(e.Annotations) > 0 {
		dst = append(dst, `,"annotations":{`...)
		from := len(dst)
		for _, pair := range sortedPairs(e.Annotations) {
			dst = append(dst, ',')
			dst = append(jsontext.AppendString(dst, pair.Key), ':')
			dst = jsontext.AppendString(dst, pair.Value)
		}
		dst = append(jsontext.DropComma(dst, from), '}')
	}
	return append(appendUnknown(dst, e.Unknown), '}')
}

// appendTimestamp appends a timestamp, null for the zero time as upstream does.
func appendTimestamp(dst []byte, prefix string, t time.Time) []byte {
	dst = append(dst, prefix...)
	if t.IsZero() {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	return append(appendTime(dst, t), '"')
}

// appendUser appends a UserInfo.
func appendUser(dst []byte, u *User) []byte {
	dst = append(dst, '{')
	from := len(dst)
	dst = appendOptional(dst, `,"username":`, u.Username)
	dst = appendOptional(dst, `,"uid":`, u.UID)
	if len(u.Groups) > 0 {
		dst = append(dst, `,"groups":`...)
		dst = appendStrings(dst, u.Groups)
	}
	if len(u.Extra) > 0 {
		dst = append(dst, `,"extra":{`...)
		at := len(dst)
		x := u.Extra
		if !slices.IsSortedFunc(x, compareExtra) {
			x = slices.Clone(x)
			slices.SortStableFunc(x, compareExtra)
		}
		for _, entry := range x {
			dst = append(dst, ',')
			dst = append(jsontext.AppendString(dst, entry.Key), ':')
			if entry.Values == nil {
				dst = append(dst, "null"...)
			} else {
				dst = appendStrings(dst, entry.Values)
			}
		}
		dst = append(jsontext.DropComma(dst, at), '}')
	}
	dst = appendUnknown(dst, u.Unknown)
	return append(jsontext.DropComma(dst, from), '}')
}

// appendStatus appends a Status: its text as recorded, or its parts if it was made here.
func appendStatus(dst []byte, s *Status) []byte {
	if s.Raw != nil {
		return append(dst, s.Raw...)
	}
	dst = append(dst, `{"metadata":{}`...)
	dst = appendOptional(dst, `,"status":`, s.Status)
	dst = appendOptional(dst, `,"message":`, s.Message)
	dst = appendOptional(dst, `,"reason":`, s.Reason)
	if s.Code != 0 {
		dst = append(dst, `,"code":`...)
		dst = strconv.AppendInt(dst, int64(s.Code), 10)
	}
	return append(dst, '}')
}

// sortedPairs returns the pairs in key order; those of a decoded event are.
func sortedPairs(p Pairs) Pairs {
	if slices.IsSortedFunc(p, comparePairs) {
		return p
	}
	p = slices.Clone(p)
	slices.SortStableFunc(p, comparePairs)
	return p
}

func appendMember(dst []byte, prefix, v string) []byte {
	return jsontext.AppendString(append(dst, prefix...), v)
}

func appendOptional(dst []byte, prefix, v string) []byte {
	if v == "" {
		return dst
	}
	return jsontext.AppendString(append(dst, prefix...), v)
}

func appendRaw(dst []byte, prefix string, v []byte) []byte {
	if v == nil {
		return dst
	}
	return append(append(dst, prefix...), v...)
}

func appendUnknown(dst []byte, members []Member) []byte {
	for i := range members {
		dst = append(dst, ',')
		dst = append(jsontext.AppendString(dst, members[i].Name), ':')
		dst = append(dst, members[i].Value...)
	}
	return dst
}

func appendStrings(dst []byte, list []string) []byte {
	dst = append(dst, '[')
	for i, v := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = jsontext.AppendString(dst, v)
	}
	return append(dst, ']')
}
