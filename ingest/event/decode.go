package event

import "github.com/retrial-io/retrial/internal/jsontext"

// APIVersion, Kind and ListKind are what the decoder accepts and the encoder writes.
const (
	APIVersion = "audit.k8s.io/v1"
	Kind       = "Event"
	ListKind   = "EventList"
)

// block is an event with what nearly every event refers to, in one allocation.
type block struct {
	event  Event
	ref    ObjectRef
	status Status
}

// single is the memory of an event decoded alone: one allocation with room for the lists
// of a service account's request.
type single struct {
	block block
	strs  [12]string
	pairs [3]Pair
	extra [5]ExtraEntry
}

// decoder builds events from one buffer. What events refer to is cut from shared chunks:
// their strings keep the buffer alive anyway.
type decoder struct {
	jsontext.Scanner
	plainAt int     // where the member level of the event begins
	bodies  Bodies  // of the event being decoded, as the caller stated
	blocks  []block // for events, all zero
	room    []Item  // for items
	strs    []string
	pairs   []Pair
	extra   []ExtraEntry
	more    int // entries of a fresh chunk of the last three

	usedBlocks, usedStrs, usedPairs, usedExtra int // entries in use
}

// grown returns a list with room for another entry, at the front of a fresh chunk.
func grown[T any](list []T, more int) []T {
	fresh := make([]T, len(list), max(more, 2*len(list)))
	copy(fresh, list)
	return fresh
}

// Decode decodes one audit.k8s.io/v1 Event, as an audit log line holds it, or an item of a webhook's list, without kind and apiVersion.
//
// Member names are compared exactly; of a repeated member the last wins; null means absent.
// A value of the wrong type, text that is not JSON, anything after the object, or another
// kind is an error, a *jsontext.Error. Strings and raw values of the event alias raw.
func Decode(raw []byte) (*Event, error) {
	room := new(single)
	d := decoder{
		Scanner: jsontext.NewScanner(raw, 512),
		strs:    room.strs[:], pairs: room.pairs[:], extra: room.extra[:],
		more: 8,
	}
	if !d.event(&room.block) || !d.End() {
		return nil, d.Err
	}
	return &room.block.event, nil
}

// in prefixes the failure's field with the member it happened in.
func (d *decoder) in(name string) bool {
	if d.Err == nil {
		return true
	}
	// An unknown member's name is the client's text: it does not belong in a message.
	if d.Err.Field == "" {
		d.Err.Field = name
	} else {
		d.Err.Field = name + "." + d.Err.Field
	}
	return false
}

// event decodes the event at the position into a zero block.
func (d *decoder) event(b *block) bool {
	if !d.Open('{', "object") {
		return false
	}
	e := &b.event
	w := walk{d: d, of: eventLayout}
	d.Odd = false
	for {
		at := d.Pos
		if !w.next() {
			break
		}
		switch w.last {
		case eventKind:
			d.fixed(Kind)
		case eventAPIVersion:
			d.fixed(APIVersion)
		case eventLevel:
			if d.plainAt = at; d.Buf[at] == ',' {
				d.plainAt++
			}
			e.Level = Level(d.text())
		case eventAuditID:
			e.AuditID = d.text()
		case eventStage:
			e.Stage = Stage(d.text())
		case eventRequestURI:
			e.RequestURI = d.text()
		case eventVerb:
			e.Verb = d.text()
		case eventUser:
			d.user(&e.User)
		case eventImpersonatedUser:
			e.ImpersonatedUser = nil
			if !d.Null() {
				e.ImpersonatedUser = new(User)
				d.user(e.ImpersonatedUser)
			}
		case eventAuthenticationMetadata:
			e.AuthenticationMetadata = d.authentication()
		case eventSourceIPs:
			e.SourceIPs = d.list()
		case eventUserAgent:
			e.UserAgent = d.optional()
		case eventObjectRef:
			e.ObjectRef = nil
			if !d.Null() {
				e.ObjectRef = &b.ref
				d.ref(&b.ref)
			}
		case eventResponseStatus:
			e.ResponseStatus = nil
			if !d.Null() {
				e.ResponseStatus = &b.status
				d.status(&b.status)
			}
		case eventRequestObject:
			e.RequestObject = d.body(d.bodies.Request)
		case eventResponseObject:
			e.ResponseObject = d.body(d.bodies.Response)
		case eventRequestReceivedTimestamp:
			e.RequestReceivedTimestamp = d.time()
		case eventStageTimestamp:
			e.StageTimestamp = d.time()
		case eventAnnotations:
			e.Annotations = d.annotations()
		default:
			e.Unknown = d.unknown(e.Unknown, w.name)
		}
		if d.Err != nil {
			w.failed()
			return false
		}
	}
	e.Unknown = lastMembers(e.Unknown)
	d.Odd = d.Odd || w.seen&always != always
	return d.Err == nil
}

// fixed consumes a string that must be the one given; empty and null count as absent.
func (d *decoder) fixed(want string) {
	at := d.Pos
	if got := d.text(); d.Err == nil && got != "" && got != want {
		d.Fail(at, "not "+want)
	}
}

// optional consumes a string or null that the canonical form omits if it is empty.
func (d *decoder) optional() string {
	v := d.text()
	d.Odd = d.Odd || v == ""
	return v
}

// text consumes a string or null.
func (d *decoder) text() string {
	if d.Pos < len(d.Buf) && d.Buf[d.Pos] == '"' {
		v, _ := d.Str()
		return v
	}
	if !d.Null() {
		d.Unexpected(d.Pos, "string")
	}
	return ""
}

// list consumes an array of strings, or null. An empty one is nil.
func (d *decoder) list() []string {
	if d.Null() || !d.Open('[', "array of strings") {
		return nil
	}
	out := d.strs[:0]
	for first := true; d.Element(first); first = false {
		v := d.text()
		if d.Err != nil {
			return nil
		}
		if len(out) == cap(out) {
			out = grown(out, d.more)
		}
		out = append(out, v)
	}
	if len(out) == 0 {
		d.Odd = true
		return nil
	}
	d.strs = out[len(out):cap(out)]
	d.usedStrs += len(out)
	return out[:len(out):len(out)]
}
