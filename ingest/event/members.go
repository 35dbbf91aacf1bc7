package event

// Members visits the members of a JSON object in their order, each with its value as it stands
// (white space inside taken out, null as nil), until visit returns false. It reports whether
// the text is an object and was read well, as far as it was visited. It is there for those who
// need little of a large body.
func Members(object []byte, visit func(name string, value []byte) bool) bool {
	s := scanner{buf: object}
	s.space()
	if !s.open('{', "object") {
		return false
	}
	for first := true; ; first = false {
		name, more := s.member(first)
		if !more {
			return s.err == nil && s.end()
		}
		value, ok := s.raw()
		if !ok {
			return false
		}
		if !visit(name, value) {
			return true
		}
	}
}
