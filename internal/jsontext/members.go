package jsontext

// Members calls visit for the members of a JSON object in their order, each with its value as
// written (without white space inside, null as nil), until visit returns false. It reports
// whether the text is an object and valid as far as it was visited. It is for callers that need
// little of a large body.
func Members(object []byte, visit func(name string, value []byte) bool) bool {
	s := Scanner{Buf: object}
	s.space()
	if !s.Open('{', "object") {
		return false
	}
	for first := true; ; first = false {
		name, more := s.Member(first)
		if !more {
			return s.Err == nil && s.End()
		}
		value, ok := s.Raw()
		if !ok {
			return false
		}
		if !visit(name, value) {
			return true
		}
	}
}
