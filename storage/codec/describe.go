package codec

// Described says of a column what the table of columns does.
type Described struct {
	Name, Holds            string // its name, and the field of a Verdict it has, "" for none
	Stored, Compared       bool
	Hashed                 bool
	Place                  int    // of its hash in the version
	With                   string // the column that is compared and hashed for both
	NotCompared, NotHashed string // why
}

// Describe returns the table of columns in words.
func Describe() []Described {
	var out []Described
	for _, c := range NewStored().table {
		out = append(out, Described{
			Name: c.name, Holds: c.holds, Stored: c.into != nil, Compared: c.same != nil, Hashed: c.hash != nil, Place: c.place, With: c.with,
			NotCompared: c.uncompared, NotHashed: c.unhashed,
		})
	}
	return out
}
