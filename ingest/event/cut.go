package event

import (
	"slices"
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// Annotations that a receiver adds to an event too large to keep whole.
const (
	AnnotationStrippedBytes  = "retrial.io/stripped-bytes"  // size of the event as received
	AnnotationStrippedDigest = "retrial.io/stripped-sha256" // digest of the event as received
)

// annotationTruncated is the apiserver's annotation on an event whose bodies it dropped.
const annotationTruncated = "audit.k8s.io/truncated"

// memberCut marks a role or binding of which some rules or subjects were cut: it has at least those left. No object has such a member.
const memberCut = "cut"

// StripBodies drops the request and response object of an event, cuts texts of many kilobytes, and
// records the size and the digest of what was received, once. Everything else a verdict needs stays.
func StripBodies(e *Event, size int, digest string) {
	e.RequestObject, e.ResponseObject = nil, nil
	shorten(e)
	if !Stripped(e) {
		e.Annotations = e.Annotations.
			Set(AnnotationStrippedBytes, strconv.Itoa(size)).
			Set(AnnotationStrippedDigest, digest)
	}
}

// Stripped reports whether a receiver has taken bodies out of the event.
func Stripped(e *Event) bool {
	_, stripped := e.Annotations.Get(AnnotationStrippedBytes)
	return stripped
}

// cut reports whether bodies were dropped from the event because it was too large.
func cut(e *Event) bool {
	_, truncated := e.Annotations.Get(annotationTruncated)
	return truncated || Stripped(e)
}

// bodyOverhead bounds what two bodies take in an event in addition to themselves.
const bodyOverhead = 64

// KeepBodies restores to a stripped event what the replica needs of its bodies, in room bytes: for a
// write that the replica keeps, the members it reads. Of a role or binding that is still larger, the
// rules or subjects that fit are kept, with the mark that there were more. The response has
// precedence over the request, which is kept if it need not be cut, or if nothing is left of the
// response.
func KeepBodies(e *Event, request, response []byte, room int) {
	t, ok := writeTargetOf(e.RequestURI)
	if !ok || !t.keeps(&Event{
		Verb: e.Verb, RequestURI: e.RequestURI, User: e.User, ImpersonatedUser: e.ImpersonatedUser,
		ResponseStatus: e.ResponseStatus, RequestObject: request, ResponseObject: response,
	}) {
		return
	}
	room -= bodyOverhead
	e.ResponseObject = t.reduced(response, room)
	room -= len(e.ResponseObject)
	if e.Verb == "patch" { // not an object: what it leaves open matters, too
		if len(request) <= room {
			e.RequestObject = request
		}
		return
	}
	e.RequestObject = t.reduced(request, room)
	if e.ResponseObject != nil && isCut(e.RequestObject) {
		e.RequestObject = nil
	}
}

// KeepObject returns what the replica needs of an object of a group resource, in room bytes, as [KeepBodies] does; nil if there is no room.
func KeepObject(resource string, object []byte, room int) []byte {
	var t writeTarget
	t.resource, t.group, _ = strings.Cut(resource, ".")
	return t.reduced(object, room)
}

// reduced returns what is kept of a body in room bytes, nil if there is no room for what matters.
func (t *writeTarget) reduced(body []byte, room int) []byte {
	if len(body) == 0 || room <= 0 {
		return nil
	}
	pruned := jsontext.Prune(make([]byte, 0, min(len(body), room)), body, t.keptShape())
	if t.isRBAC() {
		pruned = shortNamed(pruned)
	}
	switch {
	case len(pruned) <= room:
		return slices.Clip(pruned)
	case t.isRBAC():
		return cutLists(pruned, room)
	}
	return nil
}

// cutPrefix is the beginning of an object that cutLists has cut.
const cutPrefix = `{"` + memberCut + `":true`

func isCut(body []byte) bool {
	return len(body) >= len(cutPrefix) && string(body[:len(cutPrefix)]) == cutPrefix
}

// mostOfRoom is the part of the room that one rule or subject may take: a name of a megabyte must
// not be all that is kept.
const mostOfRoom = 64

// cutLists returns a pruned role or binding with the rules or subjects that fit, and the mark that there were more; nil if not even the
// rest fits.
func cutLists(object []byte, room int) []byte {
	s := jsontext.Scanner{Buf: object}
	if s.Peek() != '{' {
		return nil
	}
	s.Pos++
	out := append(make([]byte, 0, min(room, len(object)+len(cutPrefix))), cutPrefix...)
	var lists [][2]int // name and value of members that are lists, to be cut
	for first := true; ; first = false {
		start := s.Pos
		name, more := s.Member(first)
		if !more {
			break
		}
		value := s.Pos
		if !s.Skip() {
			return nil
		}
		switch {
		case (name == "rules" || name == "subjects") && object[value] == '[':
			lists = append(lists, [2]int{start, value})
		case name == memberCut:
		default:
			member := object[start:s.Pos]
			if first {
				out = append(out, ',')
			}
			out = append(out, member...)
		}
	}
	if s.Err != nil || !s.End() || len(lists) != 1 {
		return nil // a list or a table: what is left would not be complete
	}
	head := object[lists[0][0]:lists[0][1]]
	if head[0] != ',' {
		out = append(out, ',')
	}
	out = append(out, head...)
	if len(out)+len("[]}") > room {
		return nil
	}
	s = jsontext.Scanner{Buf: object, Pos: lists[0][1] + 1}
	out = append(out, '[')
	kept := false
	for first := true; s.Element(first); first = false {
		start := s.ValuePos()
		if !s.Skip() {
			return nil
		}
		element := object[start:s.Pos]
		if len(element) > room/mostOfRoom || len(out)+len(element)+len(",]}") > room {
			continue
		}
		if kept {
			out = append(out, ',')
		}
		out, kept = append(out, element...), true
	}
	return append(out, "]}"...)
}
