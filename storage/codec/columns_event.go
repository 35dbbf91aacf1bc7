package codec

import (
	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/storage/native"
)

// placeColumns returns the columns that say where a row comes from.
func placeColumns(b *Block, r *stored) []column {
	x := &b.at
	ingested := plain("ingested", native.Micros{ColInt64: &b.ingested}, &r.ingested,
		func() { b.ingested.Append(x.row.Received.UnixMicro()) })
	ingested.sql = "toUnixTimestamp64Micro(ingested)"
	size := plain("size", &b.size, &r.size, func() { b.size.Append(uint32(x.row.Size)) })
	size.place, size.hash = 1, func(h *hasher) { h.number(uint64(x.row.Size)) }
	revision := plain("row_revision", &b.rowRevision, &r.rowRevision, func() { b.rowRevision.Append(x.row.Revision) })
	revision.place, revision.hash = 2, func(h *hasher) { h.number(x.row.Revision) }
	return []column{
		plain("cluster", &b.cluster, &r.cluster, func() { b.cluster.Append(x.row.Cluster) }),
		plain("source", &b.source, &r.source, func() { b.source.Append(x.row.Source) }),
		plain("apiserver", &b.apiserver, &r.apiserver, func() { b.apiserver.Append(x.row.APIServer) }),
		ingested,
		plain("ingest_day", native.Dates{ColUInt16: &b.ingestDay}, nil, func() { b.ingestDay.Append(Day(x.row.Received)) }),
		plain("epoch", &b.epoch, &r.epoch, func() { b.epoch.Append(x.row.Position.Epoch) }),
		plain("kpart", &b.kpart, &r.kpart, func() { b.kpart.Append(x.row.Position.Partition) }),
		plain("koffset", &b.koffset, &r.koffset, func() { b.koffset.Append(x.row.Position.Offset) }),
		plain("request_key", &b.requestKey, &r.request, func() {
			key := x.row.Request.Bytes()
			b.requestKey.Append(key[:])
		}),
		plain("content", &b.content, &r.content, func() {
			content := x.row.Content.Bytes()
			clear(content[8:]) // see knownContent
			b.content.Append(content[:])
		}),
		size,
		plain("sign", &b.sign, &r.sign, func() { b.sign.Append(x.row.Sign) }),
		plain("version", &b.Version, nil, nil), // when all others have theirs: see block.append
		revision,
	}
}

