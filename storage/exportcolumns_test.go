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

// ColumnsText returns what docs/schema.md says of the table: the columns of a verdict of which a change is no
// correction, or no other version, and why.
func ColumnsText() string {
	var out strings.Builder
	out.WriteString("| column | of the verdict | a change is a correction | a change is another version |\n| --- | --- | --- | --- |\n")
	for _, c := range newStored().table {
		if c.uncompared == "" && c.unhashed == "" {
			continue
		}
		said := func(why string) string {
			if why == "" {
				return "yes"
			}
			return "no: " + why
		}
		fmt.Fprintf(&out, "| `%s` | `%s` | %s | %s |\n", c.name, c.holds, said(c.uncompared), said(c.unhashed))
	}
	return out.String()
}
