package graph

import "math"

// Known is a three-valued answer. The zero value is "not known".
type Known uint8

// Answers.
const (
	Unknown Known = iota
	Absent
	Present
	// Late is the answer if all paths lead through what an ephemeral container named: present for an apiserver that refreshes a pod's
	// references when it gets one (1.33 and later), absent for one that does not, until it refreshes them for another reason, or restarts.
	Late
)

// String returns "unknown", "absent", "present" or "late".
func (k Known) String() string {
	switch k {
	case Absent:
		return "absent"
	case Present:
		return "present"
	case Late:
		return "late"
	}
	return "unknown"
}

// Kind is a kind of object the graph is made of.
type Kind uint8

// Kinds.
const (
	Pod                Kind = iota // pods
	Volume                         // persistentvolumes
	Attachment                     // volumeattachments.storage.k8s.io
	Slice                          // resourceslices.resource.k8s.io
	CertificateRequest             // podcertificaterequests.certificates.k8s.io
	kinds
)

// Object names an object of the graph. Namespace is empty for all kinds but Pod and CertificateRequest.
type Object struct {
	Kind            Kind
	Namespace, Name string
}

// Always is the time before every other, for a Step without a lower bound.
const Always = int64(math.MinInt64)

// Step is one change in the life of an object, or of a scope: from some moment in [NotBefore, NotAfter] on (nanoseconds since 1970) it is
// as the step says, until the next step. Steps are in order and neither bound ever decreases from one to the next.
//
// Before its first step an object is absent, unless its scope is unknown.
type Step struct {
	NotBefore, NotAfter int64
	// Known is Present for an object with Content; Absent once it has gone; Unknown if it may exist with any content, or not exist.
	Known Known
	// UID tells the lives of a name apart; it may be empty.
	UID string
	// Content is what a Present object says; nil means that nothing of it is known. It must not change any more; the graph keeps it.
	Content *Content
}

// Content is what the graph needs of one version of an object. It is small, comparable, and nothing in it is secret.
type Content struct {
	// Node is spec.nodeName, of every kind but Volume. Empty: bound to no node.
	Node string
	// Refs is what the object refers to: of pods and volumes only.
	Refs Refs
	// Statuses stands for status.resourceClaimStatuses of a pod: equal for equal ones.
	Statuses uint32
	// Ephemeral counts the ephemeral containers of a pod.
	Ephemeral uint16
	// AnyNode says that the node is not known: it may be none or any. Node is ignored then.
	AnyNode bool
	// AnyRefs says that the references are not known. Refs holds those that are.
	AnyRefs bool
}
