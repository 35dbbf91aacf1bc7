// Package event is Retrial's model of a Kubernetes audit event (audit.k8s.io/v1, k8s.io/apiserver/pkg/apis/audit/v1 Event): the types, the
// decoder, the canonical encoder and the keys of events and requests. ingest/redact takes the secrets out of an event before it comes to
// rest anywhere.
//
// The package is pure: no I/O, no clock, no logging. Its product, [Event], is what all
// later rooms work on.
package event

import (
	"slices"
	"time"
)

// Level is the audit level an event was recorded at.
type Level string

// Audit levels, from audit.k8s.io/v1.
const (
	LevelNone            Level = "None"
	LevelMetadata        Level = "Metadata"
	LevelRequest         Level = "Request"
	LevelRequestResponse Level = "RequestResponse"
)

// Stage is the point in the handling of a request at which an event was recorded.
type Stage string

// Audit stages, from audit.k8s.io/v1.
const (
	StageRequestReceived  Stage = "RequestReceived"
	StageResponseStarted  Stage = "ResponseStarted"
	StageResponseComplete Stage = "ResponseComplete"
	StagePanic            Stage = "Panic"
)

// Annotations of the apiserver's authorization filter. The replica must not read them before it decided: its answer is compared with them.
const (
	AnnotationDecision = "authorization.k8s.io/decision"
	AnnotationReason   = "authorization.k8s.io/reason"
)

// Event is one decoded audit event.
//
// Ownership: strings and byte slices may alias the buffer the event was decoded from;
// that buffer must not be modified while the event is in use. An Event is read-only once
// it has left the decoder and the redactor.
//
// Optional strings are "" when absent; optional objects are nil. What the type does not know is in Unknown: nothing is lost in writing.
type Event struct {
	Level      Level
	AuditID    string // chosen by the client when it sends Audit-ID: hostile, not unique
	Stage      Stage
	RequestURI string // path and query as rendered by the apiserver
	Verb       string

	User             User
	ImpersonatedUser *User // the user the request was made as, nil if not impersonating
	// AuthenticationMetadata is written by constrained impersonation (Kubernetes 1.35+).
	AuthenticationMetadata *AuthenticationMetadata

	SourceIPs []string // all but the last are claimed by the client
	UserAgent string

	ObjectRef      *ObjectRef
	ResponseStatus *Status
	RequestObject  []byte // JSON value as recorded, nil when absent
	ResponseObject []byte // JSON value as recorded, nil when absent

	RequestReceivedTimestamp time.Time // UTC, microseconds
	StageTimestamp           time.Time // UTC, microseconds

	Annotations Pairs // sorted by key

	Unknown []Member // members of the event object the type does not model, in order

	// Server names the apiserver the event came from, as its endpoint does, or "". It is not part of the event or of its keys.
	Server string
}

// Pair is one entry of a string map.
type Pair struct{ Key, Value string }

// Pairs is a small string map kept as a slice sorted by key: an audit event carries two
// annotations on most requests, and a Go map of two costs more than the rest of the event.
// The decoder returns it sorted and without duplicate keys.
type Pairs []Pair

// Get returns the value of a key and whether it is present. The key is compared exactly.
func (p Pairs) Get(key string) (value string, ok bool) {
	for i := range p {
		if p[i].Key == key {
			return p[i].Value, true
		}
	}
	return "", false
}

// Set returns the pairs with the key set to the value, sorted. The receiver is not
// changed: it may share its memory with other events.
func (p Pairs) Set(key, value string) Pairs {
	out := make(Pairs, 0, len(p)+1)
	for _, pair := range p {
		if pair.Key != key {
			out = append(out, pair)
		}
	}
	out = append(out, Pair{key, value})
	slices.SortStableFunc(out, comparePairs)
	return out
}

// ExtraEntry is one entry of a user's extra: a key and its values in recorded order.
type ExtraEntry struct {
	Key    string
	Values []string
}

// Extra is authentication.k8s.io/v1 UserInfo.extra, sorted by key without duplicates.
type Extra []ExtraEntry

// Get returns the values of a key, nil if it is absent.
func (x Extra) Get(key string) []string {
	for i := range x {
		if x[i].Key == key {
			return x[i].Values
		}
	}
	return nil
}

// Member is one JSON object member kept verbatim.
type Member struct {
	Name  string
	Value []byte // JSON value
}

// User is authentication.k8s.io/v1 UserInfo.
type User struct {
	Username string
	UID      string
	Groups   []string // in recorded order; a set for authorization
	Extra    Extra
	Unknown  []Member // members UserInfo does not have, in order
}

// AuthenticationMetadata carries the impersonation mode that was used.
type AuthenticationMetadata struct {
	ImpersonationConstraint string   // for example "impersonate:user-info"
	Unknown                 []Member // members the type does not model, in order
}

// ObjectRef is the object reference of an event. It is completed from the request body
// after authorization ran and is therefore never an input of the replica's decision
// (see replay: attributes come from the verb and the request URI).
type ObjectRef struct {
	Resource        string
	Namespace       string
	Name            string
	UID             string
	APIGroup        string
	APIVersion      string
	ResourceVersion string
	Subresource     string
	Unknown         []Member // members the type does not model, in order
}

// Status is the part of metav1.Status the pipeline works with; Raw is the whole status as
// recorded, so that nothing is lost.
type Status struct {
	Status  string
	Message string
	Reason  string
	Code    int32
	Raw     []byte // the JSON object as recorded
}

// EffectiveUser returns the user the request was authorized as: the impersonated user if there
// is one, otherwise the authenticated user.
func (e *Event) EffectiveUser() *User {
	if e.ImpersonatedUser != nil {
		return e.ImpersonatedUser
	}
	return &e.User
}

// Code returns the HTTP status code of the response, 0 if none is recorded.
func (e *Event) Code() int32 {
	if e.ResponseStatus == nil {
		return 0
	}
	return e.ResponseStatus.Code
}

// Keys of what authenticators add to a user.
const (
	ExtraCredentialID = "authentication.kubernetes.io/credential-id"
	ExtraPodName      = "authentication.kubernetes.io/pod-name"
	ExtraPodUID       = "authentication.kubernetes.io/pod-uid"
	ExtraNodeName     = "authentication.kubernetes.io/node-name"
	ExtraNodeUID      = "authentication.kubernetes.io/node-uid"

	// Of the tokens that an apiserver issues for its admission webhooks, since 1.37.
	ExtraValidatingName = "authentication.kubernetes.io/validatingwebhookconfiguration-name"
	ExtraValidatingUID  = "authentication.kubernetes.io/validatingwebhookconfiguration-uid"
	ExtraMutatingName   = "authentication.kubernetes.io/mutatingwebhookconfiguration-name"
	ExtraMutatingUID    = "authentication.kubernetes.io/mutatingwebhookconfiguration-uid"
	ExtraAttestedGroups = "attestation.authentication.kubernetes.io/admissionReviewAPIGroups"
)
