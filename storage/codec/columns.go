package codec

import (
	"cmp"
	"reflect"
	"slices"
	"sync"

	"github.com/ClickHouse/ch-go/proto"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/native"
	"github.com/retrial-io/retrial/verdict"
)

// column is a column of events. What a block of an INSERT has, what is read of a row, which verdicts say the same, the version of a row and
// docs/schema.md follow from the table of them: [columns].
type column struct {
	name string
	// sql is what the column is read by; "" stands for its name.
	sql string
	// data has the values of a block, in the order of its rows.
	data proto.ColInput
	// append adds the value of the block's current row. It is nil where another column's append adds it, or the block once all others have
	// theirs.
	append func()
	// into is where the value read goes; nil if it is not read because it follows from others.
	into any
	// build makes the part of the verdict from the values read; nil if into is that part.
	build func() error

	// holds names the field of a Verdict the column has, as a path from there, "" for none.
	holds string
	// same reports whether two verdicts agree in the column.
	same func(a, b *verdict.Verdict) bool
	// hash adds the value of the current row to the row's version, in the order of place. Places, and what is added at each, never change:
	// a row is taken back by the version it was stored with. New columns come last, and add nothing if they are empty.
	hash  func(h *hasher)
	place int
	// with is the column whose hash covers this one too.
	with string
	// uncompared and unhashed say why the column has neither same nor hash.
	uncompared, unhashed string
}

// placesOfRow is how many places of the version are of the row itself. Rows without a verdict have no others.
const placesOfRow = 2

// columns is the table of the columns of events, in the order of an INSERT, which append from b and scan into r.
func columns(b *Block, r *stored) []column {
	return slices.Concat(placeColumns(b, r), eventColumns(b, r), verdictColumns(b, r), countedColumns(b, r), moreColumns(b, r),
		admissionColumns(b, r))
}

// read returns the expression the column is read by.
func (c *column) read() string { return cmp.Or(c.sql, c.name) }

// hashes returns the hashes of a table in the order of their places.
func hashes(table []column) []func(*hasher) {
	out := make([]func(*hasher), 0, len(table))
	for place := 1; ; place++ {
		i := slices.IndexFunc(table, func(c column) bool { return c.place == place })
		if i < 0 {
			return out
		}
		out = append(out, table[i].hash)
	}
}

// at is the current row of a block: the event and verdict of an INSERT's row, with empty values for missing parts.
type at struct {
	row    *verdict.Row
	e      *event.Event
	v      *verdict.Verdict
	as     *event.User // whom the request was made as, when that is another
	ref    *event.ObjectRef
	status *event.Status
	judged bool // there is a verdict

	auditText string  // of an audit ID that is not a UUID
	access    counted // what the request counts for
	agent     uint8   // shapeAgentOther, or nothing
	first     uint8   // shapeFirstOther, or nothing
	who       who     // whom it counts for
	grants    []string
	chain     []byte
	implied   []byte // texts of the checks behind it, each with its length
	review    string
	err       error

	noUser    event.User
	noRef     event.ObjectRef
	noStatus  event.Status
	noVerdict verdict.Verdict
}

// set makes a row the current one.
func (x *at) set(r *verdict.Row) {
	x.row, x.e, x.v, x.judged, x.agent, x.first = r, r.Event, r.Verdict, r.Verdict != nil, 0, 0
	if x.as = r.Event.ImpersonatedUser; x.as == nil {
		x.as = &x.noUser
	}
	if x.ref = r.Event.ObjectRef; x.ref == nil {
		x.ref = &x.noRef
	}
	if x.status = r.Event.ResponseStatus; x.status == nil {
		x.status = &x.noStatus
	}
	if x.v == nil {
		x.v = &x.noVerdict
	}
	x.access, x.who, x.err = counted{}, who{}, nil
	x.grants, x.chain, x.implied = x.grants[:0], x.chain[:0], x.implied[:0]
}

// release lets go of the row, whose strings may be parts of something large.
func (x *at) release() {
	clear(x.grants)
	*x = at{grants: x.grants[:0], chain: x.chain[:0], implied: x.implied[:0]}
}

// plain returns a column of a row's place or event, which no verdict changes.
func plain(name string, data proto.ColInput, into any, add func()) column {
	return column{name: name, data: data, into: into, append: add}
}

// word returns a column of a text of the verdict that repeats from row to row.
func word(b *Block, name string, data *native.LowCard, into *string, holds string, place int, get func(*verdict.Verdict) string) column {
	return oneText(b, name, data, into, holds, place, get, func() { data.Append(get(b.at.v)) })
}

// free returns a column of a text of the verdict that does not repeat.
func free(b *Block, name string, data *native.TextColumn, into *string, holds string, place int, get func(*verdict.Verdict) string) column {
	return oneText(b, name, data, into, holds, place, get, func() { data.Append(get(b.at.v)) })
}