// eventColumns returns the columns of the redacted event, which lose nothing of it.
func eventColumns(b *Block, r *stored) []column {
	x := &b.at
	received := plain("request_received", native.Micros{ColInt64: &b.requestReceived}, &r.received,
		func() { b.requestReceived.Append(x.e.RequestReceivedTimestamp.UnixMicro()) })
	received.sql = "toUnixTimestamp64Micro(request_received)"
	auditText := plain("audit_text", &b.auditText, &r.auditID, func() { b.auditText.Append(x.auditText) })
	auditText.sql = "audit_id" // made of both
	return []column{
		plain("level", &b.level, &r.level, func() { b.level.Append(string(x.e.Level)) }),
		plain("audit_uuid", &b.auditUUID, nil, func() { x.auditText = b.auditUUID.Append(x.e.AuditID) }),
		auditText,
		plain("stage", &b.stage, &r.stage, func() { b.stage.Append(string(x.e.Stage)) }),
		plain("request_uri", &b.requestURI, &r.uri, func() { b.requestURI.Append(x.e.RequestURI) }),
		plain("verb", &b.verb, &r.verb, func() { b.verb.Append(x.e.Verb) }),
		plain("user_name", &b.user.name, &r.user.name, func() { b.user.name.Append(x.e.User.Username) }),
		plain("user_uid", &b.user.uid, &r.user.uid, func() { b.user.uid.Append(x.e.User.UID) }),
		plain("user_groups", &b.user.groups, &r.user.groups, func() { b.user.groups.Append(x.e.User.Groups) }),
		plain("user_extra", &b.user.extra, &r.user.extra, func() { appendExtra(&b.user.extra, x.e.User.Extra) }),
		plain("impersonated_name", &b.impersonated.name, &r.impersonated.name, func() { b.impersonated.name.Append(x.as.Username) }),
		plain("impersonated_uid", &b.impersonated.uid, &r.impersonated.uid, func() { b.impersonated.uid.Append(x.as.UID) }),
		plain("impersonated_groups", &b.impersonated.groups, &r.impersonated.groups, func() { b.impersonated.groups.Append(x.as.Groups) }),
		plain("impersonated_extra", &b.impersonated.extra, &r.impersonated.extra,
			func() { appendExtra(&b.impersonated.extra, x.as.Extra) }),
		plain("impersonation_constraint", &b.constraint, &r.constraint, func() {
			if a := x.e.AuthenticationMetadata; a != nil {
				b.constraint.Append(a.ImpersonationConstraint)
			} else {
				b.constraint.Append("")
			}
		}),
		plain("source_ips", &b.sourceIPs, &r.sourceIPs, func() { b.sourceIPs.Append(x.e.SourceIPs) }),
		plain("user_agent", &b.userAgent, &r.userAgent, func() { b.userAgent.Append(x.e.UserAgent) }),
		plain("object_resource", &b.objectResource, &r.ref.Resource, func() { b.objectResource.Append(x.ref.Resource) }),
		plain("object_namespace", &b.objectNamespace, &r.ref.Namespace, func() { b.objectNamespace.Append(x.ref.Namespace) }),
		plain("object_name", &b.objectName, &r.ref.Name, func() { b.objectName.Append(x.ref.Name) }),
		plain("object_uid", &b.objectUID, &r.ref.UID, func() { b.objectUID.Append(x.ref.UID) }),
		plain("object_api_group", &b.objectGroup, &r.ref.APIGroup, func() { b.objectGroup.Append(x.ref.APIGroup) }),
		plain("object_api_version", &b.objectVersion, &r.ref.APIVersion, func() { b.objectVersion.Append(x.ref.APIVersion) }),
		plain("object_resource_version", &b.objectResourceVersion, &r.ref.ResourceVersion,
			func() { b.objectResourceVersion.Append(x.ref.ResourceVersion) }),
		plain("object_subresource", &b.objectSub, &r.ref.Subresource, func() { b.objectSub.Append(x.ref.Subresource) }),
		plain("code", &b.code, &r.code, func() { b.code.Append(x.status.Code) }),
		plain("status_reason", &b.statusReason, nil, func() { b.statusReason.Append(x.status.Reason) }),
		plain("response_status", &b.responseStatus, &r.status, func() { b.responseStatus.AppendBytes(x.status.Raw) }),
		plain("request_object", &b.requestObject, &r.requestObject, func() { b.requestObject.AppendBytes(x.e.RequestObject) }),
		plain("response_object", &b.responseObject, &r.responseObject, func() { b.responseObject.AppendBytes(x.e.ResponseObject) }),
		received,
		plain("stage_delay", &b.delay, &r.delay, func() {
			b.delay.Append(x.e.StageTimestamp.UnixMicro() - x.e.RequestReceivedTimestamp.UnixMicro())
		}),
		plain("annotations", &b.annotations, &r.annotations, func() {
			for i := range x.e.Annotations {
				b.annotations.Keys.Append(x.e.Annotations[i].Key)
				b.annotations.Values.Append(x.e.Annotations[i].Value)
			}
			b.annotations.End()
		}),
		plain("unknown_at", &b.unknownAt, &r.unknownAt, func() { b.appendUnknown(x.e) }),
		plain("unknown_name", &b.unknownName, &r.unknownName, nil),
		plain("unknown_value", &b.unknownValue, &r.unknownValue, nil),
		plain("shape", &b.shape, &r.shape, func() { b.shape.Append(shapeOf(x.e) | x.agent | x.first) }),
		plain("minute", native.Seconds{ColUInt32: &b.minute}, nil, func() { b.minute.Append(Minute(x.e.RequestReceivedTimestamp)) }),
		plain("day", native.Dates{ColUInt16: &b.day}, nil, func() { b.day.Append(Day(x.e.RequestReceivedTimestamp)) }),
		plain("subject", &b.subject, nil, func() { b.subject.Append(x.e.EffectiveUser().Username) }),
	}
}

// appendExtra adds a row of what authenticators added to a user.
func appendExtra(to *native.ListMap, extra event.Extra) {
	for i := range extra {
		to.Keys.Append(extra[i].Key)
		to.Values.Append(extra[i].Values)
	}
	to.End()
}

// Bits of the shape column: optional objects that are there, even when empty, and how the row is counted.
const (
	shapeImpersonated = 1 << iota // read by group_sets_mv
	shapeAuthentication
	shapeObjectRef
	shapeStatus
	shapeAgentOther // no object: the user agent is counted with others, read by activity_mv
	shapeFirstOther // nor this: keys of first-seen rules are counted with others, read by detections_mv
)

func shapeOf(e *event.Event) (shape uint8) {
	if e.ImpersonatedUser != nil {
		shape |= shapeImpersonated
	}
	if e.AuthenticationMetadata != nil {
		shape |= shapeAuthentication
	}
	if e.ObjectRef != nil {
		shape |= shapeObjectRef
	}
	if e.ResponseStatus != nil {
		shape |= shapeStatus
	}
	return shape
}

// Objects an unknown member can sit in, as stored in unknown_at.
const (
	atEvent          = "event"
	atUser           = "user"
	atImpersonated   = "impersonatedUser"
	atAuthentication = "authenticationMetadata"
	atObjectRef      = "objectRef"
)

// appendUnknown adds the unknown members of the event and of the objects in it.
func (b *Block) appendUnknown(e *event.Event) {
	b.unknown(atUser, e.User.Unknown)
	if u := e.ImpersonatedUser; u != nil {
		b.unknown(atImpersonated, u.Unknown)
	}
	if a := e.AuthenticationMetadata; a != nil {
		b.unknown(atAuthentication, a.Unknown)
	}
	if ref := e.ObjectRef; ref != nil {
		b.unknown(atObjectRef, ref.Unknown)
	}
	b.unknown(atEvent, e.Unknown)
	b.unknownAt.End()
	b.unknownName.End()
	b.unknownValue.End()
}

func (b *Block) unknown(at string, members []event.Member) {
	for _, m := range members {
		b.unknownAt.Items.Append(at)
		b.unknownName.Items.Append(m.Name)
		b.unknownValue.Items.AppendBytes(m.Value)
	}
}
