package storage

import (
	"fmt"
	"strings"

	"github.com/retrial-io/retrial/verdict"
)

// follows are the fields of a Verdict that no column holds, since they follow from what others
// do.
var follows = map[string]string{ //nolint:gochecknoglobals // constant table
	"Impersonation.Recorded": "CompleteImpersonation tells it from the event",
	"Impersonation.Cause":    "CompleteImpersonation tells it from the checks behind the request",
}

// Said is what the table of columns says of a field of a Verdict.
type Said struct {
	Stored, Compared, Hashed          bool
	NotStored, NotCompared, NotHashed string // why
}

// SaidOf returns what the table says of a field, by its path.
func SaidOf(path string) Said {
	if why := follows[path]; why != "" {
		return Said{NotStored: why, NotCompared: why, NotHashed: why}
	}
	table := newStored().table
	var of *column
	for i := range table {
		c := &table[i]
		if c.holds != "" && (path == c.holds || strings.HasPrefix(path, c.holds+".")) && (of == nil || len(c.holds) > len(of.holds)) {
			of = c
		}
	}
	if of == nil {
		return Said{}
	}
	said := Said{Stored: of.into != nil, NotCompared: of.uncompared, NotHashed: of.unhashed}
	said.Compared, said.Hashed = of.same != nil, of.hash != nil
	for i := range table {
		if of.with != "" && table[i].name == of.with {
			said.Hashed = table[i].hash != nil
			said.Compared = said.Compared || of.uncompared == "" && table[i].same != nil
		}
	}
	return said
}

// VersionOf returns the version of a row.
func VersionOf(r *verdict.Row) (uint64, error) {
	b := newBlock(foldsOf([]verdict.Row{*r}))
	if err := b.append(r); err != nil {
		return 0, err
	}
	return b.version[0], nil
}

// ColumnsText returns the table of columns as docs/schema.md has it.
func ColumnsText() string {
	var out strings.Builder
	out.WriteString("| column | of the verdict | a change is a correction | a change is another version |\n| --- | --- | --- | --- |\n")
	for _, c := range newStored().table {
		if c.holds == "" && c.hash == nil && c.with == "" {
			continue
		}
		holds, compared, hashed := "–", "–", "–"
		if c.holds != "" {
			holds, compared, hashed = "`"+c.holds+"`", "no: "+c.uncompared, "no: "+c.unhashed
		}
		switch {
		case c.same != nil:
			compared = "yes"
		case c.holds != "" && c.uncompared == "":
			compared = "with `" + c.with + "`"
		}
		switch {
		case c.hash != nil:
			hashed = fmt.Sprintf("yes, place %d", c.place)
		case c.with != "":
			hashed = "with `" + c.with + "`"
		}
		fmt.Fprintf(&out, "| `%s` | %s | %s | %s |\n", c.name, holds, compared, hashed)
	}
	return out.String()
}
