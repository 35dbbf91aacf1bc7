package codec

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/cespare/xxhash/v2"

	"github.com/retrial-io/retrial/ingest/event"
	"github.com/retrial-io/retrial/verdict"
)

// stored is a row of events as it is read, each column to where the table of columns says. It is the counterpart of block.
type stored struct {
	table []column

	cluster, source, apiserver            string
	ingested, koffset, received, delay    int64
	epoch, size                           uint32
	kpart, code                           int32
	request, content                      string // 16 bytes each
	sign                                  int8
	rowRevision                           uint64
	shape, isResource                     uint8
	level, auditID, stage, uri, verb      string
	user, impersonated                    storedUser
	constraint, userAgent                 string
	sourceIPs                             []string
	ref                                   event.ObjectRef
	status, requestObject, responseObject string
	annotations                           map[string]string
	unknownAt, unknownName, unknownValue  []string
	hits                                  []string
	hitKeys                               []uint64
	access                                uint64
	impliedAccess                         []uint64

	// The verdict, and what of it is not stored as it is: see build of the columns.
	v                           verdict.Verdict
	outcome, recorded, replayed string
	grants                      []string
	imp                         string
	impCheck                    verdict.ImpersonationCheck
	impGrants, implied          []string
	impliedGrants               [][]string
	chain, review               string
	admission                   storedAdmission
}

// NewStored returns a row to read into.
func NewStored() *stored {
	r := &stored{}
	r.table = columns(&Block{}, r)
	return r
}

// Reset empties the row; what it referred to is not written again.
func (r *stored) Reset() { *r = stored{table: r.table} }

type storedUser struct {
	name, uid string
	groups    []string
	extra     map[string][]string
}

// Reads returns the expressions to read of a row that want selects, and where their values go.
func (r *stored) Reads(want func(sql string) bool) (list []string, to []any) {
	for i := range r.table {
		if c := &r.table[i]; c.into != nil && want(c.read()) {
			list, to = append(list, c.read()), append(to, c.into)
		}
	}
	return list, to
}

// EveryColumn reports true for every column, for Stored.Reads.
func EveryColumn(string) bool { return true }

// Row rebuilds what was inserted. What was not read stays empty.
func (r *stored) Row() (verdict.Row, error) {
	e, err := r.event()
	if err != nil {
		return verdict.Row{}, err
	}
	e.Server = r.apiserver
	v, err := r.verdict()
	if err != nil {
		return verdict.Row{}, err
	}
	request, content := []byte(r.request), []byte(r.content)
	if len(content) == 0 {
		content = make([]byte, 16)
	}
	if len(request) != 16 || len(content) != 16 {
		return verdict.Row{}, fmt.Errorf("event %s: a stored key has %d bytes, its content hash %d", r.auditID, len(request), len(content))
	}
	key := event.HashFromBytes([16]byte(request))
	return verdict.Row{
		Cluster: r.cluster, Source: r.source, APIServer: r.apiserver, Received: FromMicro(r.ingested),
		Position: event.Position{Epoch: r.epoch, Partition: r.kpart, Offset: r.koffset},
		EventKey: event.EventKey(key, e), Request: key, Content: KnownContent(string(content)),
		Size: int(r.size), Event: e, Verdict: v, Marks: r.marks(), Counted: r.counted(v), AgentOther: r.shape&shapeAgentOther != 0,
		FirstOther: r.shape&shapeFirstOther != 0, Sign: r.sign, Revision: r.rowRevision,
	}, nil
}

// counted returns the keys the row is counted under; none are read of a row without access.
func (r *stored) counted(v *verdict.Verdict) []uint64 {
	if v == nil || r.access == 0 {
		return nil
	}
	return append([]uint64{r.access}, r.impliedAccess...)
}

func (r *stored) marks() []verdict.Mark {
	if len(r.hits) == 0 {
		return nil
	}
	out := make([]verdict.Mark, len(r.hits))
	for i, name := range r.hits {
		out[i] = verdict.Mark{Name: name, Key: r.hitKeys[i]}
		if r.hitKeys[i] == 0 {
			out[i].Key = xxhash.Sum64String(r.auditID)
		}
	}
	return out
}

