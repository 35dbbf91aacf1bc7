package state

import (
	"time"
)

// Pod is what a State knows of one pod, by its uid. Times are the latest at which the change
// was certainly effective; zero when it has not happened as far as is known.
type Pod struct {
	Namespace, Name string
	UID             string
	// ServiceAccount is the name of its service account, "" when that was not recorded.
	ServiceAccount string
	// Node is the node it is bound to. With a Bound time it may be empty: bound, to a node
	// that was not recorded.
	Node    string
	Created time.Time
	Bound   time.Time
	// DeletionAt is metadata.deletionTimestamp: when the grace it was given ends.
	DeletionAt time.Time
	// Gone is when it was there no more.
	Gone time.Time
}

// Secret is what is public of a Secret.
type Secret struct {
	UID  string
	Type string // "" when not recorded
	// ServiceAccount and ServiceAccountUID are the annotations of a service account's token.
	ServiceAccount, ServiceAccountUID string
	// LastUsed and InvalidSince are the labels the apiserver and its controllers put on
	// legacy tokens: kubernetes.io/legacy-token-last-used and -invalid-since, dates.
	LastUsed, InvalidSince string
	Deleting               bool
	Bootstrap              *BootstrapToken // nil when it is none, or its fields were not recorded
}

// BootstrapToken is what is public of a bootstrap token: everything but its secret.
type BootstrapToken struct {
	ID             string
	Expires        time.Time // zero: never
	Authentication bool      // usage-bootstrap-authentication
	Groups         []string  // auth-extra-groups; sorted, shared, not to be modified
}

// Credential is the issue of a token or of a client certificate. Fields that were not recorded
// are empty.
type Credential struct {
	ID     string    // "JTI=…" or "X509SHA256=…", as in the extra of the users it makes
	Issued time.Time // not before it; the beginning of the request that issued it
	// Expires is what the answer, or the certificate, says. A token may be accepted for
	// longer: apiservers extend those that pods mount.
	Expires time.Time

	// Of a token: whose it is and what it is bound to.
	Namespace, ServiceAccount, UID string
	Pod, PodUID                    string
	Node, NodeUID                  string
	Secret, SecretUID              string

	// Of a certificate: the request it was issued for and what it says.
	CSR, Signer   string
	CommonName    string
	Organizations []string // shared, not to be modified

	By      string // user who asked for it
	ByAddr  string // address the request came from
	AuditID string // of the request that issued it
}

// Pod returns the pod that had a name at a moment. Node, Bound, DeletionAt and Gone are as of
// that moment, Gone always zero. With Unknown the Pod says what may be left of the last one
// known.
func (s *State) Pod(namespace, name string, at time.Time) (Pod, Known) {
	return Pod{}, Unknown
}

// PodByUID returns everything known of a pod, whenever it lived. Absent means that there was
// none in all the time the State remembers and knows completely.
func (s *State) PodByUID(uid string) (Pod, Known) {
	return Pod{}, Unknown
}

// Node returns the uid of a node at a moment. It may be empty with Present, when it was not
// recorded.
func (s *State) Node(name string, at time.Time) (uid string, known Known) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	v, known := s.lookup(objectKey{res: resNode, name: name}, nanos(at))
	return v.uid, known
}

// Secret returns what is public of a Secret at a moment. With Present but only its name known
// (events at level Metadata) the answer is Unknown.
func (s *State) Secret(namespace, name string, at time.Time) (Secret, Known) {
	return Secret{}, Unknown
}

// Credential returns the issue of a credential. Absent means that none with this id was
// issued in a log known to be complete.
func (s *State) Credential(id string) (Credential, Known) {
	return Credential{}, Unknown
}

// Credentials visits the credentials of a service account, those of all with an empty name,
// those of all namespaces and all certificates with both empty; until visit returns false.
// The order is by id. visit must not call the State.
func (s *State) Credentials(namespace, name string, visit func(Credential) bool) {}

// Related tells whether at a moment a path leads from an object to a node, as the node
// authorizer follows it. Absent is certain.
func (s *State) Related(at time.Time, node, group, resource, namespace, name string) Known {
	return Unknown
}
