package jsontext

// Members visits the members of a JSON object in their order, each with its value as it stands
// (white space inside taken out, null as nil), until visit returns false. It reports whether
// the text is an object and was read well, as far as it was visited. It is there for those who
// need little of a large body.
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