func (r *stored) event() (*event.Event, error) {
	e := &event.Event{
		Level: event.Level(r.level), AuditID: r.auditID, Stage: event.Stage(r.stage), RequestURI: r.uri, Verb: r.verb,
		User: r.user.event(), SourceIPs: OrNil(r.sourceIPs), UserAgent: r.userAgent,
		RequestObject: bytesOrNil(r.requestObject), ResponseObject: bytesOrNil(r.responseObject),
		RequestReceivedTimestamp: FromMicro(r.received), StageTimestamp: FromMicro(r.received + r.delay),
	}
	if r.shape&shapeImpersonated != 0 {
		u := r.impersonated.event()
		e.ImpersonatedUser = &u
	}
	if r.shape&shapeAuthentication != 0 {
		e.AuthenticationMetadata = &event.AuthenticationMetadata{ImpersonationConstraint: r.constraint}
	}
	if r.shape&shapeObjectRef != 0 {
		ref := r.ref
		e.ObjectRef = &ref
	}
	if r.shape&shapeStatus != 0 {
		e.ResponseStatus = &event.Status{Code: r.code, Raw: bytesOrNil(r.status)}
		var s struct{ Status, Message, Reason string }
		if len(r.status) > 0 {
			if err := json.Unmarshal([]byte(r.status), &s); err != nil {
				return nil, fmt.Errorf("event %s: response status: %w", r.auditID, err)
			}
		}
		e.ResponseStatus.Status, e.ResponseStatus.Message, e.ResponseStatus.Reason = s.Status, s.Message, s.Reason
	}
	for k, v := range r.annotations {
		e.Annotations = append(e.Annotations, event.Pair{Key: k, Value: v})
	}
	slices.SortFunc(e.Annotations, func(a, b event.Pair) int { return strings.Compare(a.Key, b.Key) })
	for i, at := range r.unknownAt {
		m := event.Member{Name: r.unknownName[i], Value: []byte(r.unknownValue[i])}
		switch at {
		case atEvent:
			e.Unknown = append(e.Unknown, m)
		case atUser:
			e.User.Unknown = append(e.User.Unknown, m)
		case atImpersonated:
			e.ImpersonatedUser.Unknown = append(e.ImpersonatedUser.Unknown, m)
		case atAuthentication:
			e.AuthenticationMetadata.Unknown = append(e.AuthenticationMetadata.Unknown, m)
		case atObjectRef:
			e.ObjectRef.Unknown = append(e.ObjectRef.Unknown, m)
		}
	}
	return e, nil
}

func (u *storedUser) event() event.User {
	out := event.User{Username: u.name, UID: u.uid, Groups: OrNil(u.groups)}
	for k, v := range u.extra {
		out.Extra = append(out.Extra, event.ExtraEntry{Key: k, Values: OrNil(v)})
	}
	slices.SortFunc(out.Extra, func(a, b event.ExtraEntry) int { return strings.Compare(a.Key, b.Key) })
	return out
}

// verdict rebuilds the verdict; nil on the rows of a request's later stages.
func (r *stored) verdict() (*verdict.Verdict, error) {
	if r.outcome == "" {
		return nil, nil
	}
	for i := range r.table {
		if build := r.table[i].build; build != nil {
			if err := build(); err != nil {
				return nil, fmt.Errorf("event %s: %w", r.auditID, err)
			}
		}
	}
	v := r.v
	if v.Impersonation != nil {
		check := r.impCheck
		v.Impersonation = &check
	}
	v.CompleteImpersonation(r.shape&shapeImpersonated != 0)
	return &v, nil
}

func decodeGrants(list []string) ([]verdict.Grant, error) {
	var out []verdict.Grant
	for _, text := range list {
		g, err := DecodeGrant(text)
		if err != nil {
			return nil, err
		}
		out = append(out, g)
	}
	return out, nil
}

// FromMicro returns the time of microseconds since 1970, in UTC.
func FromMicro(us int64) time.Time { return time.UnixMicro(us).UTC() }

// OrNil returns list, or nil if it is empty.
func OrNil(list []string) []string {
	if len(list) == 0 {
		return nil
	}
	return list
}

func bytesOrNil(s string) []byte {
	if s == "" {
		return nil
	}
	return []byte(s)
}

// KnownContent returns a stored content hash. Half of it tells copies of one request apart; older rows have both halves.
func KnownContent(stored string) event.Hash128 {
	h := event.HashFromBytes([16]byte([]byte(stored)))
	h.Lo = 0
	return h
}
