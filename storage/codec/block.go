// Package codec turns rows into columns and columns into rows. The table of columns (columns.go) says everything about a column: how it is
// appended, read, compared and hashed; docs/schema.md is written from it. What a [Block] appends, [Stored] reads.
//
// What is hashed of a row, and in which order, must never change: any release takes a row back by the version it was stored with. [Folds]
// bounds how much of a day is counted individually (docs/adr/0076).
//
// The package talks to no server.
package codec

import (
	"fmt"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/storage/native"
	"github.com/retrial-io/retrial/verdict"
)

// Block holds the columns of events while rows are appended. It may be reused; it is not safe for concurrent use. Its counterpart for
// reading is in scan.go; both follow the table of columns.
type Block struct {
	Rows   int
	Batch  uint64 // number of the insert, of rows that rollups count later; 0: counted by the insert
	hash   hasher
	folds  *Folds
	grants map[verdict.Grant]string // encoded before, bounded
	mem    native.Chunks            // of its textColumn
	at     at

	appends []func()        // of the columns, in their order
	hashes  []func(*hasher) // of those that tell versions apart

	FoldedAs map[string]int // what of the rows is not counted by itself, by cause

	cluster, source, apiserver                native.LowCard
	ingested, koffset, requestReceived, delay proto.ColInt64
	ingestDay, day                            proto.ColUInt16
	epoch, size, minute                       proto.ColUInt32
	kpart, code                               proto.ColInt32
	Version, rowRevision                      proto.ColUInt64
	requestKey, content                       proto.ColFixedStr
	sign                                      proto.ColInt8
	shape, attrIsResource                     proto.ColUInt8

	level, stage, verb, subject                                               native.LowCard
	auditText, objectResourceVersion                                          native.TextColumn
	auditUUID                                                                 native.UUIDs
	requestURI, objectName, objectUID                                         native.LowCard
	user, impersonated                                                        userColumns
	constraint, userAgent                                                     native.LowCard
	sourceIPs                                                                 native.LowCardArray
	objectResource, objectNamespace, objectGroup, objectVersion, objectSub    native.LowCard
	statusReason                                                              native.LowCard
	requestObject, responseObject                                             native.TextColumn
	responseStatus, recordedReason, attrName                                  native.LowCard
	annotations                                                               native.TextMap
	unknownAt, unknownName                                                    native.LowCardArray
	unknownValue                                                              native.TextArray
	outcome, class, cause, recorded, replayed, authorizer                     native.LowCard
	granted, errs, missing, impGrants, impMissing, identity                   native.LowCardArray
	attrVerb, attrGroup, attrVersion, attrResource, attrSub, attrNamespace    native.LowCard
	attrPath, attrLabels, attrFields                                          native.TextColumn
	impReplayed, impMode, admission, admissionPlugin, admissionNS, engine, cf native.LowCard
	policyRevision, access, groupSet, batch                                   proto.ColUInt64
	accessName, accessPath                                                    native.LowCard
	hits                                                                      native.LowCardArray
	hitKeys                                                                   native.NumberArray
	evidence, implied                                                         native.TextArray
	explained, binds                                                          native.LowCardArray
	chain                                                                     native.LowCard
	impliedAccess                                                             native.NumberArray
	impliedGrants                                                             native.LowCardLists
	review                                                                    native.TextColumn
	admissionPlugins, admissionNames, admissionOutcomes                       native.LowCardArray
	admissionReasons                                                          native.TextArray
	admissionCodes                                                            native.CodeArray

	Columns []proto.InputColumn
}

// userColumns are the columns of a UserInfo.
type userColumns struct {
	name, uid native.LowCard
	groups    native.LowCardArray
	extra     native.ListMap
}

// maxGrants bounds the encoded grants a block remembers from row to row.
const maxGrants = 1 << 14

// NewBlock returns an empty block, which counts accesses by f.
func NewBlock(f *Folds) *Block {
	b := &Block{folds: f, FoldedAs: map[string]int{}, grants: map[verdict.Grant]string{}}
	b.requestKey.Size, b.content.Size = 16, 16
	for _, c := range []*native.TextColumn{
		&b.objectResourceVersion, &b.requestObject, &b.responseObject,
	} {
		c.Mem = &b.mem // the others are empty in most rows
	}
	table := columns(b, &stored{})
	for i := range table {
		c := &table[i]
		b.Columns = append(b.Columns, proto.InputColumn{Name: c.name, Data: c.data})
		if c.append != nil {
			b.appends = append(b.appends, c.append)
		}
	}
	b.hashes = hashes(table)
	return b
}

// Reset empties the block for the next rows.
func (b *Block) Reset() {
	b.Rows, b.Batch = 0, 0
	b.at.release()
	for _, c := range b.Columns {
		c.Data.(proto.Resettable).Reset()
	}
	b.mem.Trim()
	clear(b.FoldedAs)
	if len(b.grants) > maxGrants {
		clear(b.grants)
	}
}

// Append adds a row and keeps no reference to it.
func (b *Block) Append(r *verdict.Row) error {
	if r.Event == nil {
		return fmt.Errorf("row %d/%d/%d has no event", r.Position.Epoch, r.Position.Partition, r.Position.Offset)
	}
	x := &b.at
	x.set(r)
	if x.judged {
		u, was := x.e.EffectiveUser(), r.Counted[:min(len(r.Counted), 1)]
		x.who = b.whoIs(r, u, x.e.ImpersonatedUser != nil, &x.v.Attributes, was)
		x.access = b.count(r, x.who, &x.v.Attributes, was)
		x.agent = b.countAgent(r, u.Username)
	}
	x.first = b.countFirst(r)
	for _, add := range b.appends {
		add()
	}
	if x.err != nil {
		return x.err
	}
	b.Version.Append(b.fingerprint())
	b.Rows++
	return nil
}

// fingerprint returns the version of the current row: a hash of what a correction can change. A row with sign -1 takes back the row with
// the same key and the same version. It leaves out what is random per row, so that it compresses.
func (b *Block) fingerprint() uint64 {
	parts := b.hashes
	if !b.at.judged {
		parts = parts[:placesOfRow]
	}
	b.hash.d.Reset()
	for _, add := range parts {
		add(&b.hash)
	}
	return b.hash.d.Sum64()
}

// storedKey returns a mark's key as it is stored: 0 if it is the hash of the audit ID, which differs in every row and would not compress.
func storedKey(key uint64, auditID string) uint64 {
	switch key {
	case xxhash.Sum64String(auditID):
		return 0
	case 0:
		return 1
	}
	return key
}

func (b *Block) appendGrants(to *native.LowCardArray, grants []verdict.Grant) {
	for i := range grants {
		text := b.grant(&grants[i])
		to.Items.Append(text)
		b.at.grants = append(b.at.grants, text)
	}
	to.End()
}

// grant returns a grant as the columns hold it.
func (b *Block) grant(g *verdict.Grant) string {
	text, ok := b.grants[*g]
	if !ok {
		var err error
		if text, err = encodeGrant(g); err != nil {
			b.fail(err)
			return ""
		}
		b.grants[*g] = text
	}
	return text
}

// fail notes the first error of the current row.
func (b *Block) fail(err error) {
	if b.at.err == nil {
		b.at.err = err
	}
}

// Bit returns v as a column stores it.
func Bit(v bool) uint8 {
	if v {
		return 1
	}
	return 0
}

// The types below give integer columns the type name of the column they are inserted into.