// later returns a column of a text that older rows lack: it adds nothing to their version. kind marks what it adds and is unique to the
// column.
func later(b *Block, name string, into *string, holds string, place int, kind byte, get func(*verdict.Verdict) string) column {
	c := word(b, name, new(native.LowCard), into, holds, place, get)
	c.hash = func(h *hasher) {
		if s := get(b.at.v); s != "" {
			h.note(kind, s)
		}
	}
	return c
}

func oneText(b *Block, name string, data proto.ColInput, into *string, holds string, place int, get func(*verdict.Verdict) string,
	add func()) column {
	return column{
		name: name, data: data, into: into, holds: holds, place: place, append: add,
		same: func(v, w *verdict.Verdict) bool { return get(v) == get(w) },
		hash: func(h *hasher) { h.text(get(b.at.v)) },
	}
}

// words returns a column of texts of the verdict that repeat from row to row.
func words(b *Block, name string, data *native.LowCardArray, into *[]string, holds string, place int,
	get func(*verdict.Verdict) []string) column {
	return manyTexts(b, name, data, into, holds, place, get, func() { data.Append(get(b.at.v)) })
}

func manyTexts(b *Block, name string, data proto.ColInput, into *[]string, holds string, place int, get func(*verdict.Verdict) []string,
	add func()) column {
	return column{
		name: name, data: data, into: into, holds: holds, place: place, append: add,
		build: func() error {
			*into = OrNil(*into)
			return nil
		},
		same: func(v, w *verdict.Verdict) bool { return slices.Equal(get(v), get(w)) },
		hash: func(h *hasher) {
			list := get(b.at.v)
			h.number(uint64(len(list)))
			for _, s := range list {
				h.text(s)
			}
		},
	}
}

// apart returns a column that neither tells verdicts apart nor versions, and why.
func (c column) apart(why string) column {
	c.same, c.hash, c.place, c.uncompared, c.unhashed = nil, nil, 0, why, why
	return c
}

// uncomparedFor returns a column that does not tell verdicts apart, and why.
func (c column) uncomparedFor(why string) column {
	c.same, c.uncompared = nil, why
	return c
}

// unhashedFor returns a column that does not tell versions apart, and why.
func (c column) unhashedFor(why string) column {
	c.hash, c.place, c.unhashed = nil, 0, why
	return c
}

// hashedWith returns a column that another's hash covers.
func (c column) hashedWith(name string) column {
	c.hash, c.place, c.with = nil, 0, name
	return c
}

// noted returns a column whose hash covers its texts, each with its mark and length, and adds nothing without texts.
func (c column) noted(kind byte, texts func() []string) column {
	c.hash = func(h *hasher) {
		for _, s := range texts() {
			h.note(kind, s)
		}
	}
	return c
}

func sameImplied(a, b verdict.Implied) bool {
	return a.Check == b.Check && a.Attributes == b.Attributes && a.Replayed == b.Replayed && a.Recorded == b.Recorded &&
		a.Covered == b.Covered && a.Perhaps == b.Perhaps && slices.Equal(a.Missing, b.Missing) && sameGrants(a.Grants, b.Grants) &&
		len(a.Wanted) == len(b.Wanted) && (len(a.Wanted) == 0 || reflect.DeepEqual(a.Wanted, b.Wanted))
}

func sameReview(a, b *verdict.ReviewCheck) bool {
	if a == nil || b == nil {
		return a == b
	}
	return a.Kind == b.Kind && a.User == b.User && slices.Equal(a.Groups, b.Groups) && a.Attributes == b.Attributes &&
		a.Recorded == b.Recorded && a.Replayed == b.Replayed && a.Reason == b.Reason && a.Outcome == b.Outcome && a.Cause == b.Cause
}

// sameGrants compares two sets of grants. Both engines' orders are stable, so the common
// case is one pass; only a different order costs a map.
func sameGrants(a, b []verdict.Grant) bool {
	if len(a) != len(b) {
		return false
	}
	if slices.Equal(a, b) {
		return true
	}
	left := make(map[verdict.Grant]int, len(a))
	for _, g := range a {
		left[g]++
	}
	for _, g := range b {
		if left[g] == 0 {
			return false
		}
		left[g]--
	}
	return true
}

// comparisons returns the comparisons of the columns that tell verdicts apart.
var comparisons = sync.OnceValue(func() (out []func(a, b *verdict.Verdict) bool) { //nolint:gochecknoglobals // constant table
	for _, c := range NewStored().table {
		if c.same != nil {
			out = append(out, c.same)
		}
	}
	return out
})

// SameVerdict reports whether two verdicts of one request say the same. It ignores the revision, the engine and the configuration, since
// the same verdict under a newer one is the same row; the attributes and the recorded decision, which come from the event alone; and the
// order of the grants.
func SameVerdict(a, b *verdict.Verdict) bool {
	for _, same := range comparisons() {
		if !same(a, b) {
			return false
		}
	}
	return true
}

// Described describes a column of the table.
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
			Name: c.name, Holds: c.holds, Stored: c.into != nil, Compared: c.same != nil, Hashed: c.hash != nil, Place: c.place,
			With: c.with, NotCompared: c.uncompared, NotHashed: c.unhashed,
		})
	}
	return out
}
