package storage

import (
	"fmt"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/verdict"
)

// block holds the columns of events while rows are appended. It may be reused; it is not
// safe for concurrent use. Its counterpart, reading, is scan.go; what both are made of is the
// table of columns.
type block struct {
	rows   int
	hash   hasher
	folds  *folds
	grants map[verdict.Grant]string // encoded before, bounded
	mem    chunks                   // of its textColumn
	at     at

	appends []func()        // of the columns, in their order
	hashes  []func(*hasher) // of those that tell versions apart

	foldedAs map[string]int // what of the rows is not counted by itself, by cause

	cluster, source, apiserver                lowCard
	ingested, koffset, requestReceived, delay proto.ColInt64
	ingestDay, day                            proto.ColUInt16
	epoch, size, minute                       proto.ColUInt32
	kpart, code                               proto.ColInt32
	version, rowRevision                      proto.ColUInt64
	requestKey, content                       proto.ColFixedStr
	sign                                      proto.ColInt8
	shape, attrIsResource                     proto.ColUInt8

	level, stage, verb, subject                                               lowCard
	auditText, objectResourceVersion                                          textColumn
	auditUUID                                                                 uuids
	requestURI, objectName, objectUID                                         lowCard
	user, impersonated                                                        userColumns
	constraint, userAgent                                                     lowCard
	sourceIPs                                                                 lowCardArray
	objectResource, objectNamespace, objectGroup, objectVersion, objectSub    lowCard
	statusReason                                                              lowCard
	requestObject, responseObject                                             textColumn
	responseStatus, recordedReason, attrName                                  lowCard
	annotations                                                               textMap
	unknownAt, unknownName                                                    lowCardArray
	unknownValue                                                              textArray
	outcome, class, cause, recorded, replayed, authorizer                     lowCard
	granted, errs, missing, impGrants, impMissing, identity                   lowCardArray
	attrVerb, attrGroup, attrVersion, attrResource, attrSub, attrNamespace    lowCard
	attrPath, attrLabels, attrFields                                          textColumn
	impReplayed, impMode, admission, admissionPlugin, admissionNS, engine, cf lowCard
	policyRevision, access, groupSet                                          proto.ColUInt64
	accessName, accessPath                                                    lowCard
	hits                                                                      lowCardArray
	hitKeys                                                                   numberArray
	evidence, implied                                                         textArray
	explained, binds                                                          lowCardArray
	chain                                                                     lowCard
	impliedAccess                                                             numberArray
	impliedGrants                                                             lowCardLists
	review                                                                    textColumn
	admissionPlugins, admissionNames, admissionOutcomes                       lowCardArray
	admissionReasons                                                          textArray
	admissionCodes                                                            codeArray

	columns []proto.InputColumn
}

// userColumns are the columns of a UserInfo.
type userColumns struct {
	name, uid lowCard
	groups    lowCardArray
	extra     listMap
}

// maxGrants bounds the encoded grants a block remembers from row to row.
const maxGrants = 1 << 14

func newBlock(f *folds) *block {
	b := &block{folds: f, foldedAs: map[string]int{}, grants: map[verdict.Grant]string{}}
	b.requestKey.Size, b.content.Size = 16, 16
	for _, c := range []*textColumn{
		&b.objectResourceVersion, &b.requestObject, &b.responseObject,
	} {
		c.mem = &b.mem // the others are empty in most rows
	}
	table := columns(b, &stored{})
	for i := range table {
		c := &table[i]
		b.columns = append(b.columns, proto.InputColumn{Name: c.name, Data: c.data})
		if c.append != nil {
			b.appends = append(b.appends, c.append)
		}
	}
	b.hashes = hashes(table)
	return b
}

// reset empties the block for the next rows.
func (b *block) reset() {
	b.rows = 0
	b.at.release()
	for _, c := range b.columns {
		c.Data.(proto.Resettable).Reset()
	}
	b.mem.trim()
	clear(b.foldedAs)
	if len(b.grants) > maxGrants {
		clear(b.grants)
	}
}

// append adds a row. Nothing of the row is referenced afterwards.
func (b *block) append(r *verdict.Row) error {
	if r.Event == nil {
		return fmt.Errorf("row %d/%d/%d has no event", r.Position.Epoch, r.Position.Partition, r.Position.Offset)
	}
	x := &b.at
	x.set(r)
	if x.judged {
		u := x.e.EffectiveUser()
		x.groups = groupSet(u.Groups)
		x.access = b.count(r, u.Username, x.groups, &x.v.Attributes, r.Counted[:min(len(r.Counted), 1)])
		x.agent = b.countAgent(r, u.Username)
	}
	for _, add := range b.appends {
		add()
	}
	if x.err != nil {
		return x.err
	}
	b.version.Append(b.fingerprint())
	b.rows++
	return nil
}

// fingerprint returns the version of the row at hand: a hash of what a correction can change. A
// row with sign -1 takes back the row with the same key and the same version. It leaves out
// what is random per row, so that it compresses.
func (b *block) fingerprint() uint64 {
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

// storedKey is how a mark's key is written: 0 when it is the hash of the audit ID. Nothing
// else of a row is as random, so nothing else would take as much room.
func storedKey(key uint64, auditID string) uint64 {
	switch key {
	case xxhash.Sum64String(auditID):
		return 0
	case 0:
		return 1
	}
	return key
}

func (b *block) appendGrants(to *lowCardArray, grants []verdict.Grant) {
	for i := range grants {
		text := b.grant(&grants[i])
		to.items.Append(text)
		b.at.grants = append(b.at.grants, text)
	}
	to.end()
}

// grant returns a grant as the columns hold it.
func (b *block) grant(g *verdict.Grant) string {
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

// fail notes the first error of the row at hand.
func (b *block) fail(err error) {
	if b.at.err == nil {
		b.at.err = err
	}
}

func bit(v bool) uint8 {
	if v {
		return 1
	}
	return 0
}

// The types below give integer columns the type name of the column they are inserted into.

type micros struct{ *proto.ColInt64 }

func (micros) Type() proto.ColumnType { return "DateTime64(6, 'UTC')" }

type dates struct{ *proto.ColUInt16 }

func (dates) Type() proto.ColumnType { return "Date" }

type seconds struct{ *proto.ColUInt32 }

func (seconds) Type() proto.ColumnType { return "DateTime('UTC')" }
