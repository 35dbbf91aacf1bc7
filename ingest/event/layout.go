package event

// layout is the members of an object in the order of the canonical form, each as its text
// begins: `"name":`. The place of a member is its index, counted from 1; 0 is that of a member
// that the layout lacks.
type layout []string

// ahead is how many consecutive members of an object the canonical form omits at most, nearly always.
const ahead = 5

// Places in the layouts of an event's objects.
const (
	eventKind = 1 + iota
	eventAPIVersion
	eventLevel
	eventAuditID
	eventStage
	eventRequestURI
	eventVerb
	eventUser
	eventImpersonatedUser
	eventAuthenticationMetadata
	eventSourceIPs
	eventUserAgent
	eventObjectRef
	eventResponseStatus
	eventRequestObject
	eventResponseObject
	eventRequestReceivedTimestamp
	eventStageTimestamp
	eventAnnotations

	// always are the members of an event that the canonical form never omits, except the first
	// two.
	always = 1<<eventLevel | 1<<eventAuditID | 1<<eventStage | 1<<eventRequestURI | 1<<eventVerb | 1<<eventUser |
		1<<eventRequestReceivedTimestamp | 1<<eventStageTimestamp
)

const (
	userUsername = 1 + iota
	userUID
	userGroups
	userExtra
)

const (
	refResource = 1 + iota
	refNamespace
	refName
	refUID
	refAPIGroup
	refAPIVersion
	refResourceVersion
	refSubresource
)

const (
	statusKind = 1 + iota
	statusAPIVersion
	statusMetadata
	statusStatus
	statusMessage
	statusReason
	statusDetails
	statusCode
)

//nolint:gochecknoglobals // constant tables
var (
	eventLayout = layout{
		`"kind":`, `"apiVersion":`, `"level":`, `"auditID":`, `"stage":`, `"requestURI":`, `"verb":`, `"user":`, `"impersonatedUser":`,
		`"authenticationMetadata":`, `"sourceIPs":`, `"userAgent":`, `"objectRef":`, `"responseStatus":`, `"requestObject":`,
		`"responseObject":`, `"requestReceivedTimestamp":`, `"stageTimestamp":`, `"annotations":`,
	}
	userLayout           = layout{`"username":`, `"uid":`, `"groups":`, `"extra":`}
	authenticationLayout = layout{`"impersonationConstraint":`}
	refLayout            = layout{
		`"resource":`, `"namespace":`, `"name":`, `"uid":`, `"apiGroup":`, `"apiVersion":`, `"resourceVersion":`, `"subresource":`,
	}
	statusLayout = layout{`"kind":`, `"apiVersion":`, `"metadata":`, `"status":`, `"message":`, `"reason":`, `"details":`, `"code":`}
)

// name returns the name of the member at a place.
func (l layout) name(place int) string { return l[place-1][1 : len(l[place-1])-2] }

// place returns the place of a member.
func (l layout) place(name string) int {
	for place := 1; place <= len(l); place++ {
		if l.name(place) == name {
			return place
		}
	}
	return 0
}

// walk iterates over the members of an object that has been opened. Nearly always it is written
// in the order of the layout: then no name is searched for its end. A member in another place, or
// one that the layout lacks, makes the text odd.
type walk struct {
	d     *decoder
	of    layout
	begun bool
	last  int    // place of the member walked to, 0 for one that the layout lacks
	name  string // of that one
	after int    // place of the last that the layout has
	seen  uint32 // bits of places
}

// next moves to the value of the next member; it returns false after the last one and after a
// failure.
func (w *walk) next() bool {
	d := w.d
	rest := d.Buf[d.Pos:]
	if w.begun && len(rest) > 0 && rest[0] == ',' {
		rest = rest[1:]
	} else if w.begun {
		return w.search()
	}
	for i := w.after; i < len(w.of) && i <= w.after+ahead; i++ {
		text := w.of[i]
		if n := len(text); len(rest) > n && rest[n-1] == ':' && string(rest[:n]) == text && rest[n] > ' ' {
			d.Pos = len(d.Buf) - len(rest) + n
			w.begun, w.last, w.after = true, i+1, i+1
			w.seen |= 1 << w.last
			return true
		}
	}
	return w.search()
}

// search is next for what is not written as expected.
func (w *walk) search() bool {
	name, more := w.d.Member(!w.begun)
	if !more {
		return false
	}
	w.begun, w.name, w.last = true, name, w.of.place(name)
	if w.last <= w.after {
		w.d.Odd = true
	}
	if w.last > 0 {
		w.after = w.last
		w.seen |= 1 << w.last
	}
	return true
}

// failed prefixes the failure's field with the current member. One that the layout lacks is the client's text, and not for a message.
func (w *walk) failed() {
	if w.last > 0 {
		w.d.in(w.of.name(w.last))
	}
}
