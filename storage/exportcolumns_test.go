package storage

import (
	"fmt"
	"strings"

	"github.com/retrial-io/retrial/storage/codec"
	"github.com/retrial-io/retrial/verdict"
)

// follows are the fields of a Verdict that no column holds, since they follow from what others do.
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
	table := codec.Describe()
	var of *codec.Described
	for i := range table {
		c := &table[i]
		if c.Holds != "" && (path == c.Holds || strings.HasPrefix(path, c.Holds+".")) && (of == nil || len(c.Holds) > len(of.Holds)) {
			of = c
		}
	}
	if of == nil {
		return Said{}
	}
	said := Said{Stored: of.Stored, NotCompared: of.NotCompared, NotHashed: of.NotHashed}
	said.Compared, said.Hashed = of.Compared, of.Hashed
	for i := range table {
		if of.With != "" && table[i].Name == of.With {
			said.Hashed = table[i].Hashed
			said.Compared = said.Compared || of.NotCompared == "" && table[i].Compared
		}
	}
	return said
}

// VersionOf returns the version of a row.
func VersionOf(r *verdict.Row) (uint64, error) {
	b := codec.NewBlock(foldsOf([]verdict.Row{*r}))
	if err := b.Append(r); err != nil {
		return 0, err
	}
	return b.Version[0], nil
}

// ColumnsText returns what docs/schema.md says of the table: the columns of a verdict whose change does not make a correction, or another
// version, and why.
func ColumnsText() string {
	var out strings.Builder
	out.WriteString("| column | of the verdict | a change is a correction | a change is another version |\n| --- | --- | --- | --- |\n")
	for _, c := range codec.Describe() {
		if c.NotCompared == "" && c.NotHashed == "" {
			continue
		}
		said := func(why string) string {
			if why == "" {
				return "yes"
			}
			return "no: " + why
		}
		fmt.Fprintf(&out, "| `%s` | `%s` | %s | %s |\n", c.Name, c.Holds, said(c.NotCompared), said(c.NotHashed))
	}
	return out.String()
}
