package storage

import (
	"fmt"

	"github.com/ClickHouse/ch-go/proto"
	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

// Bits of the shape column: optional objects that are there, even when empty.
const (
	shapeImpersonated = 1 << iota // read by group_sets_mv
	shapeAuthentication
	shapeObjectRef
	shapeStatus
)

// Objects an unknown member can sit in, as stored in unknown_at.
const (
	atEvent          = "event"
	atUser           = "user"
	atImpersonated   = "impersonatedUser"
	atAuthentication = "authenticationMetadata"
	atObjectRef      = "objectRef"
)

// block holds the columns of events while rows are appended. It may be reused; it is not
// safe for concurrent use. Its counterpart, reading, is scan.go; what both must agree on is
// proven by the round trip of a real log.
type block struct {
	rows   int
	hash   hasher
	folds  *folds
	grants map[verdict.Grant]string // encoded before, bounded
	list   []string                 // encoded grants of the row at hand
	mem    chunks                   // of its textColumn
	more   []byte                   // what else of its verdict tells versions apart, see appendMore
	text   []byte                   // scratch

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
	explained                                                                 lowCardArray
	credential, chain                                                         lowCard
	impliedAccess                                                             numberArray
	impliedGrants                                                             lowCardLists
	review                                                                    textColumn

	columns []proto.InputColumn
}

// userColumns are the columns of a UserInfo.
type userColumns struct {
	name, uid lowCard
	groups    lowCardArray
	extra     listMap
}

func (c *userColumns) append(u *event.User) {
	c.name.Append(u.Username)
	c.uid.Append(u.UID)
	c.groups.Append(u.Groups)
	for i := range u.Extra {
		c.extra.keys.Append(u.Extra[i].Key)
		c.extra.values.Append(u.Extra[i].Values)
	}
	c.extra.end()
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
	b.columns = []proto.InputColumn{
		{Name: "cluster", Data: &b.cluster}, {Name: "source", Data: &b.source}, {Name: "apiserver", Data: &b.apiserver},
		{Name: "ingested", Data: micros{&b.ingested}}, {Name: "ingest_day", Data: dates{&b.ingestDay}},
		{Name: "epoch", Data: &b.epoch}, {Name: "kpart", Data: &b.kpart}, {Name: "koffset", Data: &b.koffset},
		{Name: "request_key", Data: &b.requestKey}, {Name: "content", Data: &b.content}, {Name: "size", Data: &b.size},
		{Name: "sign", Data: &b.sign}, {Name: "version", Data: &b.version}, {Name: "row_revision", Data: &b.rowRevision},

		{Name: "level", Data: &b.level}, {Name: "audit_uuid", Data: &b.auditUUID}, {Name: "audit_text", Data: &b.auditText}, {Name: "stage", Data: &b.stage},
		{Name: "request_uri", Data: &b.requestURI}, {Name: "verb", Data: &b.verb},
		{Name: "user_name", Data: &b.user.name}, {Name: "user_uid", Data: &b.user.uid},
		{Name: "user_groups", Data: &b.user.groups}, {Name: "user_extra", Data: &b.user.extra},
		{Name: "impersonated_name", Data: &b.impersonated.name}, {Name: "impersonated_uid", Data: &b.impersonated.uid},
		{Name: "impersonated_groups", Data: &b.impersonated.groups}, {Name: "impersonated_extra", Data: &b.impersonated.extra},
		{Name: "impersonation_constraint", Data: &b.constraint},
		{Name: "source_ips", Data: &b.sourceIPs}, {Name: "user_agent", Data: &b.userAgent},
		{Name: "object_resource", Data: &b.objectResource}, {Name: "object_namespace", Data: &b.objectNamespace},
		{Name: "object_name", Data: &b.objectName}, {Name: "object_uid", Data: &b.objectUID},
		{Name: "object_api_group", Data: &b.objectGroup}, {Name: "object_api_version", Data: &b.objectVersion},
		{Name: "object_resource_version", Data: &b.objectResourceVersion}, {Name: "object_subresource", Data: &b.objectSub},
		{Name: "code", Data: &b.code}, {Name: "status_reason", Data: &b.statusReason}, {Name: "response_status", Data: &b.responseStatus},
		{Name: "request_object", Data: &b.requestObject}, {Name: "response_object", Data: &b.responseObject},
		{Name: "request_received", Data: micros{&b.requestReceived}}, {Name: "stage_delay", Data: &b.delay},
		{Name: "annotations", Data: &b.annotations},
		{Name: "unknown_at", Data: &b.unknownAt}, {Name: "unknown_name", Data: &b.unknownName}, {Name: "unknown_value", Data: &b.unknownValue},
		{Name: "shape", Data: &b.shape}, {Name: "minute", Data: seconds{&b.minute}}, {Name: "day", Data: dates{&b.day}},
		{Name: "subject", Data: &b.subject},

		{Name: "outcome", Data: &b.outcome}, {Name: "class", Data: &b.class}, {Name: "cause", Data: &b.cause},
		{Name: "recorded", Data: &b.recorded}, {Name: "recorded_reason", Data: &b.recordedReason}, {Name: "replayed", Data: &b.replayed},
		{Name: "authorizer", Data: &b.authorizer}, {Name: "grants", Data: &b.granted}, {Name: "errors", Data: &b.errs}, {Name: "missing", Data: &b.missing},
		{Name: "attr_verb", Data: &b.attrVerb}, {Name: "attr_is_resource", Data: &b.attrIsResource},
		{Name: "attr_api_group", Data: &b.attrGroup}, {Name: "attr_api_version", Data: &b.attrVersion},
		{Name: "attr_resource", Data: &b.attrResource}, {Name: "attr_subresource", Data: &b.attrSub},
		{Name: "attr_namespace", Data: &b.attrNamespace}, {Name: "attr_name", Data: &b.attrName}, {Name: "attr_path", Data: &b.attrPath},
		{Name: "attr_label_selector", Data: &b.attrLabels}, {Name: "attr_field_selector", Data: &b.attrFields},
		{Name: "impersonation", Data: &b.impReplayed}, {Name: "impersonation_mode", Data: &b.impMode},
		{Name: "impersonation_grants", Data: &b.impGrants}, {Name: "impersonation_missing", Data: &b.impMissing},
		{Name: "identity", Data: &b.identity}, {Name: "admission", Data: &b.admission}, {Name: "admission_plugin", Data: &b.admissionPlugin},
		{Name: "admission_namespace_lifecycle", Data: &b.admissionNS}, {Name: "policy_revision", Data: &b.policyRevision},
		{Name: "engine_version", Data: &b.engine}, {Name: "config_version", Data: &b.cf},

		{Name: "access", Data: &b.access}, {Name: "access_name", Data: &b.accessName}, {Name: "access_path", Data: &b.accessPath},
		{Name: "group_set", Data: &b.groupSet}, {Name: "hits", Data: &b.hits}, {Name: "hit_keys", Data: &b.hitKeys},

		{Name: "evidence", Data: &b.evidence}, {Name: "explained", Data: &b.explained}, {Name: "credential", Data: &b.credential},
		{Name: "chain", Data: &b.chain}, {Name: "implied", Data: &b.implied}, {Name: "implied_access", Data: &b.impliedAccess},
		{Name: "implied_grants", Data: &b.impliedGrants}, {Name: "review", Data: &b.review},
	}
	return b
}

// reset empties the block for the next rows.
func (b *block) reset() {
	b.rows = 0
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
	e := r.Event
	if e == nil {
		return fmt.Errorf("row %d/%d/%d has no event", r.Position.Epoch, r.Position.Partition, r.Position.Offset)
	}
	b.appendPlace(r)
	b.appendEvent(e)
	b.list = b.list[:0]
	if err := b.appendVerdict(r); err != nil {
		return err
	}
	b.appendMarks(r)
	b.version.Append(fingerprint(&b.hash, r, b.list, b.more))
	b.rows++
	return nil
}

func (b *block) appendMarks(r *verdict.Row) {
	for _, m := range r.Marks {
		b.hits.items.Append(m.Name)
		b.hitKeys.items.Append(storedKey(m.Key, r.Event.AuditID))
	}
	b.hits.end()
	b.hitKeys.end()
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

func (b *block) appendPlace(r *verdict.Row) {
	e := r.Event
	b.cluster.Append(r.Cluster)
	b.source.Append(r.Source)
	b.apiserver.Append(r.APIServer)
	b.ingested.Append(r.Received.UnixMicro())
	b.ingestDay.Append(day(r.Received))
	b.epoch.Append(r.Position.Epoch)
	b.kpart.Append(r.Position.Partition)
	b.koffset.Append(r.Position.Offset)
	request, content := r.Request.Bytes(), r.Content.Bytes()
	b.requestKey.Append(request[:])
	clear(content[8:]) // see knownContent
	b.content.Append(content[:])
	b.size.Append(uint32(r.Size))
	b.sign.Append(r.Sign)
	b.rowRevision.Append(r.Revision)
	b.requestReceived.Append(e.RequestReceivedTimestamp.UnixMicro())
	b.delay.Append(e.StageTimestamp.UnixMicro() - e.RequestReceivedTimestamp.UnixMicro())
	b.minute.Append(minute(e.RequestReceivedTimestamp))
	b.day.Append(day(e.RequestReceivedTimestamp))
}

func (b *block) appendEvent(e *event.Event) {
	var shape uint8
	b.level.Append(string(e.Level))
	b.auditText.Append(b.auditUUID.Append(e.AuditID))
	b.stage.Append(string(e.Stage))
	b.requestURI.Append(e.RequestURI)
	b.verb.Append(e.Verb)
	b.user.append(&e.User)
	b.unknown(atUser, e.User.Unknown)
	b.subject.Append(e.EffectiveUser().Username)
	if u := e.ImpersonatedUser; u != nil {
		shape |= shapeImpersonated
		b.impersonated.append(u)
		b.unknown(atImpersonated, u.Unknown)
	} else {
		b.impersonated.append(&event.User{})
	}
	if a := e.AuthenticationMetadata; a != nil {
		shape |= shapeAuthentication
		b.constraint.Append(a.ImpersonationConstraint)
		b.unknown(atAuthentication, a.Unknown)
	} else {
		b.constraint.Append("")
	}
	b.sourceIPs.Append(e.SourceIPs)
	b.userAgent.Append(e.UserAgent)
	ref := e.ObjectRef
	if ref != nil {
		shape |= shapeObjectRef
		b.unknown(atObjectRef, ref.Unknown)
	} else {
		ref = &event.ObjectRef{}
	}
	b.objectResource.Append(ref.Resource)
	b.objectNamespace.Append(ref.Namespace)
	b.objectName.Append(ref.Name)
	b.objectUID.Append(ref.UID)
	b.objectGroup.Append(ref.APIGroup)
	b.objectVersion.Append(ref.APIVersion)
	b.objectResourceVersion.Append(ref.ResourceVersion)
	b.objectSub.Append(ref.Subresource)
	st := e.ResponseStatus
	if st != nil {
		shape |= shapeStatus
	} else {
		st = &event.Status{}
	}
	b.code.Append(st.Code)
	b.statusReason.Append(st.Reason)
	b.responseStatus.AppendBytes(st.Raw)
	b.requestObject.AppendBytes(e.RequestObject)
	b.responseObject.AppendBytes(e.ResponseObject)
	for i := range e.Annotations {
		b.annotations.keys.Append(e.Annotations[i].Key)
		b.annotations.values.Append(e.Annotations[i].Value)
	}
	b.annotations.end()
	b.unknown(atEvent, e.Unknown)
	b.unknownAt.end()
	b.unknownName.end()
	b.unknownValue.end()
	b.shape.Append(shape)
}

func (b *block) unknown(at string, members []event.Member) {
	for _, m := range members {
		b.unknownAt.items.Append(at)
		b.unknownName.items.Append(m.Name)
		b.unknownValue.items.AppendBytes(m.Value)
	}
}

// noVerdict stands for the verdict of rows that have none: every column empty.
var noVerdict verdict.Verdict //nolint:gochecknoglobals // an empty value, never written

func (b *block) appendVerdict(r *verdict.Row) error {
	v := r.Verdict
	if v == nil {
		v = &noVerdict
		b.outcome.Append("")
		b.recorded.Append("")
		b.replayed.Append("")
		b.access.Append(0)
		b.accessName.Append("")
		b.accessPath.Append("")
		b.groupSet.Append(0)
	} else {
		b.outcome.Append(v.Outcome.String())
		b.recorded.Append(v.Recorded.String())
		b.replayed.Append(v.Replayed.String())
		u := r.Event.EffectiveUser()
		groups := groupSet(u.Groups)
		c := b.count(r, u.Username, groups, &v.Attributes, r.Counted[:min(len(r.Counted), 1)])
		b.access.Append(c.key)
		b.accessName.Append(c.name)
		b.accessPath.Append(c.path)
		b.groupSet.Append(groups)
	}
	b.class.Append(v.Class)
	b.cause.Append(v.Cause)
	b.recordedReason.Append(v.RecordedReason)
	b.authorizer.Append(v.Authorizer)
	if err := b.appendGrants(&b.granted, v.Grants); err != nil {
		return err
	}
	b.errs.Append(v.Errors)
	b.missing.Append(v.Missing)
	a := &v.Attributes
	b.attrVerb.Append(a.Verb)
	b.attrIsResource.Append(bit(a.ResourceRequest))
	b.attrGroup.Append(a.APIGroup)
	b.attrVersion.Append(a.APIVersion)
	b.attrResource.Append(a.Resource)
	b.attrSub.Append(a.Subresource)
	b.attrNamespace.Append(a.Namespace)
	b.attrName.Append(a.Name)
	b.attrPath.Append(a.Path)
	b.attrLabels.Append(a.LabelSelector)
	b.attrFields.Append(a.FieldSelector)
	if i := v.Impersonation; i != nil {
		b.impReplayed.Append(i.Replayed.String())
		b.impMode.Append(i.Mode)
		if err := b.appendGrants(&b.impGrants, i.Grants); err != nil {
			return err
		}
		b.impMissing.Append(i.Missing)
	} else {
		b.impReplayed.Append("")
		b.impMode.Append("")
		b.impGrants.Append(nil)
		b.impMissing.Append(nil)
	}
	b.identity.Append(v.Identity)
	b.admission.Append(v.Admission.Recorded)
	b.admissionPlugin.Append(v.Admission.Plugin)
	b.admissionNS.Append(v.Admission.NamespaceLifecycle)
	b.policyRevision.Append(v.Revision)
	b.engine.Append(v.Engine)
	b.cf.Append(v.Config)
	return b.appendMore(r, v)
}

func (b *block) appendGrants(to *lowCardArray, grants []verdict.Grant) error {
	for i := range grants {
		text, err := b.grant(&grants[i])
		if err != nil {
			return err
		}
		to.items.Append(text)
		b.list = append(b.list, text)
	}
	to.end()
	return nil
}

// grant returns a grant as the columns hold it.
func (b *block) grant(g *verdict.Grant) (string, error) {
	text, ok := b.grants[*g]
	if !ok {
		var err error
		if text, err = encodeGrant(g); err != nil {
			return "", err
		}
		b.grants[*g] = text
	}
	return text, nil
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
