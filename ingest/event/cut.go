package event

import (
	"slices"
	"strconv"
	"strings"

	"github.com/retrial-io/retrial/internal/jsontext"
)

// Annotations a receiver adds to an event that was too large to keep whole.
const (
	AnnotationStrippedBytes  = "retrial.io/stripped-bytes"  // size of the event as received
	AnnotationStrippedDigest = "retrial.io/stripped-sha256" // digest of the event as received
)

// annotationTruncated is what the apiserver puts on an event whose bodies it has cut off.
const annotationTruncated = "audit.k8s.io/truncated"

// memberCut says of a role or binding that some of its rules or subjects were cut out: it has at
// least those that are left. No object of Kubernetes has a member of this name.
const memberCut = "cut"

// StripBodies drops request and response object of an event, cuts texts of many kilobytes, and notes
// the size and the digest of what was received, once. Everything else a verdict needs stays.
func StripBodies(e *Event, size int, digest string) {
	e.RequestObject, e.ResponseObject = nil, nil
	shorten(e)
	if !Stripped(e) {
		e.Annotations = e.Annotations.
			Set(AnnotationStrippedBytes, strconv.Itoa(size)).
			Set(AnnotationStrippedDigest, digest)
	}
}

// Stripped says whether a receiver has taken bodies out of the event.
func Stripped(e *Event) bool {
	_, stripped := e.Annotations.Get(AnnotationStrippedBytes)
	return stripped
}

// cut says whether bodies were taken out of the event because it was too large.
func cut(e *Event) bool {
	_, truncated := e.Annotations.Get(annotationTruncated)
	return truncated || Stripped(e)
}

// bodyOverhead bounds what two bodies take in an event beside themselves.
const bodyOverhead = 64

// KeepBodies gives a stripped event back what the replica needs of its bodies, in room bytes: of a
// write of what it keeps, the members it reads. Of a role or binding that is larger still, the
// rules or subjects there is room for are kept, with the mark that there were more. The answer goes
// before the request, which is kept where nothing has to be cut of it, or where nothing is left of
// the answer.
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
	if e.Verb == "patch" { // no object: what is not known of it has a meaning, too
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

// KeepObject returns what the replica needs of an object of a group resource, in room bytes, as
// [KeepBodies] keeps it of a body; nil when there is no room for it.
func KeepObject(resource string, object []byte, room int) []byte {
	var t writeTarget
	t.resource, t.group, _ = strings.Cut(resource, ".")
	return t.reduced(object, room)
}

// reduced returns what is kept of a body in room bytes, nil when there is no room for what counts.
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

// cutPrefix begins an object that cutLists has cut.
const cutPrefix = `{"` + memberCut + `":true`

func isCut(body []byte) bool {
	return len(body) >= len(cutPrefix) && string(body[:len(cutPrefix)]) == cutPrefix
}

// mostOfRoom is which part of the room one rule or subject may take: a name of a megabyte must not
// be all that is kept.
const mostOfRoom = 64

// cutLists returns a pruned role or binding with the rules or subjects that there is room for, and
// the mark that there were more; nil when there is no room even for none.
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
		return nil // a list, a table: what is left of it would not be complete
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
